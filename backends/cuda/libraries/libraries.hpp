// What one device has of NVIDIA's libraries: each made when it is first used.
#pragma once

#include <memory>
#include <mutex>

#include "backplane/abi/device_extensions.h"
#include "libraries/products.hpp"
#include "libraries/transforms.hpp"

namespace backplane::cuda {

// Any thread; the device's context is the thread's current one.
class Libraries {
 public:
  Products* products();      // nullptr: there is no cuBLASLt
  Transforms* transforms();  // nullptr: there is no cuFFT
  void close();

 private:
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<Products> products_;
  std::unique_ptr<Transforms> transforms_;
};

// The extension "features": a property for each library, that says its version or what is done without it. Features it
// has none: asking for one would open the libraries.
const bp_extension_features& library_features();

}  // namespace backplane::cuda
