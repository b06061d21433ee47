// What a node keeps of the call that it records: of each argument and result what the formulas that are needed read.
//
// `Saving` fills a new node's values, which nobody has written yet; tensors and lists that it keeps are the node's
// then.
#pragma once

#include "call/dispatch.hpp"
#include "levels/level.hpp"
#include "memory/devices/device.hpp"
#include "record/plain_value.hpp"
#include "tape/node.hpp"
#include "tape/record.hpp"

namespace backplane::core {

class Saving {
 public:
  Saving(Node* node, const Recorded& recorded, const FreeNames& reads)
      : node_(*node),
        r_(recorded),
        reads_(reads),
        values_(node->values()),
        saved_(node->saved()),
        place_(node->extra()),
        like_(node->n_outs == 1 && r_.outs[0].tag == BP_TAG_TENSOR ? r_.outs[0].u.t : nullptr) {}
  Saving(const Saving&) = delete;

  // `all_alike`: tensors all, of the only result's shape, dtype and device.
  [[gnu::always_inline]] void save_arguments(uint32_t n, bool all_alike) {
    for (uint32_t i = 0; i < n; ++i) {
      const bp_value& v = r_.args[i];
      const uint64_t bit = uint64_t{1} << (i < 63 ? i : 63);
      if (!all_alike && v.tag != BP_TAG_TENSOR) [[unlikely]]
        save_other(i, v, reads_.args & bit, reads_.arg_metadata & bit);
      else if (reads_.args & bit)
        save_tensor(i, impl(v.u.t));
      else if (!(reads_.arg_metadata & bit))
        keep(i, edges_only(1), Saved::kPlain);
      else if (all_alike)
        keep(i, bp_value{}, Saved::kLikeOutput);
      else
        save_meta(i, *impl(v.u.t));
    }
  }

  [[gnu::always_inline]] void save_results(uint32_t n_args, uint32_t n) {
    const uint64_t whole = reads_.outs | (n > 1 ? reads_.out_metadata : 0);
    for (uint32_t j = 0; j < n; ++j) {
      const bool tensor = r_.outs[j].tag == BP_TAG_TENSOR;
      if (tensor && (whole >> j & 1))
        save_result(n_args + j, impl(r_.outs[j].u.t), r_.results[j]);
      else
        keep(n_args + j, bp_value{}, tensor && (reads_.out_metadata >> j & 1) ? Saved::kLikeOutput : Saved::kPlain);
    }
  }

 private:
  void keep(uint32_t i, const bp_value& value, Saved kind) {
    values_[i] = value;
    saved_[i] = kind;
  }
  void own(uint32_t i, const bp_value& value, Saved kind) {
    keep(i, value, kind);
    ++node_.n_owned;
  }

  // As many edges as an argument has that nothing reads.
  static bp_value edges_only(uint32_t count) {
    bp_value v{};
    v.count = count;
    return v;
  }

  uint32_t version_now(const TensorImpl& t) const {
    if (!t.storage) return t.wrapper ? t.wrapper->version : 0;
    return t.storage == r_.mutated ? r_.version : t.storage->version.load(std::memory_order_relaxed);
  }

  void save_tensor(uint32_t i, TensorImpl* t) {
    retain(t);
    bp_value value = tensor_value(t);
    value.count = version_now(*t);
    own(i, value, Saved::kTensor);
  }

  [[gnu::noinline]] void save_other(uint32_t i, const bp_value& v, bool read, bool metadata) {
    if (v.tag != BP_TAG_TENSOR_LIST)
      keep(i, copy_plain(v, place_), Saved::kPlain);
    else if (read || metadata)
      save_list(i, v, !read);
    else
      keep(i, edges_only(v.count), Saved::kPlain);
  }

  // `without_data`: handles of the same metadata.
  void save_list(uint32_t i, const bp_value& v, bool without_data) {
    auto** copy = new bp_tensor*[2 * static_cast<size_t>(v.count)];
    for (uint32_t k = 0; k < v.count; ++k) {
      copy[k] = v.u.tensors[k];
      if (const TensorImpl* t = copy[k] ? impl(copy[k]) : nullptr; t && without_data)
        copy[k] = new_handle(device_of(*t), t->dtype, t->dl.ndim, t->dl.shape);
      else if (copy[k])
        retain(impl(copy[k]));
      copy[v.count + k] = reinterpret_cast<bp_tensor*>(uintptr_t{copy[k] ? version_now(*impl(copy[k])) : 0});
    }
    bp_value value = v;
    value.u.tensors = copy;
    own(i, value, Saved::kList);
  }

  // Of a tensor whose data nobody reads: often the result, and so its cotangent, has the same metadata.
  void save_meta(uint32_t i, const TensorImpl& t) {
    if (r_.same_meta || (like_ && like_->dtype == t.dtype && same_shape(*like_, t)))
      keep(i, bp_value{}, Saved::kLikeOutput);
    else
      own(i, tensor_value(new_handle(device_of(t), t.dtype, t.dl.ndim, t.dl.shape)), Saved::kMeta);
  }

  // A result is kept without its history, or node and result would own each other.
  [[gnu::noinline]] void save_result(uint32_t slot, TensorImpl* inner, const TensorImpl* result) {
    if (inner != result) return save_tensor(slot, inner);
    bp_value value = tensor_value(new_alias(*inner));
    value.count = inner->storage->version.load(std::memory_order_relaxed);
    own(slot, value, Saved::kResult);
  }

  Node& node_;
  const Recorded& r_;
  const FreeNames& reads_;
  bp_value* values_;
  Saved* saved_;
  char* place_;            // where what values point to goes next
  const bp_tensor* like_;  // the only result
};

}  // namespace backplane::core
