// Copies a caller's op record into memory of our own. What the record claims is checked in op_verify.cpp; here only
// what copying itself relies on: sizes, counts, pointers that are there, strings that end.
//
// Pure: two records may be copied at once. The caller's memory is read during the call alone.
#include "record/op_record.hpp"

#include <algorithm>
#include <cstring>

#include "backplane/abi/signature.h"
#include "backplane/abi/vocabulary.h"
#include "record/builtins.hpp"
#include "record/dtype_rules.hpp"
#include "record/foreign_struct.hpp"
#include "record/op_arena.hpp"
#include "record/op_verify.hpp"
#include "record/op_verify_rules.hpp"
#include "record/resolved_args.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {
namespace {

constexpr size_t kMaxName = 256;
constexpr size_t kMaxText = 65536;
constexpr uint32_t kMaxFormulas = 256;
constexpr uint32_t kMaxInputs = 4 * kMaxNodes;
constexpr uint32_t kMaxListLength = 4096;
// Everything up to here is needed to call an op; a writer that knows less describes none.
constexpr size_t kSmallestRecord = offsetof(bp_op_def, program);

constexpr uint64_t kOpFlags = flags_up_to(BP_OP_MOVES);
constexpr uint64_t kDtypeFlags = flags_up_to(BP_DTYPE_WRAPS);
constexpr uint64_t kArgFlags = flags_up_to(BP_ARG_POSITIONAL_ONLY);
constexpr uint64_t kResultFlags = uint64_t{BP_ARG_LIST} | uint64_t{BP_RESULT_NONDIFF};
constexpr uint64_t kFormulaFlags = flags_up_to(BP_FORMULA_NATIVE_ONLY);

class Copier {
 public:
  explicit Copier(OpRecord& op) : op_(op), arena_(*op.arena) {}

  void copy(const bp_op_def& source);

 private:
  void read_head(const bp_op_def& source);
  void copy_program();
  void copy_formulas(std::span<bp_formula> formulas);

  // An error names the op as soon as it has one.
  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    if (!condition) [[unlikely]]
      detail::fail(BP_ERROR_VALUE, "op record '", op_.name.empty() ? std::string_view("?") : op_.name, "': ", parts...);
  }

  std::string_view measure(const char* text, size_t limit, const char* what) const {
    require(text != nullptr, what, " is NULL");
    const size_t size = strnlen(text, limit + 1);
    require(size <= limit, what, " does not end within ", limit, " bytes");
    return {text, size};
  }
  const char* text(const char* source, size_t limit, const char* what) const {
    return arena_.text(measure(source, limit, what));
  }
  const char* optional_text(const char* source, size_t limit, const char* what) const {
    return source ? text(source, limit, what) : nullptr;
  }

  // Elements of an older or newer minor: the members that both sides know.
  template <class T>
  std::span<T> elements(bp_array& array, uint32_t limit, size_t first_size, const char* what) const {
    require(array.count <= limit, what, ": ", array.count, " elements, at most ", limit, " are allowed");
    if (array.count == 0) return {};
    require(array.data != nullptr, what, ": ", array.count, " elements at NULL");
    require(array.stride >= first_size && array.stride <= BP_MAX_STRUCT_SIZE && array.stride % 4 == 0, what,
            ": a stride of ", array.stride, " bytes; expected ", first_size, " or more");
    T* copies = arena_.array<T>(array.count);
    std::memset(static_cast<void*>(copies), 0, sizeof(T) * array.count);
    const size_t known = std::min<size_t>(array.stride, sizeof(T));
    for (uint32_t i = 0; i < array.count; ++i)
      std::memcpy(static_cast<void*>(copies + i), static_cast<const char*>(array.data) + size_t{i} * array.stride,
                  known);
    array = {copies, array.count, static_cast<uint32_t>(sizeof(T))};
    return {copies, array.count};
  }
  template <class T>
  T* block(const T* source, uint32_t count, uint32_t limit, const char* what) const {
    require(count <= limit, what, ": ", count, " elements, at most ", limit, " are allowed");
    if (count == 0) return nullptr;
    require(source != nullptr, what, ": ", count, " elements at NULL");
    T* copy = arena_.array<T>(count);
    std::memcpy(copy, source, sizeof(T) * count);
    return copy;
  }
  bp_value value(const bp_value& source, const char* what, bool in_list = false) const;
  bp_value list(const bp_value& source, const char* what) const;

  OpRecord& op_;
  OpRecord::Arena& arena_;
};

