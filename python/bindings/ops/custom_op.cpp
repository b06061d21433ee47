// From what the package says of a custom op (backplane/_custom_ops/_custom_op.py) to its record, and its registration.
#include "bindings/ops/custom_op.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "backplane/abi/vocabulary.h"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/ops/convert.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

namespace py = pybind11;

// Memory of a record under construction; the registry copies all of it.
class RecordBuilder {
 public:
  RecordBuilder(Definition& definition, const py::dict& spec) : definition_(definition), spec_(spec), constants_(64) {
    def_.header = BP_HEADER(bp_op_def);
    def_.name = text("name");
    def_.doc = text("doc");
    def_.file = text("file");
    def_.line = spec["line"].cast<uint32_t>();
    def_.flags = spec["flags"].cast<uint64_t>();
    def_.alias = spec["alias"].cast<uint32_t>();
    def_.tags = text("tags");
    def_.context = &definition_;
    def_.dtype_fn = infer_python_dtype;
    read_arguments();
    read_results();
    read_shapes();
    make_program();
    read_formulas();
  }
  const bp_op_def& def() const { return def_; }
  std::vector<bp_kernel_def> kernels();

 private:
  const char* text(const char* key) { return keep(spec_[key].cast<std::string>()); }
  const char* keep(std::string words) { return strings_.emplace_back(std::move(words)).c_str(); }
  void read_arguments();
  void read_results();
  void read_shapes();
  void make_program();
  void read_formulas();
  void read_reads(const py::handle& row, bp_formula& formula, PythonRule* rule);
  PythonRule& rule_of(uint16_t rule);

  template <class T>
  static bp_array array(const std::vector<T>& rows) {
    return {rows.data(), static_cast<uint32_t>(rows.size()), sizeof(T)};
  }

  Definition& definition_;
  const py::dict& spec_;
  bp_op_def def_{};
  CallArguments constants_;  // what defaults point to
  std::deque<std::string> strings_;
  std::deque<std::vector<uint32_t>> numbers_;
  std::vector<bp_arg_def> args_;
  std::vector<bp_result_def> results_;
  std::vector<bp_result_dtype> dtypes_;
  std::vector<bp_shape_rule> shapes_;
  std::vector<bp_formula> formulas_;
  std::vector<bp_dtype_mask> accepts_;
  std::vector<bp_node> nodes_;
  std::vector<uint32_t> inputs_;
  bp_program program_{};
};

// Rows: (name, type, flags, default, accepted dtypes).
void RecordBuilder::read_arguments() {
  std::vector<PyObject*> keywords;
  for (const py::handle& row : spec_["args"]) {
    const auto fields = row.cast<py::tuple>();
    bp_arg_def arg{};
    arg.name = keep(fields[0].cast<std::string>());
    arg.type = fields[1].cast<uint16_t>();
    arg.flags = fields[2].cast<uint16_t>();
    if (arg.flags & BP_ARG_HAS_DEFAULT) {
      const py::object object = fields[3];
      const int read = read_argument(arg, object.ptr(), constants_, &arg.default_value);
      if (read < 0) throw py::error_already_set();
      BP_CHECK(read >= 1, TYPE, definition_.name, ": the default of '", arg.name, "' is a value of type ",
               Py_TYPE(object.ptr())->tp_name, "; expected ", expected_kind(arg));
    }
    args_.push_back(arg);
    accepts_.push_back(fields[4].cast<bp_dtype_mask>());
    definition_.arg_types.push_back(arg.type);
    definition_.arg_names.emplace_back(arg.name);
    if (arg.flags & BP_ARG_KEYWORD_ONLY)
      keywords.push_back(fields[0].ptr());
    else
      ++definition_.n_positional;
  }
  if (!keywords.empty()) {
    definition_.keyword_names = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(keywords.size())));
    for (size_t i = 0; i < keywords.size(); ++i)
      PyTuple_SET_ITEM(definition_.keyword_names.get(), static_cast<Py_ssize_t>(i), Py_NewRef(keywords[i]));
  }
  def_.args = array(args_);
  def_.accepts = accepts_.data();
}

// Rows: (name, flags, dtype rule, its parameter).
void RecordBuilder::read_results() {
  for (const py::handle& row : spec_["results"]) {
    const auto fields = row.cast<py::tuple>();
    results_.push_back({keep(fields[0].cast<std::string>()), BP_TYPE_TENSOR, fields[1].cast<uint16_t>(), 0});
    dtypes_.push_back({fields[2].cast<uint16_t>(), 0, fields[3].cast<uint32_t>(), 0, 0});
    definition_.list_results.push_back((results_.back().flags & BP_ARG_LIST) != 0);
  }
  definition_.n_results = results_.size();
  def_.results = array(results_);
  def_.dtypes = array(dtypes_);
}

