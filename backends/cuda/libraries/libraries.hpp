// A device's handles of NVIDIA's libraries. Each is created at its first use.
#pragma once

#include <memory>
#include <mutex>

#include "backplane/abi/value.h"
#include "libraries/convolutions.hpp"
#include "libraries/factorizations.hpp"
#include "libraries/products.hpp"
#include "libraries/transforms.hpp"

namespace backplane::cuda {

// Any thread; the device's context is the thread's current one.
class Libraries {
 public:
  Products* products();              // nullptr: there is no cuBLASLt
  Transforms* transforms();          // nullptr: there is no cuFFT
  Factorizations* factorizations();  // nullptr: there is no cuSOLVER
  Convolutions* convolutions();      // nullptr: there is no cuDNN
  void close();

 private:
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<Products> products_;
  std::unique_ptr<Transforms> transforms_;
  std::unique_ptr<Factorizations> factorizations_;
  std::unique_ptr<Convolutions> convolutions_;
};

// Of the extension "features", a property for each library: its version, or the replacement for it; nullptr
// past the last.
const char* library_property(uint32_t index, bp_value& value);

}  // namespace backplane::cuda
