// Fourier transforms by cuFFT on one device: plans over contiguous tensors, kept by shape.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "libraries/cufft.hpp"

namespace backplane::cuda {

constexpr int kMostTransformedAxes = 3;  // cuFFT's

// Over the last `rank` axes, of `sizes` (of the real side, where there is one), `batch` times.
struct TransformShape {
  cufft::Type type{};
  int rank = 0;
  std::array<long long, kMostTransformedAxes> sizes{};
  long long batch = 1;
  auto operator<=>(const TransformShape&) const = default;
};

class TransformPlan {
 public:
  TransformPlan(const cufft::Functions& library, const TransformShape& shape);
  ~TransformPlan();
  TransformPlan(const TransformPlan&) = delete;
  size_t workspace() const { return workspace_; }
  // Records it. Both sides are aligned to their complex type; one to reals overwrites its operand. `workspace` is a
  // multiple of 256.
  void run(void* in, void* out, bool forward, void* workspace, driver::Stream stream);

 private:
  void execute(void* in, void* out, int direction) const;

  const cufft::Functions& library_;
  cufft::Type type_;
  cufft::Plan plan_ = -1;
  size_t workspace_ = 0;
  std::mutex mutex_;  // the stream and the workspace are the plan's
};

// Any thread; the device's context is the thread's current one.
class Transforms {
 public:
  explicit Transforms(const cufft::Functions& library) : library_(library) {}
  std::shared_ptr<TransformPlan> plan(const TransformShape& shape);

 private:
  const cufft::Functions& library_;
  std::mutex mutex_;  // guards plans_
  std::map<TransformShape, std::shared_ptr<TransformPlan>> plans_;
};

}  // namespace backplane::cuda
