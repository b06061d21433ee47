// Op records and tensors for the tests of the core's rules, built by hand: no registry, no backend, no data.
//
// A ToyRecord owns everything that its bp_op_def points to; a ToyTensor owns its shape and strides. Both live as long
// as the test.
#pragma once

#include <deque>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "record/dtype_rules.hpp"
#include "record/op_record.hpp"

namespace backplane::core {

using Ints = std::vector<int64_t>;

struct ToyTensor {
  Ints shape, strides;
  bp_tensor handle{};

  explicit ToyTensor(Ints sizes, bp_dtype dtype = BP_FLOAT32) : ToyTensor(sizes, contiguous(sizes), 0, dtype) {
    handle.flags |= BP_TENSOR_CONTIGUOUS;
  }
  ToyTensor(Ints sizes, Ints steps, uint64_t byte_offset, bp_dtype dtype = BP_FLOAT32)
      : shape(std::move(sizes)), strides(std::move(steps)) {
    handle.dl.ndim = static_cast<int32_t>(shape.size());
    handle.dl.shape = shape.data();
    handle.dl.strides = strides.data();
    handle.dl.byte_offset = byte_offset;
    handle.dl.dtype = kDLDtypes[dtype];
    handle.dtype = dtype;
    handle.struct_size = sizeof(bp_tensor);
  }
  ToyTensor(const ToyTensor&) = delete;
  bp_value value() {
    bp_value v{};
    v.tag = BP_TAG_TENSOR;
    v.u.t = &handle;
    return v;
  }
  static Ints contiguous(const Ints& sizes) {
    Ints steps(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) steps[d - 1] = steps[d] * std::max<int64_t>(sizes[d], 1);
    return steps;
  }
};

inline bp_value int_value(int64_t i, uint16_t flags = 0) {
  bp_value v{};
  v.tag = BP_TAG_INT;
  v.flags = flags;
  v.u.i = i;
  return v;
}
inline bp_value bool_value(bool b, uint16_t flags = 0) {
  bp_value v = int_value(b, flags);
  v.tag = BP_TAG_BOOL;
  return v;
}
inline bp_value float_value(double f, uint16_t flags = 0) {
  bp_value v{};
  v.tag = BP_TAG_FLOAT;
  v.flags = flags;
  v.u.f = f;
  return v;
}
inline bp_value complex_value(const double* c, uint16_t flags = 0) {
  bp_value v{};
  v.tag = BP_TAG_COMPLEX;
  v.flags = flags;
  v.u.c = c;
  return v;
}
inline bp_value dtype_of(bp_dtype dtype) {
  bp_value v{};
  v.tag = BP_TAG_DTYPE;
  v.u.i = dtype;
  return v;
}
inline bp_value string_value(const char* s) {
  bp_value v{};
  v.tag = BP_TAG_STRING;
  v.count = static_cast<uint32_t>(std::char_traits<char>::length(s));
  v.u.s = s;
  return v;
}
inline bp_value ints_value(const Ints& ints) {
  bp_value v{};
  v.tag = BP_TAG_INT_LIST;
  v.count = static_cast<uint32_t>(ints.size());
  v.u.ints = ints.data();
  return v;
}
inline bp_value values_value(const std::vector<bp_value>& values) {
  bp_value v{};
  v.tag = BP_TAG_VALUE_LIST;
  v.count = static_cast<uint32_t>(values.size());
  v.u.values = values.data();
  return v;
}
inline bp_value tensors_value(const std::vector<bp_tensor*>& tensors) {
  bp_value v{};
  v.tag = BP_TAG_TENSOR_LIST;
  v.count = static_cast<uint32_t>(tensors.size());
  v.u.tensors = tensors.data();
  return v;
}

class ToyRecord {
 public:
  explicit ToyRecord(std::string name) : name_(std::move(name)) {}

