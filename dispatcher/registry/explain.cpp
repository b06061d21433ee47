// `explain`: for every slot of an op, which rule or registration fills it, and which ones lost.

#include "backplane/op.hpp"

#include <charconv>
#include <sstream>
#include <string_view>

#include "backplane/abi/signature.h"
#include "memory/process/epoch.hpp"
#include "record/dtype_rules.hpp"
#include "registry/registry.hpp"

namespace backplane {

using namespace core;

namespace {

std::string real_text(double number) {
  char text[32];  // the fewest digits that give the number back
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  return {text, end};
}

template <class Element>
std::string list_text(const bp_value& list, Element element) {
  std::string text;
  for (uint32_t k = 0; k < list.count; ++k) text += (k ? ", " : "") + element(k);
  return "[" + text + "]";
}

// As it stands in a registry file.
std::string default_text(const bp_value& v) {
  switch (v.tag) {
    case BP_TAG_BOOL:
      return v.u.i ? "true" : "false";
    case BP_TAG_INT:
      return std::to_string(v.u.i);
    case BP_TAG_FLOAT:
      return real_text(v.u.f);
    case BP_TAG_STRING:
      return "'" + std::string(v.u.s, v.count) + "'";
    case BP_TAG_DTYPE:
      return kDtypeNames[v.u.i];
    case BP_TAG_INT_LIST:
      return list_text(v, [&](uint32_t k) { return std::to_string(v.u.ints[k]); });
    case BP_TAG_FLOAT_LIST:
      return list_text(v, [&](uint32_t k) { return real_text(v.u.floats[k]); });
    case BP_TAG_BOOL_LIST:
      return list_text(v, [&](uint32_t k) { return std::string(v.u.bools[k] ? "true" : "false"); });
    default:
      return "none";
  }
}

std::string signature(const OpRecord& record) {
#define BP_TYPE_WORD(constant, number, word) word,
  static constexpr const char* kTypes[] = {"?", BP_TYPES(BP_TYPE_WORD)};
#undef BP_TYPE_WORD
  std::string text(record.name);
  text += "(";
  bool keyword = false;
  for (size_t i = 0; i < record.args.size(); ++i) {
    const bp_arg_def& arg = record.args[i];
    if (i) text += ", ";
    if ((arg.flags & BP_ARG_KEYWORD_ONLY) && !keyword) text += "*, ", keyword = true;
    text += kTypes[arg.type < BP_TYPE_COUNT ? arg.type : 0];
    if (arg.flags & BP_ARG_OPTIONAL_ELEMENTS) text += "?";
    if (arg.flags & BP_ARG_LIST) text += "[]";
    if (arg.flags & BP_ARG_OPTIONAL) text += "?";
    text += std::string(" ") + arg.name;
    if (arg.flags & (BP_ARG_HAS_DEFAULT | BP_ARG_OPTIONAL)) text += "=" + default_text(arg.default_value);
    const bool next = i + 1 < record.args.size() && (record.args[i + 1].flags & BP_ARG_POSITIONAL_ONLY);
    if ((arg.flags & BP_ARG_POSITIONAL_ONLY) && !next) text += ", /";
  }
  text += ") -> ";
  for (size_t j = 0; j < record.results.size(); ++j) text += std::string(j ? ", " : "") + record.results[j].name;
  return text;
}

std::string where(const OpRecord& record, uint32_t line) {
  std::string file = record.def.file ? record.def.file : "?";
  return file + ":" + std::to_string(line ? line : record.def.line);
}

const char* manner(const bp_formula& f) {
  if (f.flags & BP_FORMULA_REFUSED) return "refused: ";
  if (f.flags & BP_FORMULA_ZERO) return "zero";
  return f.flags & BP_FORMULA_DERIVED ? "derived: " : "stated: ";
}

void formulas(std::ostringstream& out, const OpRecord& record, uint16_t rule, const char* slot, const char* otherwise) {
  bool any = false;
  for (const bp_formula& f : record.formulas) {
    if (f.rule != rule) continue;
    any = true;
    out << "  " << slot;
    for (uint32_t k = 0; k < f.n_targets; ++k) out << (k ? ", " : " ") << record.args[f.targets[k]].name;
    out << ": " << manner(f);
    if (!(f.flags & BP_FORMULA_ZERO)) out << (f.text ? f.text : "");
    if (f.flags & BP_FORMULA_NATIVE_ONLY)
      out << "  [a function]";
    else if (f.native)
      out << "  [and generated code]";
    out << "  (" << where(record, f.line) << ")\n";
  }
  if (!any && otherwise) out << "  " << slot << ": " << otherwise << "\n";
}

// What vmap does, which is not always what the entry says: a derived rule or a decomposition comes before a loop.
void batch(std::ostringstream& out, const OpEntry& entry) {
  using Kind = BatchRule::Kind;
  const BatchRule& rule = entry.batch;
  out << "  batch: ";
  switch (rule.kind) {
    case Kind::kStated:
      out << "stated: " << (rule.formula->text ? rule.formula->text : "");
      break;
    case Kind::kDerived:
      out << "derived from the shape class " << rule.word;
      break;
    case Kind::kDecompose:
      out << "through the decomposition";
      break;
    case Kind::kLoop:
      out << "loop over the rows, counted";
      break;
    case Kind::kCreation:
      out << (entry.flags & BP_OP_RANDOM ? "by vmap's randomness: an error, one draw for all rows, or one for each"
                                         : "none needed: no tensor argument, so one result for all rows");
      break;
    case Kind::kRefused:
      out << "refused: "
          << (rule.formula && rule.formula->text ? rule.formula->text : "the shape of its result depends on values");
      break;
    case Kind::kMissing:
      out << "none: an error at use";
  }
  out << "  (" << where(*entry.record, rule.formula ? rule.formula->line : 0) << ")\n";
}

std::string dtypes(bp_dtype_mask mask) {
  if ((mask & BP_MASK_ANY) == BP_MASK_ANY) return "all dtypes";
  std::string text;
  for (int d = 0; d < BP_DTYPE_COUNT; ++d)
    if (mask & BP_DTYPE_BIT(d)) text += (text.empty() ? "" : " ") + std::string(kDtypeNames[d]);
  return text;
}

void device_slot(std::ostringstream& out, const OpEntry& entry, uint32_t backend) {
  static constexpr const char* kOtherwise[] = {"none needed: a view is metadata work of the core", "function",
                                               "decomposition", "host fallback (host: true)", "missing kernel"};
  const Plan& plan = entry.plan();
  const BackendRecord& b = backend_at(backend);
  if (b.withdrawn || backend >= plan.n_devices) return;
  const DeviceSlot& slot = plan.devices[backend];
  out << "  device " << b.name << ": ";
  bool any = false;
  for (const KernelRow* row : slot.otherwise == DeviceRule::kView ? std::vector<const KernelRow*>{} : slot.rows) {
    out << (any ? "      loses: " : "kernel of plugin ") << '"' << row->owner->name << '"' << " (" << row->file << ":"
        << row->def.line << "), priority " << row->def.priority << ", " << dtypes(row->def.dtypes) << "\n";
    any = true;
  }
  if (!any)
    out << kOtherwise[static_cast<size_t>(slot.otherwise)] << "\n";
  else if (slot.otherwise == DeviceRule::kDecomposition)
    out << "      else: decomposition\n";
}

void key_slot(std::ostringstream& out, const KeySlot& slot) {
  if (slot.key->withdrawn && !slot.row) return;
  out << "  key " << slot.key->name << ": ";
  if (slot.handle == handlers.decomposition) {
    out << "sees the calls of the decomposition\n";
    return;
  }
  if (slot.row)
    out << "row of plugin \"" << slot.row->owner->name << "\" (" << slot.row->file << ":" << slot.row->def.line
        << ")\n";
  else
    out << (slot.key->fallback ? "the key's fallback, plugin \"" + slot.key->owner->name + "\"" : "falls through")
        << "\n";
}

}  // namespace

std::string explain(OpHandle op) {
  CallGuard guard;  // it reads the rows as a call does
  OpEntry& entry = checked_entry(op);
  const OpRecord& record = *entry.record;
  std::ostringstream out;
  out << signature(record) << "\n";
  const std::string_view doc = record.def.doc ? record.def.doc : "";
  if (!doc.empty()) out << "  " << doc.substr(0, doc.find('\n')) << "\n";
  out << "  registered by plugin \"" << entry.owner->name << "\" from " << where(record, 0) << "\n";
  if (record.def.family) out << "  primitive of family " << record.def.family << "\n";
  for (size_t j = 0; j < record.shapes.size(); ++j)
    out << "  meta, result " << record.results[j].name << ": shape rule " << record.shapes[j].name << "\n";
  bool composite = (entry.flags & BP_OP_COMPOSITE) != 0;
  const char* through = entry.flags & BP_OP_HIGHER_ORDER ? "by the rules of the function"
                        : entry.decompose                ? "through the decomposition"
                                                         : "none: no argument or result is differentiable";
  formulas(out, record, BP_RULE_VJP, "autograd (vjp)", through);
  formulas(out, record, BP_RULE_JVP, "forward mode (jvp)", through);
  if (entry.flags & BP_OP_HIGHER_ORDER)
    out << "  batch: by the rules of the function\n";
  else
    batch(out, entry);
  formulas(out, record, BP_RULE_PUT, "put", nullptr);
  formulas(out, record, BP_RULE_DECOMPOSE, composite ? "every call" : "decomposition", nullptr);
  for (const KeySlot& slot : entry.plan().keys) key_slot(out, slot);
  if (!composite && !(entry.flags & BP_OP_HIGHER_ORDER))
    for (uint32_t b = 0; b < backend_count(); ++b) device_slot(out, entry, b);
  return out.str();
}

}  // namespace backplane