// Rows: (word, arguments, BP_NO_ARG where one is left out).
void RecordBuilder::read_shapes() {
  for (const py::handle& row : spec_["shapes"]) {
    const auto fields = row.cast<py::tuple>();
    const auto& args = numbers_.emplace_back(fields[1].cast<std::vector<uint32_t>>());
    const char* word = keep(fields[0].cast<std::string>());
    const bool function = std::string_view(word) == "function";
    shapes_.push_back(
        {word, args.data(), static_cast<uint32_t>(args.size()), 0, function ? infer_python_shape : nullptr});
  }
  def_.shapes = array(shapes_);
}

// A node per argument, one per result, and one for the shape of each argument: what rules may read.
void RecordBuilder::make_program() {
  const auto n_args = static_cast<uint32_t>(args_.size());
  for (uint32_t i = 0; i < n_args; ++i) nodes_.push_back({BP_NODE_ARG, 0, 0, i});
  for (uint32_t j = 0; j < results_.size(); ++j) nodes_.push_back({BP_NODE_OUT, 0, 0, j});
  for (uint32_t i = 0; i < n_args; ++i) {
    nodes_.push_back({BP_NODE_SHAPE, 1, static_cast<uint32_t>(inputs_.size()), 0});
    inputs_.push_back(i);
  }
  program_.nodes = nodes_.data();
  program_.n_nodes = static_cast<uint32_t>(nodes_.size());
  program_.inputs = inputs_.data();
  program_.n_inputs = static_cast<uint32_t>(inputs_.size());
  def_.program = &program_;
}

PythonRule& RecordBuilder::rule_of(uint16_t rule) {
  switch (rule) {
    case BP_RULE_VJP:
      return definition_.vjp;
    case BP_RULE_JVP:
      return definition_.jvp;
    case BP_RULE_BATCH:
      return definition_.batch;
    default:
      return definition_.decompose;
  }
}

bp_formula_fn native_of(uint16_t rule) {
  switch (rule) {
    case BP_RULE_VJP:
      return run_python_vjp;
    case BP_RULE_JVP:
      return run_python_jvp;
    case BP_RULE_BATCH:
      return run_python_batch;
    default:
      return run_python_decomposition;
  }
}

// The roots are the nodes of the reads.
void RecordBuilder::read_reads(const py::handle& row, bp_formula& formula, PythonRule* rule) {
  auto& roots = numbers_.emplace_back();
  for (const py::handle& read : row["reads"]) {
    const auto fields = read.cast<py::tuple>();
    const auto kind = static_cast<Read::Kind>(fields[0].cast<int>());
    const auto index = fields[1].cast<uint32_t>();
    rule->reads.push_back({kind, index});
    const auto n_args = static_cast<uint32_t>(args_.size());
    if (kind == Read::Argument) roots.push_back(index);
    if (kind == Read::Result) roots.push_back(n_args + index);
    if (kind == Read::Spec) roots.push_back(n_args + static_cast<uint32_t>(results_.size()) + index);
  }
  formula.roots = roots.data();
  formula.n_roots = static_cast<uint32_t>(roots.size());
}

// Rows: dicts of rule, flags, targets, reads, function (or None), text, line. A batch rule that is flagged as derived
// is so where it follows from the shape; else the op decomposes, or `text` is why it does not batch.
void RecordBuilder::read_formulas() {
  const auto is_decomposition = [](const py::handle& row) { return row["rule"].cast<uint16_t>() == BP_RULE_DECOMPOSE; };
  const auto rows = spec_["formulas"].cast<py::list>();
  const bool decomposes = std::any_of(rows.begin(), rows.end(), is_decomposition);
  for (const py::handle& row : rows) {
    bp_formula formula{};
    formula.rule = row["rule"].cast<uint16_t>();
    formula.flags = row["flags"].cast<uint16_t>();
    const auto& targets = numbers_.emplace_back(row["targets"].cast<std::vector<uint32_t>>());
    formula.targets = targets.data();
    formula.n_targets = static_cast<uint32_t>(targets.size());
    formula.text = keep(row["text"].cast<std::string>());
    formula.line = row["line"].cast<uint32_t>();
    if (formula.flags & BP_FORMULA_DERIVED) {
      if (bp_batch_follows(&def_)) {
        formula.text = keep(std::string("from the shape rule ") + shapes_[0].name);
      } else if (decomposes) {
        continue;
      } else {
        formula.flags = BP_FORMULA_REFUSED;
      }
    }
    const py::object function = row["function"];
    if (!function.is_none()) {
      PythonRule& rule = rule_of(formula.rule);
      rule.function = PyRef::borrow(function.ptr());
      read_reads(row, formula, &rule);
      formula.flags |= BP_FORMULA_NATIVE_ONLY;
      formula.native = native_of(formula.rule);
      if (formula.rule == BP_RULE_VJP) definition_.vjp_targets = targets;
    }
    formulas_.push_back(formula);
  }
  def_.formulas = array(formulas_);
}

