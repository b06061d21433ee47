#include "elementwise_call.hpp"

#include <algorithm>
#include <cstring>

#include "backplane/device.hpp"

namespace backplane::numpy {

namespace {

const char* type_word(uint16_t type) {
#define BP_WORD(constant, number, word) \
  if (type == number) return word;
  BP_TYPES(BP_WORD)
#undef BP_WORD
  return "?";
}

// The value as this type of argument takes it; false: it does not.
bool convert(uint16_t type, const AttributeValue& given, bp_value& found) {
  const bool is_bool = std::holds_alternative<bool>(given), is_int = std::holds_alternative<int64_t>(given);
  if (is_bool) found = value(std::get<bool>(given));
  if (is_int) found = value(std::get<int64_t>(given));
  if (const double* real = std::get_if<double>(&given)) found = value(*real);
  switch (type) {
    case BP_TYPE_TENSOR:
      found = number(found);
      [[fallthrough]];
    case BP_TYPE_SCALAR:
      return !std::holds_alternative<std::string>(given);
    case BP_TYPE_BOOL:
      return is_bool;
    case BP_TYPE_STR:
      return std::holds_alternative<std::string>(given);
    case BP_TYPE_AXIS:
    case BP_TYPE_INDEX:
      return is_int;
    case BP_TYPE_SIZE:
      return is_int && std::get<int64_t>(given) >= 0;
    default:
      return false;
  }
}

LoopForm form_of(const std::vector<bp_dtype>& dtypes, size_t n_inputs) {
  LoopForm form{dtypes, {}, false};
  for (size_t i = 0; i < dtypes.size(); ++i) {
    form.items[i] = dtype_size(dtypes[i]);
    form.reads_bools = form.reads_bools || (i < n_inputs && dtypes[i] == BP_BOOL);
  }
  return form;
}

bool has_tag(const bp_op_def& def, std::string_view tag) {
  std::string_view left = def.tags ? def.tags : "";
  while (!left.empty()) {
    const size_t end = std::min(left.find(','), left.size());
    if (left.substr(0, end) == tag) return true;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return false;
}

}  // namespace

ElementwiseCall::ElementwiseCall(const std::string& full_name) : op_(find_op(full_name)) {
  BP_CHECK(op_ != BP_NO_OP, VALUE, "numpy.ufunc: found ", full_name, ", which is not an op; load its plugin first");
  def_ = hold_op_def(op_);
  constexpr uint64_t kRefused = BP_OP_RANDOM | BP_OP_VIEW | BP_OP_MAYBE_VIEW | BP_OP_HIGHER_ORDER;
  copies_ = has_tag(*def_, "python");
  const bool elementwise = (def_->flags & BP_OP_ELEMENTWISE) || (copies_ && has_tag(*def_, "elementwise"));
  BP_CHECK(
      elementwise && !(def_->flags & kRefused), VALUE, "numpy.ufunc: ", full_name,
      " is not an elementwise op of tensors. Fix: ", copies_ ? "define it with elementwise=True if it is, or " : "",
      "call backplane.numpy.function(\"", full_name, "\")");
  for (uint32_t i = 0; i < def_->args.count; ++i) args_.push_back(arg(i).default_value);
  stated_.resize(args_.size());
}

const bp_arg_def& ElementwiseCall::arg(uint32_t i) const {
  return *reinterpret_cast<const bp_arg_def*>(static_cast<const char*>(def_->args.data) +
                                              size_t{i} * def_->args.stride);
}

void ElementwiseCall::set_attribute(const std::string& name, const AttributeValue& given) {
  uint32_t i = 0;
  while (i < def_->args.count && name != arg(i).name) ++i;
  BP_CHECK(i < def_->args.count, TYPE, "numpy.ufunc: ", def_->name, " has no argument \"", name, "\"");
  stated_[i] = true;
  if (std::holds_alternative<std::monostate>(given)) {
    BP_CHECK(arg(i).flags & BP_ARG_OPTIONAL, TYPE, "numpy.ufunc: argument \"", name, "\" of ", def_->name,
             ": found None, expected a ", type_word(arg(i).type));
    args_[i] = absent();
    return;
  }
  BP_CHECK(!(arg(i).flags & BP_ARG_LIST) && convert(arg(i).type, given, args_[i]), TYPE, "numpy.ufunc: argument \"",
           name, "\" of ", def_->name, ": found a value of another type, expected a ", type_word(arg(i).type),
           arg(i).type == BP_TYPE_TENSOR ? " that is a number" : "");
  if (const auto* number = std::get_if<std::complex<double>>(&given)) {
    args_[i].tag = BP_TAG_COMPLEX;
    args_[i].u.c = complex_numbers_.emplace_back(std::array{number->real(), number->imag()}).data();
  }
  if (const auto* text = std::get_if<std::string>(&given)) {
    args_[i] = bp_value{};
    args_[i].tag = BP_TAG_STRING;
    args_[i].count = static_cast<uint32_t>(text->size());
    args_[i].u.s = texts_.emplace_back(*text).c_str();
  }
}

void ElementwiseCall::choose_inputs() {
  for (uint32_t i = 0; i < def_->args.count; ++i) {
    if (stated_[i]) continue;
    if (arg(i).flags & (BP_ARG_OPTIONAL | BP_ARG_HAS_DEFAULT)) {
      BP_CHECK(arg(i).type != BP_TYPE_TENSOR, TYPE, "numpy.ufunc: argument \"", arg(i).name, "\" of ", def_->name,
               " is a tensor that may be left out; expected a number or None for it. Fix: ufunc(\"", def_->name, "\", ",
               arg(i).name, "=None), or call backplane.numpy.function");
      continue;
    }
    BP_CHECK(arg(i).type == BP_TYPE_TENSOR && !(arg(i).flags & BP_ARG_LIST), TYPE, "numpy.ufunc: argument \"",
             arg(i).name, "\" of ", def_->name, " has no value. Fix: ufunc(\"", def_->name, "\", ", arg(i).name,
             "=...)");
    places_.push_back(i);
  }
  BP_CHECK(args_.size() <= kMostArguments, VALUE, "numpy.ufunc: ", def_->name, " has ", args_.size(),
           " arguments, expected at most ", kMostArguments);
  BP_CHECK(!places_.empty() && n_inputs() + n_outputs() <= kMostOperands, VALUE, "numpy.ufunc: ", def_->name, " has ",
           n_inputs(), " inputs and ", n_outputs(), " results; expected an input, and at most ", kMostOperands,
           " of both");
  only_inputs_ = places_.size() == args_.size();
}

std::vector<LoopForm> ElementwiseCall::loops(const std::vector<bp_dtype>& dtypes) const {
  constexpr size_t kMostLoops = 400;
  const auto promoted = [&](size_t k) { return (def_->promote >> places_[k] & 1) != 0; };
  const auto takes = [&](size_t k, bp_dtype dtype) {
    const bp_dtype_mask accepted = def_->accepts ? def_->accepts[places_[k]] : 0;
    if (promoted(k) && (def_->dtype_flags & BP_DTYPE_TO_FLOATING) &&
        !(BP_DTYPE_BIT(dtype) & (BP_MASK_FLOATING | BP_MASK_COMPLEX)))
      return false;
    return accepted == 0 || (accepted & BP_DTYPE_BIT(dtype));
  };
  using Row = std::vector<bp_dtype>;
  std::vector<Row> inputs = {{}};
  for (size_t k = 0; k < places_.size(); ++k) {
    std::vector<Row> longer;
    size_t first = 0;  // the input whose dtype this one has
    while (first < k && !(promoted(first) && promoted(k))) ++first;
    for (const Row& row : inputs)
      for (const bp_dtype dtype : dtypes) {
        if (!takes(k, dtype) || (first < k && row[first] != dtype)) continue;
        longer.push_back(row);
        longer.back().push_back(dtype);
      }
    inputs = std::move(longer);
    BP_CHECK(inputs.size() <= kMostLoops, VALUE, "numpy.ufunc: the inputs of ", def_->name,
             " have more combinations of dtypes than a ufunc can list. Fix: call backplane.numpy.function");
  }
  std::vector<LoopForm> found;
  std::string reason = "it takes no dtype that NumPy has";
  for (const Row& row : inputs) {
    std::vector<bp_value> args = args_;
    std::vector<Tensor> examples;
    for (size_t k = 0; k < row.size(); ++k) {
      const int64_t one = 1;
      examples.push_back(empty(Shape(&one, 1), row[k], parse_device("cpu")));
      args[places_[k]] = value(examples.back());
    }
    try {
      Row whole = row;
      for (const InferredResult& result : infer(op_, args.data(), static_cast<int32_t>(args.size())))
        whole.push_back(result.dtype);
      const auto in_numpy = [&](bp_dtype d) { return std::find(dtypes.begin(), dtypes.end(), d) != dtypes.end(); };
      if (std::all_of(whole.begin(), whole.end(), in_numpy)) found.push_back(form_of(whole, row.size()));
    } catch (const Error& error) {
      reason = error.what();
    }
  }
  BP_CHECK(!found.empty(), DTYPE, "numpy.ufunc: no loop of ", def_->name, " can be made: ", reason);
  return found;
}

std::vector<LoopForm> ElementwiseCall::loops_of_truths(const std::vector<LoopForm>& loops) {
  std::vector<LoopForm> found;
  for (const LoopForm& form : loops)
    if (form.dtypes.size() == 3 && form.dtypes[0] == form.dtypes[1] && form.dtypes[0] != BP_BOOL &&
        form.dtypes[2] == BP_BOOL)
      found.push_back(form_of({BP_BOOL, form.dtypes[1], BP_BOOL}, 2));
  return found;
}

void ElementwiseCall::set_axis_calls(const std::string& reduction, const std::string& scan) {
  const bool whole = n_inputs() == 2 && n_outputs() == 1;
  BP_CHECK(whole || (reduction.empty() && scan.empty()), VALUE, "numpy.ufunc: ", def_->name, " has ", n_inputs(),
           " inputs and ", n_outputs(), " results; reduction and scan belong to an op of two inputs and one result");
  if (!reduction.empty()) reduction_ = AxisCall(reduction);
  if (!scan.empty()) scan_ = AxisCall(scan);
}

}  // namespace backplane::numpy
