// The functions of a vendor's library, looked up when a kernel is first launched: nothing of it is linked, so that the
// plugin also loads on machines without it.
#pragma once

#include <dlfcn.h>

#include "backplane/error.hpp"

namespace backplane::plugin {

class VendorLibrary {
 public:
  explicit VendorLibrary(const char* file) : file_(file), handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    BP_CHECK(handle_, DEVICE, file, " was not found. Fix: install the driver that brings it");
  }
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(dlsym(handle_, name));
    BP_CHECK(function, DEVICE, file_, " lacks ", name, ". Fix: install a newer driver");
  }

 private:
  const char* const file_;
  void* const handle_;  // kept open: other plugins use the same library
};

}  // namespace backplane::plugin
