// A host of the smallest kind, to run a plugin's kernels without libbackplane: keeps the registered rows, builds frames
// and loop descriptors, runs parallel_for in several pieces on the calling thread.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "backplane/plugin.hpp"

namespace backplane::testing {

using plugin::kDtypeOf;
using plugin::kItemSize;
using Shape = std::vector<int64_t>;

// A tensor with memory of its own, or a view of another's.
class Array {
 public:
  Array(bp_dtype dtype, Shape shape) : shape_(std::move(shape)), strides_(shape_.size()) {
    int64_t step = 1;
    for (size_t d = shape_.size(); d-- > 0;) {
      strides_[d] = step;
      step *= shape_[d];
    }
    memory_ = std::make_shared<std::vector<char>>(static_cast<size_t>(step * kItemSize[dtype]) + 64);
    // Off the base, so that a kernel that forgets byte_offset is found out.
    fill_handle(dtype, 16, step);
  }
  template <class T>
  static Array of(const std::vector<T>& values, Shape shape) {
    Array array(kDtypeOf<T>, std::move(shape));
    for (size_t i = 0; i < values.size(); ++i) array.at<T>()[i] = values[i];
    return array;
  }
  Array(const Array& other) : shape_(other.shape_), strides_(other.strides_), memory_(other.memory_) {
    fill_handle(other.tensor_.dtype, other.tensor_.dl.byte_offset, count());
  }
  Array view(Shape shape, Shape strides, int64_t offset = 0) const {
    Array result(*this);
    result.shape_ = std::move(shape);
    result.strides_ = std::move(strides);
    result.fill_handle(tensor_.dtype, tensor_.dl.byte_offset + static_cast<uint64_t>(offset * kItemSize[tensor_.dtype]),
                       result.count());
    return result;
  }

  bp_tensor* handle() { return &tensor_; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }
  bp_dtype dtype() const { return tensor_.dtype; }
  int64_t count() const {
    return std::accumulate(shape_.begin(), shape_.end(), int64_t{1}, [](int64_t a, int64_t b) { return a * b; });
  }
  template <class T>
  T* at() {
    return reinterpret_cast<T*>(static_cast<char*>(tensor_.dl.data) + tensor_.dl.byte_offset);
  }
  // In row-major order of the indices, whatever the strides.
  template <class T>
  std::vector<T> values() {
    std::vector<T> result;
    Shape position(shape_.size(), 0);
    for (int64_t i = 0; i < count(); ++i) {
      int64_t offset = 0;
      for (size_t d = 0; d < shape_.size(); ++d) offset += position[d] * strides_[d];
      result.push_back(at<T>()[offset]);
      for (size_t d = shape_.size(); d-- > 0;) {
        if (++position[d] < shape_[d]) break;
        position[d] = 0;
      }
    }
    return result;
  }

 private:
  void fill_handle(bp_dtype dtype, uint64_t byte_offset, int64_t count) {
    tensor_ = {};
    tensor_.dl.data = memory_->data();
    tensor_.dl.byte_offset = byte_offset;
    tensor_.dl.ndim = static_cast<int32_t>(shape_.size());
    tensor_.dl.shape = shape_.data();
    tensor_.dl.strides = strides_.data();
    tensor_.struct_size = sizeof(bp_tensor);
    tensor_.dtype = dtype;
    tensor_.nbytes = static_cast<uint64_t>(count) * kItemSize[dtype];
    int64_t step = 1;
    bool contiguous = true;
    for (size_t d = shape_.size(); d-- > 0; step *= shape_[d])
      contiguous = contiguous && (shape_[d] == 1 || strides_[d] == step);
    tensor_.flags = contiguous ? uint32_t{BP_TENSOR_CONTIGUOUS} : 0;
  }

