// Laws of the extension "compiler": what a compiled graph gives is what its ops give one by one.
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "backplane/abi/extensions.h"
#include "backplane/graph.hpp"
#include "call.hpp"
#include "compare.hpp"
#include "laws/table.hpp"

namespace backplane::conformance {
namespace {

// What compilers claim: elementwise ops, a value that several read, a row of numbers, a reduction behind them.
std::vector<Tensor> chain(std::span<const Tensor> inputs) {
  const Tensor &x = inputs[0], &y = inputs[1];
  const Tensor product = run_op("bp::multiply", {value(x), value(y)});
  const Tensor shifted = run_op("bp::add", {value(product), value(int64_t{1})});
  const Tensor turned = run_op("bp::negative", {value(shifted)});
  const Tensor largest = run_op("bp::maximum", {value(turned), value(x)});
  return {largest, run_op("bp::sum", {value(run_op("bp::subtract", {value(largest), value(product)}))}), turned};
}

struct Case {
  bp_dtype dtype;
  std::vector<int64_t> shape;
  const char* layout;
  std::string text() const { return std::string(dtype_name(dtype)) + " of " + shape_text(shape) + ", " + layout; }
};

// A graph, and what its ops give for several choices of its inputs.
class Compared {
 public:
  Compared(const Case& of, bp_device device, uint64_t choices = 1) : text_(of.text()), choices_(choices) {
    for (uint64_t k = 0; k < choices; ++k) {
      Choice& one = choices_[k];
      for (uint64_t seed = 1; seed <= 2; ++seed) {
        one.placed.push_back(place(draw({of.shape, of.dtype, "", ""}, of.dtype, 2 * k + seed), of.layout, device));
        one.inputs.push_back(one.placed.back().tensor);
      }
      for (const Tensor& result : chain(one.inputs)) one.expected.push_back(from_tensor(result));
    }
    graph_ = make_graph(chain, choices_.front().inputs);
  }

  // "": the graph gives what the ops gave.
  std::string run(size_t choice = 0) const {
    const Choice& one = choices_[choice];
    Entry within;
    within.compare = "close";
    std::vector<Array> found;
    for (const Tensor& result : graph_.call(one.inputs)) found.push_back(from_tensor(result));
    const std::string what = difference(within, found, one.expected);
    for (const Placed& input : one.placed)
      if (!input.is_untouched()) return text_ + ": the graph wrote into an input";
    return what.empty() ? "" : text_ + ": " + what;
  }

 private:
  struct Choice {
    std::vector<Placed> placed;
    std::vector<Tensor> inputs;
    std::vector<Array> expected;
  };
  std::string text_;
  std::vector<Choice> choices_;
  Graph graph_;
};

std::vector<Case> cases_of(bp_dtype_mask computes) {
  std::vector<Case> cases;
  for (const bp_dtype dtype : {BP_FLOAT32, BP_FLOAT64, BP_FLOAT16, BP_BFLOAT16, BP_INT32, BP_INT64, BP_UINT8}) {
    if (!(computes & BP_DTYPE_BIT(dtype))) continue;
    for (const char* layout : {"", "transposed", "strided", "offset"})
      for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 5}, {67, 33}, {1}, {}, {0, 4}, {1000}})
        cases.push_back({static_cast<bp_dtype>(dtype), shape, layout});
  }
  return cases;
}

// Where the host keeps executables meanwhile; empty: nowhere.
class ExecutablesIn {
 public:
  explicit ExecutablesIn(const std::string& folder) {
    if (const char* named = std::getenv(kVariable)) before_ = named;
    setenv(kVariable, folder.c_str(), 1);
  }
  ~ExecutablesIn() { before_ ? setenv(kVariable, before_->c_str(), 1) : unsetenv(kVariable); }
  ExecutablesIn(const ExecutablesIn&) = delete;

 private:
  static constexpr const char* kVariable = "BACKPLANE_EXECUTABLES";
  std::optional<std::string> before_;
};

struct NewFolder {
  std::string path = (std::filesystem::temp_directory_path() / "backplane-conformance-XXXXXX").string();
  NewFolder() { BP_CHECK(mkdtemp(path.data()), VALUE, "cannot make a folder ", path); }
  ~NewFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  NewFolder(const NewFolder&) = delete;
};

void graphs_are_their_ops(bp_device device, bp_dtype_mask computes) {
  const ExecutablesIn nowhere("");
  for (const Case& one : cases_of(computes)) {
    const std::string what = Compared(one, device).run();
    BP_CHECK(what.empty(), DATA, "a compiled graph of ", what);
  }
}

// One graph for all threads, with inputs of their own; on streams of their own where there are any.
void executables_run_at_once(const Table& table, bp_dtype_mask computes) {
  constexpr size_t kThreads = 4;
  const ExecutablesIn nowhere("");
  for (const Case& one : cases_of(computes)) {
    if (one.shape != std::vector<int64_t>{67, 33} || *one.layout) continue;
    const Compared compared(one, table.device(), kThreads);
    std::vector<std::string> said(kThreads);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        try {
          const backplane::Stream own(table.device());
          const StreamScope scope(own);
          for (int i = 0; i < 8 && said[t].empty(); ++i) said[t] = compared.run(t);
        } catch (const Error& error) {
          said[t] = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& what : said) BP_CHECK(what.empty(), DATA, "a compiled graph that four threads run: ", what);
  }
}

// What another process compiled is taken from its file; here the second graph takes the first one's.
void kept_executables_are_the_compiled_ones(bp_device device, bp_dtype_mask computes) {
  const NewFolder folder;
  const ExecutablesIn kept(folder.path);
  for (const Case& one : cases_of(computes)) {
    if (*one.layout) continue;
    for (const char* which : {"compiled", "read back"}) {
      const std::string what = Compared(one, device).run();
      BP_CHECK(what.empty(), DATA, "a graph whose executables were ", which, ", of ", what);
    }
  }
  BP_CHECK(!std::filesystem::is_empty(folder.path), DATA,
           "of no graph did cache_key and serialize give what can be kept");
}

}  // namespace

void add_compiler_laws(const Table& table, bp_dtype_mask computes, Laws& laws) {
  const auto* compiler = table.extension<bp_extension_compiler>(BP_EXTENSION_COMPILER);
  add_law(laws, BP_EXTENSION_COMPILER, "graphs", compiler,
          [&table, computes](auto&) { graphs_are_their_ops(table.device(), computes); });
  add_law(laws, BP_EXTENSION_COMPILER, "threads", compiler,
          [&table, computes](auto&) { executables_run_at_once(table, computes); });
  const bool keeps = compiler && BP_HAS(compiler, bp_extension_compiler, deserialize) && compiler->cache_key &&
                     compiler->serialize && compiler->deserialize;
  add_law(laws, BP_EXTENSION_COMPILER, "kept", keeps ? compiler : nullptr,
          [&table, computes](auto&) { kept_executables_are_the_compiled_ones(table.device(), computes); });
}

}  // namespace backplane::conformance
