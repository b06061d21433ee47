// Convolutions of images by cuDNN on one device: descriptors and the library's choice of algorithm, kept by shape.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <memory>
#include <mutex>

#include "backplane/abi/base.h"
#include "libraries/cudnn.hpp"

namespace backplane::cuda {

enum class Pass : uint8_t { kForward, kOfImages, kOfKernels };

// x (images, groups * channels, image), w (groups * filters, channels, kernel), y (images, groups * filters, result),
// contiguous; no size is 0.
struct ConvolutionShape {
  Pass pass = Pass::kForward;
  bp_dtype dtype = 0;
  std::array<int, 4> x{}, w{}, y{};
  std::array<int, 2> stride{}, padding{}, dilation{};
  int groups = 1;
  auto operator<=>(const ConvolutionShape&) const = default;
};

class ConvolutionPlan {
 public:
  ConvolutionPlan(const cudnn::Functions& library, cudnn::Handle handle, const ConvolutionShape& shape);
  ~ConvolutionPlan();
  ConvolutionPlan(const ConvolutionPlan&) = delete;
  ConvolutionPlan& operator=(const ConvolutionPlan&) = delete;
  // False: the library has no algorithm that gives the same bits each time, in the dtype's own products.
  bool possible() const { return possible_; }
  size_t workspace() const { return workspace_; }

 private:
  friend class Convolutions;
  using Status = cudnn::Status;
  bool describe(const ConvolutionShape& shape);
  void choose();
  void destroy();
  Status propose(int wanted, int* found, cudnn::Proposal* proposals) const;
  Status measure(int algorithm, size_t* bytes) const;
  bool run(const void* first, const void* second, void* out, void* workspace) const;

  const cudnn::Functions& library_;
  const cudnn::Handle handle_;
  const Pass pass_;
  const bp_dtype dtype_;
  cudnn::Tensor x_ = nullptr, y_ = nullptr;
  cudnn::Filter w_ = nullptr;
  cudnn::Convolution convolution_ = nullptr;
  int algorithm_ = 0;
  size_t workspace_ = 0;
  bool possible_ = false;
};

// The library's handle, and its plans. Any thread; the device's context is the thread's current one.
class Convolutions {
 public:
  explicit Convolutions(const cudnn::Functions& library);
  ~Convolutions();
  Convolutions(const Convolutions&) = delete;
  Convolutions& operator=(const Convolutions&) = delete;
  std::shared_ptr<const ConvolutionPlan> plan(const ConvolutionShape& shape);
  // Records it: y of (x, w), x of (w, y), or w of (x, y). `workspace` is a multiple of 256. False: nothing is recorded,
  // for the library finds only now that it has nothing for it.
  bool run(const ConvolutionPlan& plan, const void* first, const void* second, void* out, void* workspace,
           driver::Stream stream);

 private:
  const cudnn::Functions& library_;
  cudnn::Handle handle_ = nullptr;
  std::mutex mutex_;  // guards plans_, and whose stream is the handle's
  std::map<ConvolutionShape, std::shared_ptr<const ConvolutionPlan>> plans_;
};

}  // namespace backplane::cuda