bp_value Copier::list(const bp_value& source, const char* what) const {
  bp_value copy = source;
  switch (source.tag) {
    case BP_TAG_INT_LIST:
      copy.u.ints = block(source.u.ints, source.count, kMaxListLength, what);
      break;
    case BP_TAG_FLOAT_LIST:
      copy.u.floats = block(source.u.floats, source.count, kMaxListLength, what);
      break;
    case BP_TAG_BOOL_LIST:
      copy.u.bools = block(source.u.bools, source.count, kMaxListLength, what);
      break;
    case BP_TAG_TENSOR_LIST:
      require(source.count == 0, what, " holds tensors; a record can hold none");
      copy.u.tensors = nullptr;
      break;
    case BP_TAG_VALUE_LIST: {
      bp_value* values = block(source.u.values, source.count, kMaxListLength, what);
      for (uint32_t i = 0; i < source.count; ++i) values[i] = value(values[i], what, true);
      copy.u.values = values;
      break;
    }
    default:
      require(false, what, " has the unknown tag ", source.tag);
  }
  return copy;
}

bp_value Copier::value(const bp_value& source, const char* what, bool in_list) const {
  bp_value copy = source;
  copy.flags = source.flags & BP_VALUE_NUMBER;
  switch (source.tag) {
    case BP_TAG_ABSENT:
      return {};
    case BP_TAG_BOOL:
      copy.u.i = source.u.i != 0;
      break;
    case BP_TAG_INT:
    case BP_TAG_FLOAT:
      break;
    case BP_TAG_COMPLEX:
      copy.u.c = block(source.u.c, 2, 2, what);
      break;
    case BP_TAG_STRING: {
      require(source.u.s != nullptr || source.count == 0, what, " is a string at NULL");
      require(source.count <= kMaxText, what, " is a string of ", source.count, " bytes");
      copy.u.s = arena_.text({source.u.s ? source.u.s : "", source.count});
      return copy;
    }
    case BP_TAG_DTYPE:
      require(source.u.i >= 0 && source.u.i < BP_DTYPE_COUNT, what, " is the unknown dtype ", source.u.i);
      break;
    default:
      require(!in_list && (source.tag & BP_TAG_LIST), what, " has a tag that a record cannot hold: ", source.tag);
      return list(copy, what);
  }
  copy.count = 0;
  return copy;
}

void Copier::read_head(const bp_op_def& source) {
  bp_op_def& def = op_.def;
  def = read_struct(source, kSmallestRecord, "an op record");
  const std::string_view name = measure(def.name, kMaxName, "the name");
  verify_name(name);
  def.name = arena_.text(name);
  op_.name = {def.name, name.size()};
  def.family = optional_text(def.family, kMaxName, "family");
  def.doc = optional_text(def.doc, kMaxText, "doc");
  def.file = optional_text(def.file, kMaxText, "file");
  def.tags = optional_text(def.tags, kMaxText, "tags");
  def.reserved = 0;
  def.reserved_tail = 0;
  check_flags(def.flags, kOpFlags, BP_HINTS_OF_64, "op record '", name, "'");
  check_flags(def.dtype_flags, kDtypeFlags, BP_HINTS_OF_32, "op record '", name, "': its dtype_flags");
}

void Copier::copy_program() {
  bp_op_def& def = op_.def;
  if (def.fit_names) {
    const char** names = arena_.array<const char*>(3);
    for (int i = 0; i < 3; ++i) names[i] = text(def.fit_names[i], kMaxName, "a name of fit_names");
    def.fit_names = names;
  }
  bp_program* program = arena_.array<bp_program>(1);
  *program = def.program ? *def.program : bp_program{};
  def.program = program;
  program->nodes = block(program->nodes, program->n_nodes, kMaxNodes, "nodes");
  program->inputs = block(program->inputs, program->n_inputs, kMaxInputs, "node inputs");
  bp_value* consts = block(program->consts, program->n_consts, kMaxNodes, "constants");
  for (uint32_t i = 0; i < program->n_consts; ++i) {
    const bool large = consts[i].tag == BP_TAG_INT && (consts[i].flags & BP_VALUE_UINT64) && consts[i].u.i < 0;
    consts[i] = value(consts[i], "a constant");
    if (large) consts[i].flags |= BP_VALUE_UINT64;
  }
  program->consts = consts;
  const char** names = const_cast<const char**>(block(program->names, program->n_names, kMaxNodes, "names"));
  for (uint32_t i = 0; i < program->n_names; ++i) names[i] = text(names[i], kMaxName, "a name that formulas call");
  program->names = names;
}

