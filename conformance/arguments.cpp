// From what a sample says to the values of a call. See call.hpp.
#include <algorithm>

#include "call.hpp"

namespace backplane::conformance {
namespace {

using Json = nlohmann::json;

const bp_arg_def& arg_def(OpHandle op, size_t i) {
  const bp_array& args = op_def(op).args;
  return *reinterpret_cast<const bp_arg_def*>(static_cast<const char*>(args.data) + i * args.stride);
}

bp_value number_of(const Json& literal) {
  if (literal.is_boolean()) return value(literal.get<bool>());
  if (literal.is_string()) return value(std::strtod(literal.get<std::string>().c_str(), nullptr));
  if (literal.is_number_float()) return value(literal.get<double>());
  if (literal.is_number_unsigned() && literal.get<uint64_t>() > INT64_MAX) {
    bp_value big = value(static_cast<int64_t>(literal.get<uint64_t>()));
    big.flags = BP_VALUE_UINT64;
    return big;
  }
  return value(literal.get<int64_t>());
}

bp_dtype widest_of(bp_dtype_mask mask) {
  for (const bp_dtype dtype : {BP_FLOAT64, BP_INT64, BP_COMPLEX128, BP_BOOL})
    if (mask & BP_DTYPE_BIT(dtype)) return dtype;
  for (bp_dtype dtype = BP_DTYPE_COUNT; dtype-- > 0;)
    if (mask & BP_DTYPE_BIT(dtype)) return dtype;
  return BP_FLOAT64;
}

}  // namespace

Inputs draw_inputs(const Entry& entry, size_t sample, bp_dtype dtype, bp_dtype_mask computes, bool own_dtype,
                   size_t row) {
  Inputs inputs(entry.args.size());
  const std::string name = entry.name + "-" + std::to_string(sample) + (row ? "-" + std::to_string(row) + "-" : "");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Argument& arg = entry.args[i];
    const auto found = entry.samples[sample].values.find(arg.name);
    if (found == entry.samples[sample].values.end()) continue;
    const SampleValue& said = found->second;
    Input& input = inputs[i];
    input = {true, said.is_tensors, said.is_list, {}, {}, arg.promotes, said.generator, said.literal};
    const bool takes = arg.promotes && dtype != BP_DTYPE_NONE && (arg.accepts & BP_DTYPE_BIT(dtype));
    const bp_dtype wanted = takes ? dtype : widest_of(arg.accepts & computes);
    for (size_t k = 0; k < said.tensors.size(); ++k) {
      input.layouts.push_back(said.tensors[k] ? said.tensors[k]->layout : "");
      if (!said.tensors[k]) {
        input.arrays.emplace_back();
        continue;
      }
      TensorSpec spec = *said.tensors[k];
      if (!own_dtype) spec.dtype = BP_DTYPE_NONE;
      Array drawn = draw(spec, wanted, seed_of(name + arg.name + std::to_string(k)));
      // What a stride of 0 shows again must be equal to begin with.
      if (spec.layout == "zero_stride" && !drawn.shape.empty() && drawn.count()) {
        const size_t slice = drawn.bytes.size() / static_cast<size_t>(drawn.shape[0]);
        for (size_t at = slice; at < drawn.bytes.size(); ++at) drawn.bytes[at] = drawn.bytes[at - slice];
      }
      input.arrays.emplace_back(std::move(drawn));
    }
  }
  return inputs;
}

Inputs widened(const Entry& entry, const Inputs& inputs) {
  Inputs made = inputs;
  for (Input& input : made)
    for (std::optional<Array>& array : input.arrays)
      if (array && input.promotes) array = as_dtype(*array, widest_taken(entry, array->dtype));
  return made;
}

