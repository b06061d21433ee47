// Opening NVRTC, and a compilation; see nvrtc.hpp.
#include "libraries/nvrtc.hpp"

#include "backplane/error.hpp"

namespace backplane::cuda {
namespace {

constexpr LibraryName kName{"libnvrtc.so.13", "nvidia-cuda-nvrtc", "regions of compiled graphs run op by op"};

struct Opened {
  nvrtc::Functions functions;
  std::string reason;
};

const Opened* open_nvrtc() {
  auto* made = new Opened();  // never closed
  OpenLibrary library(kName);
  BP_NVRTC(BP_CUDA_LIBRARY_FIND)
  made->reason = library.reason();
  return made;
}

class Program {
 public:
  Program(const nvrtc::Functions& library, const std::string& source, const std::vector<SourceHeader>& headers)
      : library_(library) {
    std::vector<const char*> texts, names;
    for (const SourceHeader& header : headers) texts.push_back(header.text), names.push_back(header.name);
    check(library_.nvrtcCreateProgram(&program_, source.c_str(), "region.cu", static_cast<int>(headers.size()),
                                      texts.data(), names.data()),
          "nvrtcCreateProgram");
  }
  ~Program() { (void)library_.nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::string compile(const std::vector<const char*>& options) {
    const nvrtc::Result result =
        library_.nvrtcCompileProgram(program_, static_cast<int>(options.size()), options.data());
    BP_CHECK(result != nvrtc::kCompilation, INTERNAL, "cuda: NVRTC refuses a region's kernel:\n",
             text(library_.nvrtcGetProgramLogSize, library_.nvrtcGetProgramLog, "nvrtcGetProgramLog"));
    check(result, "nvrtcCompileProgram");
    return text(library_.nvrtcGetPTXSize, library_.nvrtcGetPTX, "nvrtcGetPTX");
  }

 private:
  void check(nvrtc::Result result, const char* call) const {
    BP_CHECK(result == nvrtc::kSuccess, DEVICE, "cuda: ", call, ": ", library_.nvrtcGetErrorString(result));
  }
  template <class Size, class Get>
  std::string text(Size size_of, Get get, const char* call) const {
    size_t size = 0;  // with the NUL at its end
    check(size_of(program_, &size), call);
    std::string made(size, '\0');
    check(get(program_, made.data()), call);
    if (!made.empty()) made.pop_back();
    return made;
  }

  const nvrtc::Functions& library_;
  nvrtc::Program program_ = nullptr;
};

}  // namespace

const nvrtc::Functions* find_nvrtc(std::string* reason) {
  static const Opened* opened = open_nvrtc();
  if (reason) *reason = opened->reason;
  return opened->reason.empty() ? &opened->functions : nullptr;
}

std::string compile_to_ptx(const nvrtc::Functions& library, const std::string& source,
                           const std::vector<SourceHeader>& headers, const std::vector<const char*>& options) {
  return Program(library, source, headers).compile(options);
}

}  // namespace backplane::cuda
