// The whole registry: every entry compiled, and decompositions that lead back to themselves.
#include <algorithm>
#include <map>

#include "check/compiled.hpp"
#include "check/emitted_names.hpp"
#include "check/facts.hpp"
#include "check/names.hpp"
#include "check/op_compiler.hpp"

namespace backplane::codegen {
namespace {

// Depth first over "decomposes into", without recursion: a stranger's chain may be long.
class CycleFinder {
 public:
  explicit CycleFinder(const std::vector<CompiledOp>& ops) {
    for (const CompiledOp& op : ops) {
      const CompiledFormula* formula = op.find(BP_RULE_DECOMPOSE);
      if (!formula) continue;
      Vertex& vertex = vertices_[op.entry->full_name];
      vertex.formula = formula;
      vertex.entry = op.entry;
      const std::vector<bool> used = op.program.reachable(formula->roots);
      for (size_t i = 0; i < used.size(); ++i) {
        const Node& node = op.program.nodes()[i];
        if (used[i] && node.kind == BP_NODE_CALL)
          vertex.calls.push_back(op.program.names()[static_cast<size_t>(node.imm)]);
      }
    }
  }

  void report(Diagnostics& diagnostics) {
    for (auto& [name, vertex] : vertices_)
      if (vertex.state == State::kNew) walk(name, diagnostics);
  }

 private:
  enum class State : uint8_t { kNew, kOpen, kDone };
  struct Vertex {
    const Entry* entry = nullptr;
    const CompiledFormula* formula = nullptr;
    std::vector<std::string> calls;
    size_t next = 0;
    State state = State::kNew;
  };

  void walk(const std::string& start, Diagnostics& diagnostics) {
    std::vector<std::string> path = {start};
    vertices_[start].state = State::kOpen;
    while (!path.empty()) {
      Vertex& vertex = vertices_[path.back()];
      if (vertex.next == vertex.calls.size()) {
        vertex.state = State::kDone;
        path.pop_back();
        continue;
      }
      const std::string& callee = vertex.calls[vertex.next++];
      const auto found = vertices_.find(callee);
      if (found == vertices_.end() || found->second.state == State::kDone) continue;
      if (found->second.state == State::kOpen) {
        report_cycle(path, callee, diagnostics);
        continue;
      }
      found->second.state = State::kOpen;
      path.push_back(callee);
    }
  }

  void report_cycle(const std::vector<std::string>& path, const std::string& back_to, Diagnostics& diagnostics) {
    const auto first = std::find(path.begin(), path.end(), back_to);
    std::string cycle;
    for (auto name = first; name != path.end(); ++name) cycle += *name + " -> ";
    const Vertex& vertex = vertices_[back_to];
    diagnostics.error(vertex.entry->decompose->where, "decompositions lead back to their start: " + cycle + back_to +
                                                          "; make one of them a primitive or write it by other ops");
  }

  std::map<std::string, Vertex> vertices_;
};

}  // namespace

CompiledRegistry check(std::vector<std::unique_ptr<RegistryFile>> files, Diagnostics& diagnostics) {
  CompiledRegistry registry;
  registry.files = std::move(files);
  check_emitted_names(registry.files, diagnostics);
  registry.names = std::make_unique<Registry>(registry.files, diagnostics);
  std::vector<CompiledOp> all;
  for (const auto& file : registry.files) {
    for (const Entry& entry : file->entries) {
      if (entry.damaged) continue;
      all.push_back(OpCompiler(*registry.names, entry, diagnostics).compile());
    }
  }
  registry.scalars = compile_scalars(registry.files, *registry.names, diagnostics);
  registry.rewrites = compile_rewrites(registry.files, *registry.names, diagnostics);
  registry.spellings = compile_spellings(registry.files, *registry.names, diagnostics);
  CycleFinder(all).report(diagnostics);
  derive_faults(all, diagnostics);
  if (diagnostics.empty())
    refuse_unused_names(registry.files, diagnostics);  // else the rule that uses one may be damaged
  for (CompiledOp& op : all)
    if (!op.entry->imported) registry.ops.push_back(std::move(op));
  return registry;
}

}  // namespace backplane::codegen
