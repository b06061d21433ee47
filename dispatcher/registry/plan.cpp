// Making plans, and the rows that go into them.
#include "registry/plan.hpp"

#include <algorithm>

#include "record/dtype_rules.hpp"
#include "record/foreign_struct.hpp"
#include "registry/held_fast_rows.hpp"
#include "registry/kept_calls.hpp"
#include "registry/registry_state.hpp"

namespace backplane::core {

constinit Handlers handlers{};

namespace {

bool row_before(const KernelRow* a, const KernelRow* b) {
  if (a->for_all != b->for_all) return b->for_all;
  if (a->def.priority != b->def.priority) return a->def.priority > b->def.priority;
  return a->owner->name < b->owner->name;
}

// Does the op make tensors of metadata alone (zeros_like), so that nothing has a derivative? The tape does not see it:
// its results would have a history of zeros.
bool makes_constants(const OpEntry& op) {
  const auto& formulas = op.vjp_of_arg;
  return (op.flags & kCreates) &&
         std::any_of(formulas.begin(), formulas.end(), [](const bp_formula* f) { return f; }) &&
         std::all_of(formulas.begin(), formulas.end(),
                     [](const bp_formula* f) { return !f || (f->flags & BP_FORMULA_ZERO); });
}

// A layer follows a composite through its parts, and an op that takes a function by the rules of that.
KeySlot layer_slot(const OpEntry& op, const KeyRecord& key) {
  const uint64_t bit = uint64_t{1} << key.bit;
  if (bit == kProfileKey) return {key.handle, nullptr, &key, nullptr};
  if (bit == kAutocastKey) {
    if (op.flags & (kAutocastHalf | kAutocastWide)) return {key.handle, nullptr, &key, nullptr};
    return op.flags & BP_OP_COMPOSITE ? KeySlot{handlers.decomposition, nullptr, &key, nullptr} : KeySlot{};
  }
  if (bit == kCreationKey && !(op.flags & kCreates)) return {};
  if (bit == kTapeKey && makes_constants(op)) return {};
  if ((op.flags & BP_OP_COMPOSITE) && !((op.flags & kBatchedWhole) && bit == kLevelKey))
    return {handlers.decomposition, nullptr, &key, nullptr};
  if (op.flags & BP_OP_HIGHER_ORDER) return {handlers.function, nullptr, &key, nullptr};
  return {key.handle, key.fast, &key, nullptr};
}

// A plugin's key sees a composite's parts, always.
KeySlot plugin_slot(const OpEntry& op, const KeyRecord& key, const KernelRow* row) {
  if (!row && (key.withdrawn || !key.fallback)) return {nullptr, nullptr, &key, nullptr};
  return {op.flags & BP_OP_COMPOSITE ? handlers.decomposition : handlers.key, nullptr, &key, row};
}

void plan_keys(const OpEntry& entry, Plan& plan) {
  for (uint32_t bit = 0; bit < kPluginBits; ++bit) {
    const KeyRecord* key = key_at(bit);
    if (!key) break;
    const KernelRow* best = nullptr;
    const std::string backend = "key:" + key->name;
    for (const auto& row : entry.rows)
      if (!row->withdrawn && row->backend == backend && (!best || row_before(row.get(), best))) best = row.get();
    plan.keys.push_back(plugin_slot(entry, *key, best));
  }
  for (uint32_t bit = kPluginBits; bit < 64; ++bit)
    if (const KeyRecord* key = key_at(bit)) plan.layers[bit - kPluginBits] = layer_slot(entry, *key);
  for (uint32_t bit = 0; bit < 64; ++bit)
    if ((bit >= kPluginBits || bit < plan.keys.size()) && plan.slot(bit).handle) plan.answers |= uint64_t{1} << bit;
}

DeviceRule rule_without_rows(const OpEntry& op, const BackendRecord& backend) {
  if (op.flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) return DeviceRule::kView;
  if (op.flags & BP_OP_HIGHER_ORDER) return DeviceRule::kFunction;
  if (op.decompose) return DeviceRule::kDecomposition;
  const bool is_host = (backend.def.flags & BP_BACKEND_HOST_DEVICE) != 0;
  return (op.flags & BP_OP_HOST) && !is_host ? DeviceRule::kHostFallback : DeviceRule::kMissing;
}

void plan_devices(const OpEntry& entry, Plan& plan) {
  plan.n_devices = backend_count();
  plan.devices = std::make_unique<DeviceSlot[]>(plan.n_devices);
  for (uint32_t i = 0; i < plan.n_devices; ++i) {
    const BackendRecord& backend = backend_at(i);
    DeviceSlot& slot = plan.devices[i];
    slot.otherwise = rule_without_rows(entry, backend);
    if (backend.withdrawn) continue;
    for (const auto& row : entry.rows)
      if (!row->withdrawn && (row->for_all || row->backend == backend.name)) slot.rows.push_back(row.get());
    std::sort(slot.rows.begin(), slot.rows.end(), row_before);
    if (!slot.rows.empty() && !entry.withdrawn && !fast_rows_are_held())
      slot.fast_row = fast_row(entry, *slot.rows.front(), i);
  }
}

constexpr uint64_t kKernelFlags = flags_up_to(BP_KERNEL_SEPARATE_BLOCKS);

void check_row(const bp_kernel_def& def) {
  const auto fail = [&](const auto&... what) {
    detail::fail(BP_ERROR_VALUE, "register_kernel: ", def.op, " on ", def.backend, ": ", what...);
  };
  check_flags(def.flags, kKernelFlags, BP_HINTS_OF_32, "register_kernel: ", def.op, " on ", def.backend);
  if (def.offset_alignment & (def.offset_alignment - 1))
    fail("offset_alignment is ", def.offset_alignment, "; expected 0 or a power of two");
  if (def.max_elements < 0) fail("max_elements is ", def.max_elements, "; expected 0, for no limit, or more");
  if ((def.flags & BP_KERNEL_MAY_DECLINE) && !def.supports) fail("BP_KERNEL_MAY_DECLINE without `supports`");
  if ((def.flags & BP_KERNEL_OWN_RESULTS) && (def.flags & (BP_KERNEL_LOOP | BP_KERNEL_INPLACE)))
    fail("BP_KERNEL_OWN_RESULTS, with which the kernel makes its results, beside ",
         def.flags & BP_KERNEL_LOOP ? "BP_KERNEL_LOOP, which walks them" : "BP_KERNEL_INPLACE, which writes them",
         ". Fix: leave out one flag");
  const bool of_key = std::string_view(def.backend).starts_with("key:");
  if (!of_key && !(def.dtypes & BP_MASK_ANY))
    fail("`dtypes` names no dtype; expected the compute dtypes that the kernel takes");
}

// Would the one be asked exactly where the other is?
bool same_calls(const bp_kernel_def& a, const bp_kernel_def& b) {
  return a.priority == b.priority && a.revision == b.revision && a.max_elements == b.max_elements && !a.supports &&
         !b.supports && (a.dtypes & b.dtypes & BP_MASK_ANY);
}

void check_duplicates(const PluginRecord* owner, const OpEntry& entry, const bp_kernel_def& def) {
  for (const auto& row : entry.rows)
    if (!row->withdrawn && row->owner == owner && row->backend == def.backend && same_calls(row->def, def))
      detail::fail(BP_ERROR_VALUE, "register_kernel: ", def.op, " on ", def.backend, ": plugin \"", owner->name,
                   "\" has registered a row for the same dtypes already (", row->file, ":", row->def.line,
                   "), so one of the two would never be called. Fix: give them different dtypes, sizes or priorities");
}

}  // namespace

void rebuild_plan(OpEntry& entry) {
  auto plan = std::make_unique<Plan>();
  plan->device = entry.flags & BP_OP_COMPOSITE                   ? handlers.decomposition
                 : entry.flags & BP_OP_HIGHER_ORDER              ? handlers.function
                 : entry.flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW) ? handlers.view
                                                                 : handlers.device;
  plan_keys(entry, *plan);
  plan_devices(entry, *plan);
  if (const Plan* old = entry.current_plan.exchange(plan.release(), std::memory_order_acq_rel))
    retired().plans.emplace_back(old);
  plan_changes.fetch_add(1, std::memory_order_release);
}

