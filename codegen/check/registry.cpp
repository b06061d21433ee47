// Name look-up over the whole registry; see registry.hpp.
#include "check/registry.hpp"

#include <algorithm>
#include <utility>

#include "check/types.hpp"

namespace backplane::codegen {
namespace {

std::string operator_key(std::string_view symbol, size_t operands, std::string_view ns) {
  return std::string(ns) + "::" + std::to_string(operands) + std::string(symbol);
}

}  // namespace

Registry::Registry(const std::vector<std::unique_ptr<RegistryFile>>& files, Diagnostics& diagnostics) {
  for (const auto& file : files) {
    for (const Entry& entry : file->entries) {
      if (entry.signature.name.empty()) continue;
      if (!entry.operator_symbol.empty()) add_operator(entry, diagnostics);
      const auto [known, inserted] = by_name_.emplace(entry.full_name, &entry);
      if (inserted) continue;
      const Location first = known->second->where;
      diagnostics.error(entry.where, "op '" + entry.full_name + "' is defined twice, first at " +
                                         std::string(first.file) + ":" + std::to_string(first.line) +
                                         "; rename one, or give it an overload: " + entry.name() + ".OVERLOAD");
    }
  }
  check_aliases(files, diagnostics);
  check_definitions(files, diagnostics);
}

// A call has one meaning.
void Registry::check_definitions(const std::vector<std::unique_ptr<RegistryFile>>& files,
                                 Diagnostics& diagnostics) const {
  for (const auto& file : files) {
    for (const Definition& definition : file->shared.definitions) {
      const bool builtin = find_builtin(definition.word) || definition.word == "polynomial";
      if (builtin || find(definition.word, file->ns))
        diagnostics.error(
            definition.name.location(),
            "'" + definition.word + "' is " + (builtin ? "a builtin" : "an op") + " already; choose another name");
    }
  }
}

void Registry::add_operator(const Entry& entry, Diagnostics& diagnostics) {
  const auto [known, inserted] =
      by_operator_.emplace(operator_key(entry.operator_symbol.value, entry.operands(), entry.ns), &entry);
  if (!inserted)
    diagnostics.error(entry.operator_symbol.location(), "operator '" + entry.operator_symbol.value + "' means '" +
                                                            known->second->name() + "' already; remove one of the two");
}

const Entry* Registry::find_operator(std::string_view symbol, size_t operands, std::string_view ns) const {
  auto found = by_operator_.find(operator_key(symbol, operands, ns));
  if (found == by_operator_.end()) found = by_operator_.find(operator_key(symbol, operands, "bp"));
  return found == by_operator_.end() ? nullptr : found->second;
}

// An alias is a name of Python's: what else has it would be hidden.
void Registry::check_aliases(const std::vector<std::unique_ptr<RegistryFile>>& files, Diagnostics& diagnostics) const {
  std::map<std::string, const Entry*, std::less<>> owners;
  for (const auto& file : files) {
    for (const Entry& entry : file->entries) {
      for (const Text& alias : entry.aliases) {
        const std::string full = entry.ns + "::" + alias.value;
        const Entry* owner = find_full(full);
        if (!owner) owner = std::exchange(owners[full], &entry);
        if (owner)
          diagnostics.error(alias.location(), "alias '" + alias.value + "' of '" + entry.name() + "' is a name of '" +
                                                  owner->name() + "' already; choose another");
      }
    }
  }
}

const Entry* Registry::find_full(std::string_view full_name) const {
  const auto found = by_name_.find(full_name);
  return found == by_name_.end() ? nullptr : found->second;
}

const Entry* Registry::find(std::string_view name, std::string_view ns) const {
  if (name.find("::") != std::string_view::npos) return find_full(name);
  const std::string own = std::string(ns) + "::" + std::string(name);
  if (const Entry* entry = find_full(own)) return entry;
  return find_full("bp::" + std::string(name));
}

std::vector<std::string_view> Registry::names_for(std::string_view ns) const {
  std::vector<std::string_view> names;
  for (const auto& [full, entry] : by_name_)
    if (entry->ns == ns || entry->ns == "bp") names.push_back(entry->signature.name);
  return names;
}

bool Registry::can_fit() const {
  return std::all_of(std::begin(kFitNames), std::end(kFitNames), [&](const char* name) { return find_full(name); });
}

}  // namespace backplane::codegen
