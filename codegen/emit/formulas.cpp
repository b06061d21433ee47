// SYMBOL_formulas.c and .h: straight-line C for the formulas that need no list arithmetic.
#include "emit/emit.hpp"
#include "emit/formula_writer.hpp"

namespace backplane::codegen {
namespace {

// What the functions below it share. Each piece mirrors one node of dispatcher/record/evaluation.cpp.
constexpr const char* kPrelude = R"(
#if defined(__GNUC__)
#define BP_MAYBE_UNUSED __attribute__((unused))
#else
#define BP_MAYBE_UNUSED
#endif
#define BP_LOCAL static inline BP_MAYBE_UNUSED

BP_LOCAL bp_value absent_value(void) {
  bp_value v = {0};
  return v;
}
BP_LOCAL bp_value int_value(int64_t i) {
  bp_value v = {0};
  v.tag = BP_TAG_INT;
  v.u.i = i;
  return v;
}
BP_LOCAL bp_value bool_value(int64_t b) {
  bp_value v = {0};
  v.tag = BP_TAG_BOOL;
  v.u.i = b != 0;
  return v;
}
BP_LOCAL bp_value float_value(double f) {
  bp_value v = {0};
  v.tag = BP_TAG_FLOAT;
  v.u.f = f;
  return v;
}
BP_LOCAL bp_value dtype_value(int64_t dtype) {
  bp_value v = {0};
  v.tag = BP_TAG_DTYPE;
  v.u.i = dtype;
  return v;
}
BP_LOCAL bp_value string_value(const char* s, uint32_t size) {
  bp_value v = {0};
  v.tag = BP_TAG_STRING;
  v.count = size;
  v.u.s = s;
  return v;
}
BP_LOCAL bp_value int_list(const int64_t* ints, uint32_t count) {
  bp_value v = {0};
  v.tag = BP_TAG_INT_LIST;
  v.count = count;
  v.u.ints = ints;
  return v;
}
BP_LOCAL int is_number(bp_value v) { return v.tag >= BP_TAG_BOOL && v.tag <= BP_TAG_COMPLEX; }
BP_LOCAL bp_value as_tensor(bp_value v) {
  if (is_number(v)) v.flags |= BP_VALUE_NUMBER;
  return v;
}
BP_LOCAL bp_value default_value(bp_value v, bp_value fallback) { return v.tag == BP_TAG_ABSENT ? fallback : v; }
BP_LOCAL bp_value shape_of(bp_value v) {
  return v.tag == BP_TAG_TENSOR ? int_list(v.u.t->dl.shape, (uint32_t)v.u.t->dl.ndim) : int_list(0, 0);
}
BP_LOCAL int64_t ndim_of(bp_value v) { return v.tag == BP_TAG_TENSOR ? v.u.t->dl.ndim : 0; }
BP_LOCAL bp_value dtype_of(bp_value v) {
  static const uint16_t of_number[] = {BP_BOOL, BP_BOOL, BP_INT64, BP_FLOAT32, BP_COMPLEX64};
  return dtype_value(v.tag == BP_TAG_TENSOR ? v.u.t->dtype : of_number[is_number(v) ? v.tag : 0]);
}
BP_LOCAL bp_value device_of(bp_value v) {
  bp_device device = {v.u.t->backend, v.u.t->ordinal};
  v = absent_value();
  v.tag = BP_TAG_DEVICE;
  v.u.d = device;
  return v;
}
BP_LOCAL bp_value keep(const bp_frame* frame, bp_value v) {
  if (v.tag == BP_TAG_TENSOR) frame->host->retain(v.u.t);
  return v;
}
BP_LOCAL void drop(const bp_frame* frame, bp_value* t, int n) {
  for (int i = 0; i < n; ++i) {
    if (t[i].tag == BP_TAG_TENSOR) frame->host->release(t[i].u.t);
    t[i].tag = BP_TAG_ABSENT;
  }
}

/* As call_op. Bit i of `spent`: args[i] is dropped next, and the result may take its memory. */
BP_MAYBE_UNUSED static bp_status call_spending(const bp_frame* frame, uint32_t op, const bp_value* args, int32_t n_args,
                                               bp_value* out, uint64_t spent) {
  const bp_host* host = frame->host;
  if (BP_HAS(host, bp_host, call_op_spending)) return host->call_op_spending(frame, op, args, n_args, out, spent);
  return host->call_op(frame, op, args, n_args, out, 1);
}

static int same_shape(const bp_tensor* a, const bp_tensor* b) {
  if (a->dl.ndim != (b ? b->dl.ndim : 0)) return 0;
  for (int32_t i = 0; i < a->dl.ndim; ++i)
    if (a->dl.shape[i] != b->dl.shape[i]) return 0;
  return 1;
}

/* Replaces *current, which it owns where `owned`, by op(*current, arg). */
static bp_status replace(const bp_frame* frame, uint32_t op, bp_value* current, int* owned, bp_value arg, int n_args) {
  bp_value args[2] = {*current, arg};
  bp_value out = {0};
  bp_status status = frame->host->call_op(frame, op, args, n_args, &out, 1);
  if (*owned) drop(frame, current, 1);
  *owned = status == BP_OK;
  *current = out;
  return status;
}

BP_LOCAL bp_value move(bp_value* v) {
  bp_value moved = *v;
  v->tag = BP_TAG_ABSENT;
  return moved;
}

/* Real part, sum to the argument's shape, cast to its dtype: whichever differs. Takes v over where it is `owned`;
 * *out owns its tensor. */
BP_MAYBE_UNUSED static bp_status fit(const bp_frame* frame, const uint32_t ops[3], bp_value v, int owned,
                                     const bp_value* like, bp_value* out) {
  const bp_tensor* target = like->tag == BP_TAG_TENSOR ? like->u.t : 0;
  bp_status status = BP_OK;
  *out = v;
  if (v.tag != BP_TAG_TENSOR) return BP_OK;
  if (target && (BP_MASK_COMPLEX >> v.u.t->dtype & 1) && !(BP_MASK_COMPLEX >> target->dtype & 1))
    status = replace(frame, ops[2], out, &owned, absent_value(), 1);
  if (!status && !same_shape(out->u.t, target))
    status = replace(frame, ops[0], out, &owned, target ? shape_of(*like) : int_list(0, 0), 2);
  if (!status && target && out->u.t->dtype != target->dtype)
    status = replace(frame, ops[1], out, &owned, dtype_value(target->dtype), 2);
  if (!status && !owned) *out = keep(frame, *out);
  if (status) *out = absent_value();
  return status;
}
)";

std::optional<std::string> function_of(const EmitContext& context, const CompiledOp& op, size_t formula) {
  const size_t index = static_cast<size_t>(&op - context.registry.ops.data());
  const std::string name = context.symbol + "_op" + std::to_string(index) + "_formula" + std::to_string(formula);
  const CompiledFormula& compiled = op.formulas[formula];
  return FormulaWriter(context.registry, op, compiled).write(name);
}

}  // namespace

