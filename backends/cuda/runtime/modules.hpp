// The PTX that is compiled into the plugin, and the functions in it, loaded when a kernel first needs them.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "driver/driver.hpp"

namespace backplane::cuda {

// The text of a module by name ("typed_float32"); nullptr for an unknown name.
const char* module_text(const char* name);

// Of one device, whose context is current in every call. Any thread may call.
class Modules {
 public:
  explicit Modules(const Driver& driver) : driver_(driver) {}
  Modules(const Modules&) = delete;

  void unload();
  // Of the plugin's own PTX; and of a module that the caller names and has the text of, which no other text shares.
  driver::Function function(const std::string& module, const std::string& name) {
    return function(module, name, nullptr);
  }
  driver::Function function(const std::string& module, const std::string& name, const char* text);

 private:
  const Driver& driver_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, driver::Module> loaded_;
  std::map<std::string, std::map<std::string, driver::Function>> functions_;  // by module
};

}  // namespace backplane::cuda