  uint32_t arg(const char* name, uint16_t type = BP_TYPE_TENSOR, uint16_t flags = 0, bp_value default_value = {}) {
    args.push_back({name, type, flags, 0, default_value});
    accepts.push_back(type == BP_TYPE_TENSOR ? BP_MASK_ANY : 0);
    if (type == BP_TYPE_TENSOR) promote |= uint64_t{1} << (args.size() - 1);
    return static_cast<uint32_t>(args.size() - 1);
  }
  ToyRecord& tensors(std::initializer_list<const char*> names) {
    for (const char* name : names) arg(name);
    return *this;
  }
  ToyRecord& result(const char* name, const char* word, std::vector<uint32_t> word_args,
                    bp_result_dtype dtype = {BP_RESULT_DTYPE_COMPUTE, 0, 0, 0, 0}) {
    results.push_back({name, BP_TYPE_TENSOR, 0, 0});
    const auto& kept = kept_.emplace_back(std::move(word_args));
    shapes.push_back({word, kept.data(), static_cast<uint32_t>(kept.size()), 0, nullptr});
    dtypes.push_back(dtype);
    return *this;
  }
  uint32_t node(uint16_t kind, std::vector<uint32_t> inputs = {}, int64_t imm = 0) {
    nodes.push_back({kind, static_cast<uint16_t>(inputs.size()), static_cast<uint32_t>(this->inputs.size()), imm});
    this->inputs.insert(this->inputs.end(), inputs.begin(), inputs.end());
    return static_cast<uint32_t>(nodes.size() - 1);
  }
  uint32_t constant(bp_value value) {
    consts.push_back(value);
    return node(BP_NODE_CONST, {}, static_cast<int64_t>(consts.size() - 1));
  }
  uint32_t call(const char* name, std::vector<uint32_t> inputs) { return named(BP_NODE_CALL, name, std::move(inputs)); }
  uint32_t builtin(const char* name, std::vector<uint32_t> inputs) {
    return named(BP_NODE_BUILTIN, name, std::move(inputs));
  }
  void formula(uint16_t rule, std::vector<uint32_t> targets, std::vector<uint32_t> roots, uint16_t flags = 0,
               const char* text = "") {
    const auto& t = kept_.emplace_back(std::move(targets));
    const auto& r = kept_.emplace_back(std::move(roots));
    formulas.push_back({rule, flags, static_cast<uint32_t>(t.size()), t.data(), r.data(),
                        static_cast<uint32_t>(r.size()), 1, nullptr, text});
  }

  // Valid until the record changes.
  bp_op_def& def() {
    if (results.empty()) {
      std::vector<uint32_t> all;
      for (uint32_t i = 0; i < args.size(); ++i)
        if (args[i].type == BP_TYPE_TENSOR) all.push_back(i);
      if (all.empty())
        result("out", "scalar", {});
      else
        result("out", "broadcast", all);
    }
    program_ = {nodes.data(),
                inputs.data(),
                consts.data(),
                names.data(),
                static_cast<uint32_t>(nodes.size()),
                static_cast<uint32_t>(inputs.size()),
                static_cast<uint32_t>(consts.size()),
                static_cast<uint32_t>(names.size())};
    def_ = {};
    def_.header = BP_HEADER(bp_op_def);
    def_.name = name_.c_str();
    def_.doc = "A toy.";
    def_.flags = flags;
    def_.args = array(args);
    def_.results = array(results);
    def_.formulas = array(formulas);
    def_.shapes = array(shapes);
    def_.dtypes = array(dtypes);
    def_.accepts = accepts.data();
    def_.promote = promote;
    def_.dtype_flags = dtype_flags;
    def_.alias = alias;
    def_.program = &program_;
    def_.fit_names = fit_names;
    return def_;
  }
  bp_program& program() { return program_; }
  std::unique_ptr<OpRecord> record() { return copy_record(def()); }

  std::vector<bp_arg_def> args;
  std::vector<bp_result_def> results;
  std::vector<bp_shape_rule> shapes;
  std::vector<bp_result_dtype> dtypes;
  std::vector<bp_dtype_mask> accepts;
  std::vector<bp_formula> formulas;
  std::vector<bp_node> nodes;
  std::vector<uint32_t> inputs;
  std::vector<bp_value> consts;
  std::vector<const char*> names;
  uint64_t promote = 0;
  uint64_t flags = 0;
  uint32_t dtype_flags = 0;
  uint32_t alias = BP_NO_ARG;
  const char* const* fit_names = nullptr;

 private:
  template <class T>
  static bp_array array(const std::vector<T>& items) {
    return {items.data(), static_cast<uint32_t>(items.size()), static_cast<uint32_t>(sizeof(T))};
  }
  uint32_t named(uint16_t kind, const char* name, std::vector<uint32_t> inputs) {
    names.push_back(name);
    return node(kind, std::move(inputs), static_cast<int64_t>(names.size() - 1));
  }

  std::string name_;
  std::deque<std::vector<uint32_t>> kept_;
  bp_program program_{};
  bp_op_def def_{};
};

// The message of the Error that `f` throws, with its code; "" if it throws none.
template <class F>
std::string error_of(F&& f, bp_status* code = nullptr) {
  try {
    f();
  } catch (const Error& error) {
    if (code) *code = error.code();
    return error.what();
  }
  return "";
}

}  // namespace backplane::core