std::string native_name(const EmitContext& context, const CompiledOp& op, size_t formula) {
  if (!context.natives) return "";
  const std::optional<std::string> text = function_of(context, op, formula);
  if (!text) return "";
  const size_t begin = text->find("BP_CALL ") + 8;
  return text->substr(begin, text->find('(', begin) - begin);
}

void emit_formulas(const EmitContext& context, OutputSet& out) {
  static constexpr const char* kRules[] = {"", "vjp", "jvp", "decompose", "batch", "put", "shape"};
  const std::string guard = "BACKPLANE_GENERATED_" + context.symbol + "_FORMULAS_H";
  std::string header =
      file_banner("/* ", "Native forms of the formulas of namespace " + context.ns + ".", context, " */");
  header += "#ifndef " + guard + "\n#define " + guard +
            "\n\n#include \"backplane/abi/host.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  std::string source = file_banner(
      "/* ", "Native forms of the formulas of namespace " + context.ns + ", equal to the evaluator's bit for bit.",
      context, " */");
  source += "#include \"" + context.symbol + "_formulas.h\"\n\n#include <math.h>\n";
  source += kPrelude;
  for (const CompiledOp& op : context.registry.ops) {
    for (size_t i = 0; i < op.formulas.size(); ++i) {
      const std::optional<std::string> text = function_of(context, op, i);
      if (!text) continue;
      std::string formula = op.formulas[i].text;
      for (size_t at = 0; (at = formula.find("*/", at)) != std::string::npos;) formula.replace(at, 2, "* /");
      for (char& c : formula)
        if (c == '\n') c = ' ';
      source += "\n/* " + op.entry->full_name + ", " + kRules[op.formulas[i].rule] + ": " + comment(formula) + " */\n" +
                *text;
      header += text->substr(0, text->find(" {\n")) + ";\n";
    }
  }
  header += "\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
  out.add(context.symbol + "_formulas.h", header);
  out.add(context.symbol + "_formulas.c", source);
}

}  // namespace backplane::codegen
