// A stand-in for cuDNN's convolutions: computed from the descriptors that are given, by their definition, on the
// emulated device's memory, in the order of its streams. What the library's manual forbids is refused by name, as a
// status and on standard error; an algorithm needs the workspace that the library says for it.
#include "libraries/cudnn.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elements.hpp"
#include "services.hpp"

using namespace backplane::cuda;
using namespace backplane::cuda::cudnn;

namespace backplane::cuda::cudnn {

struct HandleData {
  driver::Stream stream = nullptr;
};
struct TensorData {
  int type = -1;
  std::array<int, 4> sizes{};
};
struct FilterData : TensorData {};
struct ConvolutionData {
  std::array<int, 2> padding{}, stride{}, dilation{};
  int mode = -1, computed = -1, groups = 1, math = kOfDefault;
};

}  // namespace backplane::cuda::cudnn

namespace {

enum class Pass { kForward, kOfImages, kOfKernels };

std::atomic<uint64_t> convolutions{0};

// Of every pass: the first gives other bits each time, the second wants a workspace, the third none.
constexpr int kAtomic = 0, kWithWorkspace = 1, kPlain = 2;

Status refuse(Status status, const std::string& what) {
  std::fprintf(stderr, "emulated cuDNN: %s\n", what.c_str());
  return status;
}

int64_t elements(const TensorData& tensor) {
  int64_t count = 1;
  for (const int size : tensor.sizes) count *= size;
  return count;
}

Status check_tensor(const TensorData& tensor, const char* name) {
  if (tensor.type < 0) return refuse(kBadParameter, std::string(name) + " has never been set");
  for (const int size : tensor.sizes)
    if (size < 1) return refuse(kBadParameter, std::string(name) + " has the size " + std::to_string(size));
  return kSuccess;
}

Status check_types(const TensorData& x, const TensorData& w, const TensorData& y, const ConvolutionData& c) {
  if (x.type != w.type || x.type != y.type) return refuse(kBadParameter, "the types of x, w and y differ");
  const int computed = x.type == kReal64 ? kReal64 : kReal32;
  if (c.computed != computed) return refuse(kNotSupported, "the computation has another type than the tensors take");
  return kSuccess;
}

Status check_sizes(const TensorData& x, const TensorData& w, const TensorData& y, const ConvolutionData& c) {
  if (c.groups < 1 || x.sizes[1] != w.sizes[1] * c.groups || w.sizes[0] % c.groups != 0)
    return refuse(kBadParameter, "the channels of x, of w and the groups do not go together");
  if (y.sizes[0] != x.sizes[0] || y.sizes[1] != w.sizes[0])
    return refuse(kBadParameter, "y has not x's images and w's filters");
  for (size_t d = 0; d < 2; ++d) {
    if (c.padding[d] < 0 || c.stride[d] < 1 || c.dilation[d] < 1)
      return refuse(kBadParameter, "a padding below 0, or a stride or dilation below 1");
    const int room = x.sizes[2 + d] + 2 * c.padding[d] - c.dilation[d] * (w.sizes[2 + d] - 1) - 1;
    if (room < 0 || y.sizes[2 + d] != room / c.stride[d] + 1)
      return refuse(kBadParameter, "y has " + std::to_string(y.sizes[2 + d]) + " windows along axis " +
                                       std::to_string(d) + ", which are not those of x and w");
  }
  return kSuccess;
}

Status check_all(const TensorData& x, const TensorData& w, const TensorData& y, const ConvolutionData& c) {
  for (const auto& [tensor, name] : {std::pair(&x, "x"), std::pair(&w, "w"), std::pair(&y, "y")})
    if (const Status status = check_tensor(*tensor, name)) return status;
  if (c.mode != kCrossCorrelation) return refuse(kNotSupported, "the mode " + std::to_string(c.mode));
  if (const Status status = check_types(x, w, y, c)) return status;
  return check_sizes(x, w, y, c);
}

struct Call {
  Pass pass;
  TensorData x, w, y;
  ConvolutionData convolution;
  char *x_data, *w_data, *y_data, *workspace;
  uint64_t workspace_bytes;
};

// f(x's, w's, y's element) for every product of the convolution: the three passes are sums over one of these.
template <class F>
void for_each_product(const Call& call, F f) {
  const auto& [padding, stride, dilation, mode, computed, groups, math] = call.convolution;
  const auto at = [](const TensorData& of, int a, int b, int c, int d) {
    return ((int64_t{a} * of.sizes[1] + b) * of.sizes[2] + c) * of.sizes[3] + d;
  };
  const int per_group = call.w.sizes[0] / groups, channels = call.w.sizes[1];
  for (int image = 0; image < call.y.sizes[0]; ++image)
    for (int filter = 0; filter < call.y.sizes[1]; ++filter)
      for (int row = 0; row < call.y.sizes[2]; ++row)
        for (int column = 0; column < call.y.sizes[3]; ++column)
          for (int channel = 0; channel < channels; ++channel)
            for (int i = 0; i < call.w.sizes[2]; ++i)
              for (int j = 0; j < call.w.sizes[3]; ++j) {
                const int down = row * stride[0] - padding[0] + i * dilation[0];
                const int across = column * stride[1] - padding[1] + j * dilation[1];
                if (down < 0 || across < 0 || down >= call.x.sizes[2] || across >= call.x.sizes[3]) continue;
                f(at(call.x, image, filter / per_group * channels + channel, down, across),
                  at(call.w, filter, channel, i, j), at(call.y, image, filter, row, column));
              }
}

template <class T>
void compute(const Call& call) {
  using Sum = typename emulator::Element<T>::Sum;
  const auto load = [](const char* data, int64_t at) {
    return Sum(emulator::load<T>(data + at * static_cast<int64_t>(sizeof(T))));
  };
  const TensorData& out = call.pass == Pass::kForward ? call.y : call.pass == Pass::kOfImages ? call.x : call.w;
  char* data = call.pass == Pass::kForward ? call.y_data : call.pass == Pass::kOfImages ? call.x_data : call.w_data;
  std::vector<Sum> sums(static_cast<size_t>(elements(out)));
  for_each_product(call, [&](int64_t x, int64_t w, int64_t y) {
    if (call.pass == Pass::kForward)
      sums[static_cast<size_t>(y)] += load(call.x_data, x) * load(call.w_data, w);
    else if (call.pass == Pass::kOfImages)
      sums[static_cast<size_t>(x)] += load(call.y_data, y) * load(call.w_data, w);
    else
      sums[static_cast<size_t>(w)] += load(call.y_data, y) * load(call.x_data, x);
  });
  for (size_t i = 0; i < sums.size(); ++i) emulator::store<T>(data + i * sizeof(T), sums[i]);
}

void run(const Call& call) {
  if (call.workspace_bytes > 0)  // what was there before is lost
    std::memset(emulator::writable(call.workspace, call.workspace_bytes), 0xA5, call.workspace_bytes);
  switch (call.x.type) {
    case kReal16:
      return compute<emulator::Half>(call);
    case kBrain16:
      return compute<emulator::Brain>(call);
    case kReal32:
      return compute<float>(call);
    default:
      return compute<double>(call);
  }
}

Status propose(const TensorData& x, const TensorData& w, const TensorData& y, const ConvolutionData& c, int wanted,
               int* found, Proposal* proposals) {
  *found = 0;
  if (const Status status = check_all(x, w, y, c)) return status;
  const char* refuses = std::getenv("BACKPLANE_EMULATED_CUDNN_REFUSES");
  if (refuses && std::string_view(refuses) == "all") return kNotSupported;
  // In the library's order: algorithms that round, that vary from call to call, that need memory, and that do not.
  const int tensors = x.type == kReal64 ? kOfDefault : kOfTensors;
  const Proposal all[] = {{kWithWorkspace, kNotSupported, 0, 0, kDeterministic, tensors, {}},
                          {kAtomic, kSuccess, 1, 0, 0, c.math, {}},
                          {kWithWorkspace, kSuccess, 2, 0, kDeterministic, c.math, {}},
                          {kPlain, kSuccess, 3, 0, kDeterministic, c.math, {}}};
  for (const Proposal& one : all)
    if (*found < wanted && !(refuses && one.determinism == kDeterministic)) proposals[(*found)++] = one;
  return kSuccess;
}

uint64_t workspace_of(const TensorData& y, int algorithm) {
  return algorithm == kWithWorkspace ? static_cast<uint64_t>(std::min<int64_t>(elements(y), 100)) * 8 : 0;
}

Status measure(const TensorData& x, const TensorData& w, const TensorData& y, const ConvolutionData& c, int algorithm,
               size_t* bytes) {
  if (const Status status = check_all(x, w, y, c)) return status;
  if (algorithm < kAtomic || algorithm > kPlain) return refuse(kBadParameter, "an algorithm that there is not");
  *bytes = workspace_of(y, algorithm);
  return kSuccess;
}

// Of what the convolution takes: 1 and 0, in the type that is computed in.
bool is_number(const void* at, const ConvolutionData& c, double expected) {
  return (c.computed == kReal64 ? *static_cast<const double*>(at) : *static_cast<const float*>(at)) == expected;
}

Status record(Handle handle, const void* alpha, const void* beta, int algorithm, size_t workspace_bytes, Call call) {
  if (const Status status = check_all(call.x, call.w, call.y, call.convolution)) return status;
  if (!is_number(alpha, call.convolution, 1) || !is_number(beta, call.convolution, 0))
    return refuse(kNotSupported, "an alpha that is not 1, or a beta that is not 0");
  if (call.x.type == kReal32 && call.convolution.math != kOfFused)
    return refuse(kNotSupported, "float32 that may be rounded to TF32");
  if (algorithm != kWithWorkspace && algorithm != kPlain)
    return refuse(kBadParameter, "an algorithm that gives other bits each time, or that there is not");
  call.workspace_bytes = workspace_of(call.y, algorithm);
  if (workspace_bytes < call.workspace_bytes || (call.workspace_bytes > 0 && !call.workspace))
    return refuse(kBadParameter, "the workspace is too small");
  if (!emulator::record_work(handle->stream, [call] { run(call); })) return kExecutionFailed;
  ++convolutions;
  return kSuccess;
}

char* bytes_of(const void* data) { return static_cast<char*>(const_cast<void*>(data)); }

template <class Descriptor, class... Sizes>
Status set_sizes(Descriptor* descriptor, int type, int format, Sizes... sizes) {
  if (format != kChannelsFirst) return refuse(kNotSupported, "the format " + std::to_string(format));
  if (type != kReal32 && type != kReal64 && type != kReal16 && type != kBrain16)
    return refuse(kBadParameter, "the type " + std::to_string(type));
  descriptor->type = type, descriptor->sizes = {sizes...};
  return kSuccess;
}

}  // namespace

