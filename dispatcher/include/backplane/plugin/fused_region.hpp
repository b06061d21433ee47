// The device-independent part of a compiled region, the base of an executable (backplane/plugin/compiler.hpp): its
// program, a reference to each constant that it reads, the usual layout of its operands, and the outputs that may reuse
// an input's memory.
//
// Operands are the program's loads, then its stores. Constant after its construction. Header-only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backplane/plugin/fused_passes.hpp"
#include "backplane/plugin/fused_program.hpp"

namespace backplane::plugin {

// Where the elements of an operand lie: strides in elements.
struct FusedPlace {
  std::vector<int64_t> shape, strides;
  const bp_tensor* constant = nullptr;  // whose place it is, if one's
};

class FusedRegion {
 public:
  FusedRegion(const bp_host* host, const GraphView& region, const FusedRules& rules)
      : host_(host),
        program_(FusedLowering(region, rules).run()),
        passes_(program_),
        n_inputs_(static_cast<uint32_t>(region.inputs().size())) {
    for (bp_tensor* constant : program_.constants) host_->retain(constant);
  }
  ~FusedRegion() {
    for (bp_tensor* constant : program_.constants) host_->release(constant);
  }
  FusedRegion(const FusedRegion&) = delete;
  FusedRegion& operator=(const FusedRegion&) = delete;

  // Can the output take the input's memory? Each element is read before its place is written, where both lie alike. An
  // invocation has an element of a row to itself in all passes, but not what there is one of per row.
  bool may_share(uint32_t out, uint32_t in) const {
    const FusedOperand* read = nullptr;
    for (const FusedOperand& load : program_.loads) {
      if (load.input != in) continue;
      if (read != nullptr) return false;  // in two ways
      read = &load;
    }
    const FusedOperand& written = program_.stores[out];
    const bool alike =
        read != nullptr && read->dtype == written.dtype && read->axes == written.axes && !written.uniform();
    return alike &&
           (!program_.has_rows() || passes_.is_last_read(static_cast<size_t>(read - program_.loads.data()), out));
  }

 protected:
  const FusedProgram& program() const { return program_; }
  const FusedPasses& passes() const { return passes_; }  // of a program with rows

  // The constant that a load reads; nullptr: it reads an input.
  const bp_tensor* constant(const FusedOperand& load) const {
    return load.input < n_inputs_ ? nullptr : program_.constants[load.input - n_inputs_];
  }

  // Inputs and outputs contiguous: what to compile for at once, so that a fault of the source is found then. Empty
  // where the region leaves a size open.
  std::vector<FusedPlace> usual_places(const GraphView& region) const {
    std::vector<FusedPlace> places;
    for (const FusedOperand& load : program_.loads) {
      if (const bp_tensor* own = constant(load))
        places.push_back(constant_place(*own));
      else
        places.push_back(contiguous(region.dims(region.inputs()[load.input])));
    }
    for (const uint32_t value : region.outputs()) places.push_back(contiguous(region.dims(value)));
    const auto is_open = [](const FusedPlace& place) {
      return std::any_of(place.shape.begin(), place.shape.end(), [](int64_t size) { return size < 0; });
    };
    if (std::any_of(places.begin(), places.end(), is_open)) places.clear();
    return places;
  }

  void check_counts(const bp_frame* frame, int32_t n_inputs, int32_t n_outs) const {
    BP_CHECK(static_cast<uint32_t>(n_inputs) == n_inputs_ && static_cast<size_t>(n_outs) == program_.stores.size(),
             VALUE, frame->op->name, ": found ", n_inputs, " inputs and ", n_outs, " outputs, expected ", n_inputs_,
             " and ", program_.stores.size());
  }

 private:
  static FusedPlace constant_place(const bp_tensor& tensor) {
    const DLTensor& dl = tensor.dl;
    return {{dl.shape, dl.shape + dl.ndim}, {dl.strides, dl.strides + dl.ndim}, &tensor};
  }
  static FusedPlace contiguous(Dims dims) {
    FusedPlace place{{dims.begin(), dims.end()}, std::vector<int64_t>(dims.size())};
    int64_t step = 1;
    for (size_t d = dims.size(); d-- > 0;) place.strides[d] = step, step *= dims[d];
    return place;
  }

  const bp_host* host_;
  FusedProgram program_;
  FusedPasses passes_;
  uint32_t n_inputs_;
};

}  // namespace backplane::plugin
