// The key of autocast: casts the arguments of calls whose ops say so, above all transforms, which see the casts.
#include "backplane/autocast.hpp"

#include "call/dispatch.hpp"
#include "call/formulas/role_calls.hpp"
#include "memory/tensors/history.hpp"
#include "record/mapped_value.hpp"
#include "registry/ordered_ops.hpp"

namespace backplane {
namespace core {
namespace {

thread_local constinit Autocast current{BP_DTYPE_NONE, std::nullopt};

static_assert(!(kAutocastKey & (kPluginKeys | kViewKey | kProfileKey | kEveryCallKey | kCreationKey | kLevelKey)));
static_assert(!((kAutocastHalf | kAutocastWide) & (kOrdered | kPartialGradient | kAddsToFirst)));

constexpr uint32_t kCastable = BP_DTYPE_BIT(BP_FLOAT16) | BP_DTYPE_BIT(BP_BFLOAT16) | BP_DTYPE_BIT(BP_FLOAT32);

// A call's arguments in the dtype in which its op is to run.
class CastArguments {
 public:
  CastArguments(const Call& call, bp_dtype wanted, uint64_t mask) : args_(call.args) {
    const auto differs = [&](const TensorImpl* t) {
      return t->dtype != wanted && (kCastable & BP_DTYPE_BIT(t->dtype)) && is_concerned(*t);
    };
    bool any = false;
    each_tensor(call.args, call.n_args, [&](const TensorImpl* t) { any = any || differs(t); });
    if (!any) return;
    values_.assign(call.args, call.args + call.n_args);
    for (bp_value& v : values_)
      v = mapped(v, lists_, [&](bp_tensor* t) -> bp_tensor* {
        if (!t || !differs(impl(t))) return t;
        held_.push_back(roles::cast(impl(t), wanted, mask));
        return held_.back().get();
      });
    args_ = values_.data();
  }
  CastArguments(const CastArguments&) = delete;
  const bp_value* get() const { return args_; }

 private:
  static bool is_concerned(const TensorImpl& t) { return !current.backend || t.backend == *current.backend; }

  const bp_value* args_;
  std::vector<bp_value> values_;
  TensorLists lists_;
  std::vector<Tensor> held_;
};

void autocast_call(const Call& call, const KeySlot*) {
  const uint64_t below = call.mask & ~kAutocastKey;
  for (int32_t i = 0; i < call.n_outs; ++i)
    if (call.outs[i].flags & BP_VALUE_GIVEN)
      return dispatch({call.op, call.args, call.n_args, call.outs, call.n_outs, below});
  const bp_dtype wanted = call.op.flags & kAutocastHalf ? current.dtype : bp_dtype{BP_FLOAT32};
  const CastArguments cast(call, wanted, below);
  dispatch({call.op, cast.get(), call.n_args, call.outs, call.n_outs, below});
}

[[gnu::constructor]] void register_autocast() {
  register_layer(kAutocastKey, "autocast", kAutocastRank, autocast_call);
  add_resolver([](OpEntry& entry) {
    const std::string_view tags = entry.record->def.tags ? entry.record->def.tags : "";
    if (tags.find("autocast:half") != std::string_view::npos) entry.flags |= kAutocastHalf;
    if (tags.find("autocast:float32") != std::string_view::npos) entry.flags |= kAutocastWide;
  });
}

}  // namespace
}  // namespace core

Autocast autocast() noexcept { return core::current; }

Autocast set_autocast(Autocast wanted) noexcept {
  uint64_t& keys = core::thread_state.included_keys;
  keys = wanted.dtype == BP_DTYPE_NONE ? keys & ~core::kAutocastKey : keys | core::kAutocastKey;
  return std::exchange(core::current, wanted);
}

}  // namespace backplane