// The stand-in has what the plugin asks for, with the plugin's declarations.
extern "C" {
#define BP_DECLARE(result, name, parameters) __attribute__((visibility("default"))) result name parameters;
BP_CUDNN(BP_DECLARE)
#undef BP_DECLARE
// How many convolutions were recorded: what a test asks, to see that a call came here.
__attribute__((visibility("default"))) uint64_t emulated_cudnn_convolutions(void) { return convolutions; }

size_t cudnnGetVersion(void) { return 91400; }
const char* cudnnGetErrorString(Status status) {
  return status == kBadParameter ? "a bad parameter (emulated)" : "a failure (emulated)";
}
Status cudnnCreate(Handle* handle) {
  *handle = new HandleData();
  return kSuccess;
}
Status cudnnDestroy(Handle handle) {
  delete handle;
  return kSuccess;
}
Status cudnnSetStream(Handle handle, driver::Stream stream) {
  handle->stream = stream;
  return kSuccess;
}

#define BP_DEFINE_DESCRIPTOR(what)                         \
  Status cudnnCreate##what##Descriptor(what* descriptor) { \
    *descriptor = new what##Data();                        \
    return kSuccess;                                       \
  }                                                        \
  Status cudnnDestroy##what##Descriptor(what descriptor) { \
    delete descriptor;                                     \
    return kSuccess;                                       \
  }