// Rows: (backend, function, dtypes, file, line).
std::vector<bp_kernel_def> RecordBuilder::kernels() {
  std::vector<bp_kernel_def> rows;
  for (const py::handle& row : spec_["kernels"]) {
    const auto fields = row.cast<py::tuple>();
    auto& kernel = definition_.kernels.emplace_back(new PythonKernel{&definition_, PyRef::borrow(fields[1].ptr())});
    bp_kernel_def def{};
    def.header = BP_HEADER(bp_kernel_def);
    def.op = def_.name;
    def.backend = keep(fields[0].cast<std::string>());
    def.fn = run_python_kernel;
    def.context = kernel.get();
    def.dtypes = fields[2].cast<bp_dtype_mask>();
    def.flags = BP_KERNEL_STRIDED | BP_KERNEL_CASTS | BP_KERNEL_CALLS_OPS;
    def.flags |= !definition_.changed.empty() ? uint32_t{BP_KERNEL_INPLACE} : uint32_t{BP_KERNEL_OWN_RESULTS};
    def.file = keep(fields[3].cast<std::string>());
    def.line = fields[4].cast<uint32_t>();
    rows.push_back(def);
  }
  return rows;
}

// All that there are. Under the interpreter lock.
std::vector<Definition*>& definitions() {
  static auto* all = new std::vector<Definition*>;
  return *all;
}

void end_definition(Definition* ended) {
  std::erase(definitions(), ended);
  delete ended;
}

// Those that a thread without the interpreter lock let go of. A list without a lock, as a fork may come at any time.
std::atomic<Definition*> g_ended{nullptr};

int end_definitions(void*) {
  for (Definition* ended = g_ended.exchange(nullptr); ended;) end_definition(std::exchange(ended, ended->next_ended));
  return 0;
}

// Let go of by the registry, on any thread, and under locks that another thread may wait for while it holds the
// interpreter's, as a fork does: so this one waits for none. Where the interpreter takes no more calls, the next
// definition ends them.
void let_go(Definition* ended) {
  if (interpreter_gone()) return;
  if (PyGILState_Check()) return end_definition(ended);
  ended->next_ended = g_ended.load();
  while (!g_ended.compare_exchange_weak(ended->next_ended, ended)) {
  }
  Py_AddPendingCall(end_definitions, nullptr);
}

void drop_definitions(PyObject*) {
  if (!interpreter_ending()) return;
  for (Definition* definition : definitions()) definition->drop();
}

// As long as definitions hold functions, these hold the variables of their modules, which would not be finalized. A
// function of `atexit` would be too early: other threads still run Python. The interpreter takes modules out of
// sys.modules when it has stopped those; of this one nothing else knows.
void drop_definitions_at_end() {
  static bool arranged = false;
  if (std::exchange(arranged, true)) return;
  constexpr const char* kName = "backplane._custom_ops_end";
  static int marker;
  py::module_ module = py::reinterpret_steal<py::module_>(PyModule_New(kName));
  if (!module) throw py::error_already_set();
  module.attr("end") = py::reinterpret_steal<py::object>(PyCapsule_New(&marker, kName, drop_definitions));
  if (PyDict_SetItemString(PyImport_GetModuleDict(), kName, module.ptr()) != 0) throw py::error_already_set();
}

std::shared_ptr<Definition> new_definition() {
  end_definitions(nullptr);
  drop_definitions_at_end();
  std::shared_ptr<Definition> definition(new Definition, let_go);
  definitions().push_back(definition.get());
  return definition;
}

class CustomOp {
 public:
  CustomOp() : registration_(std::make_unique<Registration>("python")) {}
  // Withdrawing waits for running calls, and those of other threads never end once the interpreter is ending.
  ~CustomOp() {
    if (interpreter_ending()) static_cast<void>(registration_.release());
  }

  OpHandle define(const py::dict& spec) {
    const std::shared_ptr<Definition> definition = new_definition();
    definition->name = spec["name"].cast<std::string>();
    definition->changed = spec["mutates"].cast<std::vector<int32_t>>();
    if (const py::object shape = spec["shape_function"]; !shape.is_none())
      definition->shape = PyRef::borrow(shape.ptr());
    definition->spec_type = PyRef::borrow(py::object(spec["spec_type"]).ptr());
    RecordBuilder record(*definition, spec);
    const std::vector<bp_kernel_def> kernels = record.kernels();
    return registration_->define(record.def(), kernels, definition);
  }

 private:
  std::unique_ptr<Registration> registration_;
};

}  // namespace

void bind_custom_op(py::module_& module) {
  py::class_<CustomOp>(module, "CustomOp",
                       "An op of the registry that is defined in Python, with its kernels. It ends with this object.")
      .def(py::init<>())
      .def("define", &CustomOp::define, py::arg("spec"),
           "Registers the op of the spec, in place of an earlier definition.");
#define BP_TYPE_WORD(constant, number, word) words[word] = number;
  module.def("type_words", [] {
    py::dict words;
    BP_TYPES(BP_TYPE_WORD)
    return words;
  });
#undef BP_TYPE_WORD
  module.def("shares_memory", [](const py::object& a, const py::object& b) {
    if (!is_tensor(a.ptr()) || !is_tensor(b.ptr())) return false;
    return shares_memory(innermost_value(tensor_of(a.ptr())).get(), innermost_value(tensor_of(b.ptr())).get());
  });
}

}  // namespace backplane::python
