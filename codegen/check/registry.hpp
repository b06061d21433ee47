// All entries of a run by full name: what formulas may call.
//
// Borrows the entries; files must outlive it. Reports names that are defined twice.
#pragma once

#include <map>
#include <string>

#include "schema/model.hpp"

namespace backplane::codegen {

class Registry {
 public:
  Registry(const std::vector<std::unique_ptr<RegistryFile>>& files, Diagnostics& diagnostics);

  // `name` as a formula of namespace `ns` writes it: there first, then in bp, or in full. nullptr: none.
  const Entry* find(std::string_view name, std::string_view ns) const;
  const Entry* find_full(std::string_view full_name) const;
  // The op that `symbol` means between, or at, `operands` Tensors in formulas of `ns`: its own, or bp's. nullptr: none.
  const Entry* find_operator(std::string_view symbol, size_t operands, std::string_view ns) const;
  // How names that `ns` can write without their namespace are spelled.
  std::vector<std::string_view> names_for(std::string_view ns) const;
  // The three ops that FIT nodes need are all there.
  bool can_fit() const;

 private:
  void check_aliases(const std::vector<std::unique_ptr<RegistryFile>>& files, Diagnostics& diagnostics) const;
  void check_definitions(const std::vector<std::unique_ptr<RegistryFile>>& files, Diagnostics& diagnostics) const;
  void add_operator(const Entry& entry, Diagnostics& diagnostics);

  std::map<std::string, const Entry*, std::less<>> by_name_;
  std::map<std::string, const Entry*, std::less<>> by_operator_;  // "bp::2*"
};

inline constexpr const char* kFitNames[3] = {"bp::sum_to", "bp::cast", "bp::real"};

}  // namespace backplane::codegen