BP_DEFINE_DESCRIPTOR(Tensor)
BP_DEFINE_DESCRIPTOR(Filter)
BP_DEFINE_DESCRIPTOR(Convolution)
#undef BP_DEFINE_DESCRIPTOR

Status cudnnSetTensor4dDescriptor(Tensor tensor, int format, int type, int n, int c, int h, int w) {
  return set_sizes(tensor, type, format, n, c, h, w);
}
Status cudnnSetFilter4dDescriptor(Filter filter, int type, int format, int k, int c, int h, int w) {
  return set_sizes(filter, type, format, k, c, h, w);
}
Status cudnnSetConvolution2dDescriptor(Convolution convolution, int down_padding, int across_padding, int down_stride,
                                       int across_stride, int down_dilation, int across_dilation, int mode,
                                       int computed) {
  *convolution = {{down_padding, across_padding},
                  {down_stride, across_stride},
                  {down_dilation, across_dilation},
                  mode,
                  computed,
                  1,
                  kOfDefault};
  return kSuccess;
}
Status cudnnSetConvolutionGroupCount(Convolution convolution, int groups) {
  convolution->groups = groups;
  return kSuccess;
}
Status cudnnSetConvolutionMathType(Convolution convolution, int math) {
  if (math < kOfDefault || math > kOfFused) return refuse(kBadParameter, "products of kind " + std::to_string(math));
  convolution->math = math;
  return kSuccess;
}