  Shape shape_, strides_;
  std::shared_ptr<std::vector<char>> memory_;
  bp_tensor tensor_{};
};

inline bp_value tensor(Array& array) {
  bp_value value{};
  value.tag = BP_TAG_TENSOR;
  value.u.t = array.handle();
  return value;
}
inline bp_value number(double x) {
  bp_value value{};
  value.tag = BP_TAG_FLOAT;
  value.flags = BP_VALUE_NUMBER;
  value.u.f = x;
  return value;
}
inline bp_value integer(int64_t x) {
  bp_value value{};
  value.tag = BP_TAG_INT;
  value.u.i = x;
  return value;
}
inline bp_value boolean(bool x) {
  bp_value value{};
  value.tag = BP_TAG_BOOL;
  value.u.i = x;
  return value;
}
inline bp_value ints(const Shape& list) {
  bp_value value{};
  value.tag = BP_TAG_INT_LIST;
  value.count = static_cast<uint32_t>(list.size());
  value.u.ints = list.data();
  return value;
}
inline bp_value absent() { return bp_value{}; }

// Loads a plugin and calls its kernels.
class FakeHost {
 public:
  explicit FakeHost(const char* path) {
    current() = this;
    library_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      error = dlerror();
      return;
    }
    host_.header = BP_HEADER(bp_host);
    host_.set_error = [](bp_status, const char* message) { current()->error = message; };
    host_.get_error = [] { return current()->error.c_str(); };
    host_.parallel_for = parallel_for;
    host_.worker_count = [] { return int32_t{2}; };
    host_.alloc_output = alloc_output;
    host_.scratch = scratch;
    host_.retain = [](bp_tensor*) { ++current()->retained; };
    host_.release = [](bp_tensor*) { --current()->retained; };
    host_.register_backend = [](bp_plugin_record*, const bp_backend_def* def) {
      current()->backend = *def;
      return bp_status{BP_OK};
    };
    host_.register_kernel = [](bp_plugin_record*, const bp_kernel_def* row) {
      current()->kernels[row->op] = *row;
      return bp_status{BP_OK};
    };
    const auto query = reinterpret_cast<bp_plugin_query_fn>(dlsym(library_, BP_PLUGIN_QUERY_SYMBOL));
    description.header.struct_size = sizeof(bp_plugin);
    if (query(BP_ABI_MAJOR, BP_ABI_MINOR, &description) == BP_OK)
      registered = description.register_all(description.context, &host_, nullptr) == BP_OK;
  }

  // `reduced` names the axes of x that are missing from out or have size 1 there; without, all operands broadcast to
  // out.
  bp_status call(const std::string& op, std::vector<bp_value> args, std::vector<bp_value> outs, bp_dtype compute,
                 bool flat = false, const Shape* reduced = nullptr) {
    const bp_kernel_def& row = kernels.at(op);
    bp_op_info info{BP_HEADER(bp_op_info), row.op, 0, 0, nullptr};
    bp_frame frame{};
    frame.header = BP_HEADER(bp_frame);
    frame.host = &host_;
    frame.op = &info;
    frame.context = row.context;
    frame.compute = compute;
    bp_loop loop{};
    std::vector<int64_t> sizes, strides;
    if ((row.flags & BP_KERNEL_LOOP) != 0 && !flat) {
      build_loop(args, outs, reduced, sizes, strides);
      if (merges_dims) merge_dims(sizes, strides);
      loop = {BP_HEADER(bp_loop),
              static_cast<int32_t>(sizes.size()),
              0,
              1,
              sizes.data(),
              strides.data(),
              nullptr,
              0,
              0,
              0,
              0,
              0,
              0};
      for (const int64_t size : sizes) loop.count *= size;
      frame.loop = &loop;
    }
    error.clear();
    return row.fn(&frame, args.data(), static_cast<int32_t>(args.size()), outs.data(),
                  static_cast<int32_t>(outs.size()));
  }

  const bp_host* table() const { return &host_; }

  std::map<std::string, bp_kernel_def> kernels;
  int retained = 0;          // references that the plugin holds
  bool merges_dims = false;  // loops as the core builds them; else with a dim for each axis
  bp_backend_def backend{};
  bp_plugin description{};
  bool registered = false;
  std::string error;
  std::deque<Array> allocated;

 private:
  static FakeHost*& current() {
    static FakeHost* host = nullptr;
    return host;
  }

