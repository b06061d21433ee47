// The families of kernels: a file that has rows for the backend "cpu" registers them through a Family of its own, and
// no list names it.
#pragma once

#include "backplane/plugin.hpp"

namespace backplane::cpu {

using plugin::Registrar;

// Lives as long as the process, at namespace scope; known before the plugin's entry point runs.
class Family {
 public:
  using Register = void (*)(const Registrar&);
  explicit Family(Register rows) : rows_(rows), next_(first_) { first_ = this; }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  static void register_all(const Registrar& registrar) {
    for (const Family* family = first_; family != nullptr; family = family->next_) family->rows_(registrar);
  }

 private:
  static inline constinit const Family* first_ = nullptr;
  Register rows_;
  const Family* next_;
};

}  // namespace backplane::cpu