// Of each pass, the three functions: `x`, `w` and `y` by name, in the order in which the pass takes its operands.
#define BP_DEFINE_PASS(Name, kPass, First, first, Second, second, Third, third)                                   \
  Status cudnnGetConvolution##Name##Algorithm_v7(Handle, First first, Second second, Convolution c, Third third,  \
                                                 int wanted, int* found, Proposal* proposals) {                   \
    return propose(*x, *w, *y, *c, wanted, found, proposals);                                                     \
  }                                                                                                               \
  Status cudnnGetConvolution##Name##WorkspaceSize(Handle, First first, Second second, Convolution c, Third third, \
                                                  int algorithm, size_t* bytes) {                                 \
    return measure(*x, *w, *y, *c, algorithm, bytes);                                                             \
  }                                                                                                               \
  Status cudnnConvolution##Name(Handle handle, const void* alpha, First first, const void* first##_data,          \
                                Second second, const void* second##_data, Convolution c, int algorithm,           \
                                void* workspace, size_t workspace_bytes, const void* beta, Third third,           \
                                void* third##_data) {                                                             \
    return record(                                                                                                \
        handle, alpha, beta, algorithm, workspace_bytes,                                                          \
        {kPass, *x, *w, *y, *c, bytes_of(x_data), bytes_of(w_data), bytes_of(y_data), bytes_of(workspace), 0});   \
  }
BP_DEFINE_PASS(Forward, Pass::kForward, Tensor, x, Filter, w, Tensor, y)
BP_DEFINE_PASS(BackwardData, Pass::kOfImages, Filter, w, Tensor, y, Tensor, x)
BP_DEFINE_PASS(BackwardFilter, Pass::kOfKernels, Tensor, x, Tensor, y, Filter, w)
#undef BP_DEFINE_PASS

}  // extern "C"