void Copier::copy_formulas(std::span<bp_formula> formulas) {
  for (bp_formula& formula : formulas) {
    check_flags(formula.flags, kFormulaFlags, BP_HINTS_OF_16, "op record '", op_.name, "': a formula");
    formula.targets = block(formula.targets, formula.n_targets, kMaxArgs, "a formula's targets");
    formula.roots = block(formula.roots, formula.n_roots, kMaxArgs, "a formula's roots");
    formula.text = optional_text(formula.text, kMaxText, "a formula's text");
  }
}

void Copier::copy(const bp_op_def& source) {
  read_head(source);
  bp_op_def& def = op_.def;
  const auto args = elements<bp_arg_def>(def.args, kMaxArgs, sizeof(bp_arg_def), "arguments");
  for (bp_arg_def& arg : args) {
    arg.name = text(arg.name, kMaxName, "an argument's name");
    check_flags(arg.flags, kArgFlags, BP_HINTS_OF_16, "op record '", op_.name, "': argument '", arg.name, "'");
    arg.default_value = value(arg.default_value, "a default");
  }
  const auto results = elements<bp_result_def>(def.results, kMaxResults, sizeof(bp_result_def), "results");
  for (bp_result_def& result : results) {
    result.name = text(result.name, kMaxName, "a result's name");
    check_flags(result.flags, kResultFlags, BP_HINTS_OF_16, "op record '", op_.name, "': result '", result.name, "'");
  }
  const auto formulas = elements<bp_formula>(def.formulas, kMaxFormulas, sizeof(bp_formula), "formulas");
  copy_formulas(formulas);
  const auto shapes = elements<bp_shape_rule>(def.shapes, kMaxResults, sizeof(bp_shape_rule), "shape rules");
  for (bp_shape_rule& shape : shapes) {
    shape.name = text(shape.name, kMaxName, "a shape rule's name");
    shape.args = block(shape.args, shape.n_args, kMaxArgs, "a shape rule's arguments");
  }
  op_.dtypes = elements<bp_result_dtype>(def.dtypes, kMaxResults, sizeof(bp_result_dtype), "dtype rules");
  op_.args = args;
  op_.results = results;
  op_.formulas = formulas;
  op_.shapes = shapes;

  auto* accepts = arena_.array<bp_dtype_mask>(args.size());
  for (size_t i = 0; i < args.size(); ++i)
    accepts[i] = mask_of(def.accepts ? def.accepts[i] : 0, def.accepts_sets ? def.accepts_sets[i] : 0) & BP_MASK_ANY;
  def.accepts = accepts;
  def.accepts_sets = nullptr;
  op_.accepts = {accepts, args.size()};
  verify_signature(op_);  // also normalises the arguments, in the arena
  copy_program();
}

}  // namespace

OpRecord::~OpRecord() = default;

const bp_formula* OpRecord::find_formula(uint16_t rule) const {
  for (const bp_formula& formula : formulas)
    if (formula.rule == rule) return &formula;
  return nullptr;
}

const bp_formula* OpRecord::find_formula(uint16_t rule, uint32_t target) const {
  for (const bp_formula& formula : formulas) {
    if (formula.rule != rule) continue;
    for (uint32_t i = 0; i < formula.n_targets; ++i)
      if (formula.targets[i] == target) return &formula;
  }
  return nullptr;
}

std::unique_ptr<OpRecord> copy_record(const bp_op_def& def) {
  auto op = std::make_unique<OpRecord>();
  op->arena = std::make_unique<OpRecord::Arena>();
  Copier(*op).copy(def);
  verify_program(*op);
  verify_rules(*op);
  const uint16_t region = bp_region_of(&op->def);
  op->def.region = region <= BP_REGION_PRODUCT ? region : uint16_t{BP_REGION_NONE};
  for (const bp_formula& formula : op->formulas) op->plans.push_back(make_plan(*op, formula));
  op->resolved = resolved_args(*op);
  if (op->results.size() == 1 && op->shape_words[0])
    op->indexes = op->shape_words[0]->name == "index" || op->shape_words[0]->name == "index_put";
  op->info.header = BP_HEADER(bp_op_info);
  op->info.name = op->def.name;
  op->info.op = BP_NO_OP;
  op->info.revision = op->def.revision;
  op->info.context = op->def.context;
  return op;
}

}  // namespace backplane::core