void rebuild_all_plans() {
  for (uint32_t i = 0; i < op_count(); ++i) rebuild_plan(*op_entry(i));
}

void register_kernel(PluginRecord* owner, const bp_kernel_def& given) {
  bp_kernel_def def = read_struct(given, offsetof(bp_kernel_def, reserved) + sizeof(uint32_t), "register_kernel");
  def.dtypes = mask_of(def.dtypes, def.dtype_set);
  BP_CHECK(def.op && def.backend && def.fn, VALUE, "register_kernel: op, backend and fn are required");
  check_row(def);
  Registry& r = ready_registry();
  std::lock_guard guard(r.lock);
  uint32_t handle = find_op_loaded(def.op);
  BP_CHECK(handle != BP_NO_OP, VALUE, "register_kernel: found no op ", def.op, "; plugin \"", owner->name,
           "\" registers a kernel for it on backend ", def.backend, ": register the op first or correct its name");
  OpEntry& entry = *op_entry(handle);
  check_duplicates(owner, entry, def);
  BP_CHECK(
      !(entry.record->def.flags & BP_OP_COMPOSITE), VALUE, "register_kernel: ", def.op,
      " is composite, so every call of it runs its decomposition, and never a kernel. Fix: register kernels of the "
      "ops that it calls, or take `kind: composite` out of its entry");
  BP_CHECK(!(entry.record->def.flags & BP_OP_VIEW) || std::string_view(def.backend).starts_with("key:"), VALUE,
           "register_kernel: ", def.op, " is a view, which the core makes, so no call of it reaches backend ",
           def.backend, ". Fix: leave the row out");
  BP_CHECK(def.revision <= entry.record->def.revision, VERSION, "register_kernel: ", def.op, " has signature revision ",
           entry.record->def.revision, "; the kernel was written for ", def.revision, ", a newer one");
  auto row = std::make_unique<KernelRow>();
  row->def = def;
  row->op = def.op;
  row->backend = def.backend;
  row->for_all = row->backend == "*";
  row->file = def.file ? def.file : "";
  row->def.op = row->op.c_str();
  row->def.backend = row->backend.c_str();
  row->def.file = row->file.c_str();
  row->owner = owner;
  if (row_filter) row->in_front = row_filter(row->def, *owner);
  row->resolves = def.header.version >= 2 && !entry.record->resolved.empty();
  for (const bp_arg_def& arg : entry.record->args) row->n_args += arg.since <= def.revision;
  entry.rows.push_back(std::move(row));
  rebuild_plan(entry);
}

}  // namespace backplane::core