Arguments::Arguments(const Entry& entry, const Inputs& inputs, bp_device device, const CallOptions& options) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Argument& arg = entry.args[i];
    const Input& input = inputs[i];
    if (arg.type == "Device") {
      values_.push_back(value(device));
    } else if (!input.given) {
      values_.push_back(arg_def(entry.op, i).default_value);
    } else if (input.is_tensors) {
      values_.push_back(tensors(i, input, device, options));
    } else if (input.generator) {
      bp_value state{};
      state.tag = BP_TAG_GENERATOR;
      state.u.g = &generators_.emplace_back(*input.generator);
      values_.push_back(state);
    } else {
      values_.push_back(literal(arg, input.literal));
    }
  }
}

bp_value Arguments::tensors(size_t argument, const Input& input, bp_device device, const CallOptions& options) {
  std::vector<bp_tensor*>& handles = tensor_lists_.emplace_back();
  for (size_t k = 0; k < input.arrays.size(); ++k) {
    if (!input.arrays[k]) {
      handles.push_back(nullptr);
      continue;
    }
    const std::string& layout = options.layout.empty() && options.as_sampled ? input.layouts[k] : options.layout;
    held_.push_back({argument, place(*input.arrays[k], layout, device)});
    handles.push_back(held_.back().placed.tensor.get());
  }
  if (!input.is_list) return value(held_.back().placed.tensor);
  bp_value made{};
  made.tag = BP_TAG_TENSOR_LIST;
  made.count = static_cast<uint32_t>(handles.size());
  made.u.tensors = handles.data();
  return made;
}

bp_value Arguments::literal(const Argument& argument, const Json& given) {
  if (given.is_null()) return absent();
  if (argument.type == "Dtype") {
    for (bp_dtype dtype = 0; dtype < BP_DTYPE_COUNT; ++dtype)
      if (given == dtype_name(dtype)) return dtype_value(dtype);
    return absent();
  }
  if (argument.type == "str") {
    const std::string& text = texts_.emplace_back(given.get<std::string>());
    bp_value made{};
    made.tag = BP_TAG_STRING;
    made.count = static_cast<uint32_t>(text.size());
    made.u.s = text.c_str();
    return made;
  }
  if (given.is_array()) return list(given);
  if (argument.type == "Axes" || argument.type == "Shape") return list(Json::array({given}));
  return argument.is_tensor() ? number(number_of(given)) : number_of(given);
}

bp_value Arguments::list(const Json& items) {
  bp_value made{};
  made.count = static_cast<uint32_t>(items.size());
  const auto all = [&](auto test) { return std::all_of(items.begin(), items.end(), test); };
  if (all([](const Json& item) { return item.is_number_integer(); })) {
    made.tag = BP_TAG_INT_LIST;
    made.u.ints = ints_.emplace_back(items.get<std::vector<int64_t>>()).data();
  } else if (all([](const Json& item) { return item.is_boolean(); })) {
    made.tag = BP_TAG_BOOL_LIST;
    auto& bools = bools_.emplace_back();
    for (const Json& item : items) bools.push_back(item.get<bool>());
    made.u.bools = bools.data();
  } else if (all([](const Json& item) { return item.is_null() || item.is_number_integer(); })) {
    made.tag = BP_TAG_VALUE_LIST;
    auto& values = value_lists_.emplace_back();
    for (const Json& item : items) values.push_back(item.is_null() ? absent() : number_of(item));
    made.u.values = values.data();
  } else {
    made.tag = BP_TAG_FLOAT_LIST;
    auto& floats = floats_.emplace_back();
    for (const Json& item : items) {
      const bp_value number = number_of(item);
      floats.push_back(number.tag == BP_TAG_FLOAT ? number.u.f : static_cast<double>(number.u.i));
    }
    made.u.floats = floats.data();
  }
  return made;
}

std::vector<std::string> Arguments::changed(const Entry& entry, const std::vector<size_t>& but) const {
  std::vector<std::string> names;
  for (const Held& held : held_)
    if (std::count(but.begin(), but.end(), held.argument) == 0 && !held.placed.is_untouched())
      names.push_back(entry.args[held.argument].name);
  return names;
}

}  // namespace backplane::conformance
