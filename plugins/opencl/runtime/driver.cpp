// Devices and programs; see driver.hpp.
#include "driver.hpp"

#include "sources.hpp"

namespace opencl {
namespace {

template <class T>
T device_info(cl_device_id id, cl_device_info what) {
  T value{};
  check(clGetDeviceInfo(id, what, sizeof(value), &value, nullptr), "clGetDeviceInfo");
  return value;
}

std::string build_log(cl_program program, cl_device_id id) {
  size_t size = 0;
  clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string text(size, '\0');
  clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, size, text.data(), nullptr);
  return text.substr(0, 2000);
}

}  // namespace

void check(cl_int status, const char* call) {
  if (status == CL_SUCCESS) return;
  const bool memory = status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_RESOURCES ||
                      status == CL_OUT_OF_HOST_MEMORY || status == CL_INVALID_BUFFER_SIZE;
  ::backplane::detail::fail(memory ? BP_ERROR_MEMORY : BP_ERROR_DEVICE, "opencl: ", call, " failed with code ", status);
}

Kernel::~Kernel() {
  if (kernel != nullptr) clReleaseKernel(kernel);
  if (program != nullptr) clReleaseProgram(program);
}

Device::Device(cl_device_id id) : id_(id) {
  memory_ = device_info<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  largest_block_ = device_info<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  has_float64_ = device_info<cl_device_fp_config>(id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  cl_int status = CL_SUCCESS;
  context_ = clCreateContext(nullptr, 1, &id, nullptr, nullptr, &status);
  check(status, "clCreateContext");
}

Device::~Device() {
  kernels_.clear();
  clReleaseContext(context_);
}

std::string Device::name() const {
  char text[100] = {};
  clGetDeviceInfo(id_, CL_DEVICE_NAME, sizeof(text) - 1, text, nullptr);
  return text;
}

Kernel& Device::kernel(const std::string& name, const std::string& defines) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<Kernel>& entry = kernels_[name + "\n" + defines];
  if (entry) return *entry;
  auto made = std::make_unique<Kernel>();
  const std::string head = (has_float64_ ? "" : "#define BP_SCALAR_WITHOUT_FLOAT64\n") + defines;
  const char* texts[] = {head.c_str(), kScalarSource, kKernelsSource};
  cl_int status = CL_SUCCESS;
  made->program = clCreateProgramWithSource(context_, 3, texts, nullptr, &status);
  check(status, "clCreateProgramWithSource");
  status = clBuildProgram(made->program, 1, &id_, "-cl-std=CL1.2 -w", nullptr, nullptr);
  BP_CHECK(status == CL_SUCCESS, DEVICE, "opencl: the driver does not compile ", name, " with\n", defines,
           build_log(made->program, id_));
  made->kernel = clCreateKernel(made->program, name.c_str(), &status);
  check(status, "clCreateKernel");
  entry = std::move(made);
  return *entry;
}

int32_t Driver::count() {
  std::lock_guard lock(mutex_);
  if (!looked_) {
    cl_uint n = 0;
    cl_platform_id platforms[16];
    const cl_int status = clGetPlatformIDs(16, platforms, &n);
    BP_CHECK(status == CL_SUCCESS && n > 0, DEVICE, "no OpenCL platform (clGetPlatformIDs: code ", status,
             "). Fix: install a driver, as in Debian's pocl-opencl-icd");
    for (cl_uint p = 0; p < n && p < 16; ++p) {
      cl_uint found = 0;
      cl_device_id ids[32];
      if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 32, ids, &found) != CL_SUCCESS) continue;
      for (cl_uint i = 0; i < found && i < 32; ++i) devices_.push_back(std::make_unique<Device>(ids[i]));
    }
    looked_ = true;
  }
  return static_cast<int32_t>(devices_.size());
}

Device& Driver::device(int32_t ordinal) {
  const int32_t n = count();
  BP_CHECK(ordinal >= 0 && ordinal < n, VALUE, "opencl: no device ", ordinal, "; there are ", n);
  return *devices_[static_cast<size_t>(ordinal)];  // never changes once it was looked for
}

void Driver::stop() {
  std::lock_guard lock(mutex_);
  devices_.clear();
  looked_ = false;
}

}  // namespace opencl