  static void build_loop(const std::vector<bp_value>& args, const std::vector<bp_value>& outs, const Shape* reduced,
                         std::vector<int64_t>& sizes, std::vector<int64_t>& strides) {
    const bp_tensor* out = outs[0].u.t;
    const bp_tensor* full = reduced != nullptr ? args[0].u.t : out;
    const int32_t rank = full->dl.ndim;
    sizes.assign(full->dl.shape, full->dl.shape + rank);
    const auto push = [&](const bp_tensor* t) {
      for (int32_t d = 0; d < rank; ++d) {
        const int32_t own = t == nullptr ? -1 : d - (rank - t->dl.ndim);
        const bool there = own >= 0 && t->dl.shape[own] != 1;
        strides.push_back(there ? t->dl.strides[own] * kItemSize[t->dtype] : 0);
      }
    };
    if (reduced == nullptr) {
      push(out);
    } else {
      for (int32_t d = 0, own = 0; d < rank; ++d) {
        const bool gone = std::find(reduced->begin(), reduced->end(), d) != reduced->end();
        strides.push_back(gone || full->dl.shape[d] == 1 ? 0 : out->dl.strides[own] * kItemSize[out->dtype]);
        own += !gone || out->dl.ndim == rank;
      }
    }
    for (const bp_value& value : args)
      if (value.tag == BP_TAG_TENSOR || (value.flags & BP_VALUE_NUMBER) != 0)
        push(value.tag == BP_TAG_TENSOR ? value.u.t : nullptr);
  }
  // As the core does: dims of size 1 are in no loop, and neighbours are one dim where all strides allow.
  static void merge_dims(std::vector<int64_t>& sizes, std::vector<int64_t>& strides) {
    const size_t rank = sizes.size(), operands = rank == 0 ? 0 : strides.size() / rank;
    const auto step = [&](size_t k, size_t d) { return strides[k * rank + d]; };
    std::vector<size_t> kept;  // the innermost dim of each group
    std::vector<int64_t> merged;
    for (size_t d = rank; d-- > 0;) {
      if (sizes[d] == 1) continue;
      bool joins = !kept.empty();
      for (size_t k = 0; joins && k < operands; ++k) joins = step(k, d) == step(k, kept.back()) * merged.back();
      if (joins) {
        merged.back() *= sizes[d];
        continue;
      }
      kept.push_back(d);
      merged.push_back(sizes[d]);
    }
    std::reverse(kept.begin(), kept.end());
    std::reverse(merged.begin(), merged.end());
    std::vector<int64_t> steps;
    for (size_t k = 0; k < operands; ++k)
      for (const size_t d : kept) steps.push_back(step(k, d));
    sizes = merged;
    strides = steps;
  }

  // Pieces of `grain`, in order.
  static bp_status BP_CALL parallel_for(int64_t begin, int64_t end, int64_t grain, bp_parallel_body body,
                                        void* context) {
    for (int64_t at = begin; at < end; at += grain)
      if (const bp_status status = body(context, at, std::min(end, at + grain), 0); status != BP_OK) return status;
    return BP_OK;
  }
  static bp_status BP_CALL alloc_output(const bp_frame*, bp_value* slot, bp_dtype dtype, int32_t ndim,
                                        const int64_t* shape) {
    current()->allocated.emplace_back(dtype, Shape(shape, shape + ndim));
    *slot = tensor(current()->allocated.back());
    return BP_OK;
  }
  static bp_status BP_CALL scratch(const bp_frame*, uint64_t size, void** data) {
    current()->allocated.emplace_back(bp_dtype{BP_FLOAT64}, Shape{static_cast<int64_t>(size / 8 + 1)});
    *data = current()->allocated.back().at<void>();
    return BP_OK;
  }

  void* library_ = nullptr;
  bp_host host_{};
};

// One for the process: opening OpenBLAS takes longer than all the tests.
inline FakeHost& cpu() {
  static FakeHost host(BACKPLANE_CPU_PLUGIN);
  return host;
}

}  // namespace backplane::testing
