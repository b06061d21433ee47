// Launches; see launch.hpp.
#include "kernels/launch.hpp"

namespace opencl {
namespace {

constexpr size_t kGroup = 64;  // items of a work group; every device takes so many of a kernel without local memory

// The type of an element in memory, in OpenCL C.
const char* stored_type(bp_dtype dtype) {
  static constexpr const char* kTypes[] = {"uchar", "char",   "short",  "int",   "long",   "uchar",  "ushort", "uint",
                                           "ulong", "ushort", "ushort", "float", "double", "float2", "double2"};
  return kTypes[dtype];
}

}  // namespace

std::string scalar_name(bp_dtype dtype) {
  return dtype == BP_FLOAT16 || dtype == BP_BFLOAT16 ? "float32" : dtype_name(dtype);
}

std::string defines_for(const std::string& prefix, bp_dtype dtype) {
  std::string load = "(x)", store = "(x)", scalar = stored_type(dtype);
  if (dtype == BP_BOOL) {
    load = "((x) != 0)", store = "((x) ? 1 : 0)", scalar = "bool";
  } else if (dtype == BP_FLOAT16 || dtype == BP_BFLOAT16) {
    load = std::string("bp_float32_of_") + dtype_name(dtype) + "(x)";
    store = std::string("(ushort)bp_") + dtype_name(dtype) + "_of_float32(x)", scalar = "float";
  }
  return "#define " + prefix + "_T " + stored_type(dtype) + "\n#define " + prefix + "_S " + scalar + "\n#define " +
         prefix + "_LOAD(x) " + load + "\n#define " + prefix + "_STORE(x) " + store + "\n";
}

std::string width_defines(const std::string& prefix, bp_dtype dtype) {
  const char* type = dispatch_width(dtype, []<class T>() {
    return sizeof(T) == 1   ? "uchar"
           : sizeof(T) == 2 ? "ushort"
           : sizeof(T) == 4 ? "uint"
           : sizeof(T) == 8 ? "ulong"
                            : "ulong2";
  });
  return "#define " + prefix + "_T " + type + "\n#define " + prefix + "_S " + type + "\n#define " + prefix +
         "_LOAD(x) (x)\n#define " + prefix + "_STORE(x) (x)\n";
}

Walk::Walk(Context call, const bp_tensor& out, size_t n_operands, const bp_dtype* dtypes) : strides(n_operands) {
  const bp_loop* given = call.frame->loop;
  if (given == nullptr) {
    sizes = {static_cast<int64_t>(out.nbytes / kItemSize[out.dtype])};
    for (size_t k = 0; k < n_operands; ++k) strides[k] = {kItemSize[dtypes[k]]};
    return;
  }
  sizes.assign(given->sizes, given->sizes + given->rank);
  for (size_t k = 0; k < n_operands; ++k) {
    const int64_t* own = given->strides + static_cast<int64_t>(k) * given->rank;
    strides[k].assign(own, own + given->rank);
  }
}

Walk::Walk(Ints shape, std::initializer_list<Ints> each, int64_t item) : sizes(shape.begin(), shape.end()) {
  for (const Ints& own : each) {
    strides.emplace_back(own.begin(), own.end());
    for (int64_t& stride : strides.back()) stride *= item;
  }
}

Launch::Launch(Context call, const char* kernel, const std::string& defines)
    : stream_(stream_of(call.frame->stream)),
      ticket_(call.frame->ticket),
      kernel_(stream_.device().kernel(kernel, "#define KERNEL_" + std::string(kernel) + "\n" + defines)) {}

Launch& Launch::tensor(const bp_tensor& tensor, int64_t more_bytes) {
  memory(tensor.dl.data);
  offsets_.push_back(arguments_.size());
  return value(static_cast<int64_t>(tensor.dl.byte_offset) + more_bytes);
}

Launch& Launch::memory(void* base) {
  arguments_.push_back({{}, memory_of(base)});
  return *this;
}

Launch& Launch::value(int64_t number) { return bytes(number); }

Launch& Launch::watch(std::string message) {
  watched_ = std::move(message);
  return *this;
}

void Launch::enqueue(int64_t items, const std::vector<Argument>& arguments) {
  const cl_mem word = watched_.empty() ? nullptr : stream_.new_watch(ticket_, watched_);
  {
    std::lock_guard lock(kernel_.mutex);
    cl_uint i = 0;
    for (const Argument& argument : arguments) {
      if (argument.bytes.empty())
        check(clSetKernelArg(kernel_.kernel, i++, sizeof(cl_mem), &argument.memory), "clSetKernelArg");
      else
        check(clSetKernelArg(kernel_.kernel, i++, argument.bytes.size(), argument.bytes.data()), "clSetKernelArg");
    }
    if (word != nullptr) check(clSetKernelArg(kernel_.kernel, i++, sizeof(word), &word), "clSetKernelArg");
    check(clSetKernelArg(kernel_.kernel, i, sizeof(items), &items), "clSetKernelArg");
    const size_t group = kGroup, global = (static_cast<size_t>(items) + group - 1) / group * group;
    check(clEnqueueNDRangeKernel(stream_.queue(), kernel_.kernel, 1, nullptr, &global, &group, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
  }
  if (word != nullptr) stream_.watch_recorded(word);
}

void Launch::run(int64_t items) {
  if (items > 0) enqueue(items, arguments_);
}

void Launch::run(const Walk& walk) {
  if (walk.count() == 0) return;
  const size_t rank = walk.sizes.size(), inner = std::min<size_t>(rank, kMaxDims), outer = rank - inner;
  Loop loop;
  loop.rank = static_cast<int64_t>(inner);
  for (size_t d = 0; d < inner; ++d) {
    loop.sizes[d] = walk.sizes[outer + d];
    loop.count *= loop.sizes[d];
    for (size_t k = 0; k < walk.strides.size(); ++k) loop.strides[k][d] = walk.strides[k][outer + d];
  }
  walk_dims<kMaxOperands>(
      static_cast<int32_t>(outer), [&](int32_t d) { return walk.sizes[static_cast<size_t>(d)]; },
      [&](size_t k, int32_t d) { return k < walk.strides.size() ? walk.strides[k][static_cast<size_t>(d)] : 0; },
      [&](const auto& at) {
        std::vector<Argument> arguments = arguments_;
        for (size_t k = 0; k < offsets_.size() && k < walk.strides.size(); ++k) {
          int64_t offset = 0;
          std::memcpy(&offset, arguments[offsets_[k]].bytes.data(), sizeof(offset));
          offset += at[k];
          std::memcpy(arguments[offsets_[k]].bytes.data(), &offset, sizeof(offset));
        }
        arguments.push_back({{reinterpret_cast<const char*>(&loop), sizeof(loop)}, nullptr});
        enqueue(loop.count, arguments);
      });
}

void move(Context call, const bp_tensor& to, int64_t to_bytes, const bp_tensor& from, Ints shape, Ints to_strides,
          Ints from_strides) {
  if (count_of(shape) == 0) return;
  Launch(call, "unary", width_defines("OUT", to.dtype) + width_defines("X", to.dtype) + "#define FUNCTION(a) (a)\n")
      .tensor(to, to_bytes)
      .tensor(from)
      .run(Walk(shape, {to_strides, from_strides}, kItemSize[to.dtype]));
}

}  // namespace opencl
