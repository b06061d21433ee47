// Ops: their entries by handle and name, the roles of some ops, and the facts that are computed once from a record.
#include "registry/registry.hpp"

#include "backplane/op.hpp"
#include "memory/process/plugin_finder.hpp"
#include "registry/op_link.hpp"
#include "registry/ordered_ops.hpp"
#include "registry/registry_state.hpp"

namespace backplane::core {

constinit std::atomic<OpEntry*> op_slots[kMaxOps] = {};

namespace {

constexpr const char* kRoleTags[] = {
    "role:add",     "role:full",   "role:copy",   "role:cast", "role:expand",          "role:permute",
    "role:reshape", "role:select", "role:concat", "role:sum",  "role:reverse_constant"};

bool has_tag(const char* tags, std::string_view wanted) {
  std::string_view rest = tags ? tags : "";
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    std::string_view word = rest.substr(0, comma);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    if (word == wanted) return true;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return false;
}

void classify(OpEntry& entry) {
  const OpRecord& record = *entry.record;
  entry.flags = record.def.flags;
  entry.decompose = record.find_formula(BP_RULE_DECOMPOSE);
  const auto by = [&](uint16_t rule) {
    return record.find_formula(rule) ? Derivative::kFormulas
           : entry.decompose         ? Derivative::kDecompose
                                     : Derivative::kNone;
  };
  entry.derivative = by(BP_RULE_VJP);
  entry.forward = by(BP_RULE_JVP);
  entry.n_args = static_cast<int32_t>(record.args.size());
  entry.n_results = static_cast<int32_t>(record.results.size());
  entry.fast_path = fast_path(record);
  entry.edges = handlers.edges[static_cast<size_t>(entry.fast_path)];
  if (edge_filter) entry.edges = edge_filter(entry.fast_path, entry.edges);
  if (has_tag(record.def.tags, "creation") || (entry.flags & (BP_OP_CREATION | BP_OP_RANDOM))) entry.flags |= kCreates;
  if (has_tag(record.def.tags, "collective") || has_tag(record.def.tags, "effect")) entry.flags |= kOrdered;
  if (has_tag(record.def.tags, "role:stop_gradient")) entry.flags |= kDetaches;
  if (has_tag(record.def.tags, "role:put_add")) entry.flags |= kAddsToFirst;
  entry.vjp_of_arg.clear();
  entry.jvp_of_arg.clear();
  for (uint32_t i = 0; i < record.args.size(); ++i) {
    entry.vjp_of_arg.push_back(record.find_formula(BP_RULE_VJP, i));
    entry.jvp_of_arg.push_back(record.find_formula(BP_RULE_JVP, i));
  }
  for (const bp_formula* formula : entry.vjp_of_arg)
    if ((entry.flags & BP_OP_VIEW) || (formula && ends_in_addition(record, *formula))) entry.flags |= kPartialGradient;
  if (record.args.size() <= 3)
    for (uint64_t needs = 0; needs < 8; ++needs) entry.reads[needs] = formulas_read(entry, needs);
}

std::vector<ResolveOp>& resolvers() {
  static std::vector<ResolveOp> all;
  return all;
}

void take_role(OpEntry& entry) {
  for (size_t i = 0; i < tables.roles.size(); ++i)
    if (entry.owner == core_plugin() && has_tag(entry.record->def.tags, kRoleTags[i]))
      tables.roles[i].store(&entry, std::memory_order_release);
}

// A device's queue holds names longer than an op that is registered anew keeps its record.
void keep_name(OpRecord& record, const std::string& lasting) {
  record.name = lasting;
  record.def.name = record.info.name = lasting.c_str();
}

uint32_t insert_entry(Registry& r, std::unique_ptr<OpEntry> entry) {
  uint32_t handle = tables.count.load(std::memory_order_relaxed);
  BP_CHECK(handle < kMaxOps, VALUE, "register_op: the registry is full at ", handle, " ops");
  entry->handle = handle;
  entry->record->info.op = handle;
  rebuild_plan(*entry);  // who walks all handles, without the lock, finds it whole
  keep_name(*entry->record, r.by_name.insert_or_assign(std::string(entry->record->name), handle).first->first);
  op_slots[handle].store(entry.release(), std::memory_order_release);
  tables.count.store(handle + 1, std::memory_order_release);
  return handle;
}

}  // namespace

void add_resolver(ResolveOp resolve) { resolvers().push_back(resolve); }

FreeNames formulas_read(const OpEntry& op, uint64_t needs) {
  FreeNames all;
  const bp_formula* last = nullptr;
  for (size_t i = 0; i < op.vjp_of_arg.size(); ++i) {
    const bp_formula* formula = op.vjp_of_arg[i];
    if (!formula || formula == last || !(needs >> (i < 63 ? i : 63) & 1)) continue;
    last = formula;
    const FreeNames& names = free_names(*op.record, *formula);
    all.args |= names.args;
    all.outs |= names.outs;
    all.arg_metadata |= names.arg_metadata;
    all.out_metadata |= names.out_metadata;
  }
  return all;
}

void fail_entry(uint32_t handle) {
  const OpEntry* entry = op_entry(handle);
  BP_CHECK(entry, VALUE, "call: found no op with handle ", handle, "; handles come from find_op");
  const OpEntry* now = op_entry(find_op_loaded(entry->record->name));
  BP_CHECK(!now || now == entry || now->withdrawn, NOT_IMPLEMENTED, entry->record->name,
           ": was redefined with another signature; use the op of the new definition");
  detail::fail(BP_ERROR_NOT_IMPLEMENTED, entry->record->name, ": its plugin \"", entry->owner->name,
               "\" was unloaded; load it again to use the op");
}

uint32_t op_count() noexcept {
  ready_registry();
  return tables.count.load(std::memory_order_acquire);
}

uint32_t find_op_loaded(std::string_view name) noexcept {
  Registry& r = ready_registry();
  std::lock_guard guard(r.lock);
  auto found = r.by_name.find(name);
  return found == r.by_name.end() ? BP_NO_OP : found->second;
}

void link_entry(OpEntry& entry) {
  OpRecord& record = *entry.record;
  if (record.linked.load(std::memory_order_acquire)) return;
  // May open plugins, which must happen outside the lock.
  if (const bp_program* program = record.def.program)
    for (uint32_t i = 0; i < program->n_names; ++i)
      if (std::string_view(program->names[i]).find("::") != std::string_view::npos)
        backplane::find_op(program->names[i]);
  std::lock_guard guard(ready_registry().lock);
  if (record.linked.load(std::memory_order_relaxed)) return;
  link(record, find_op_loaded);
  record.linked.store(true, std::memory_order_release);
}

OpEntry& role_op(Role role) {
  std::atomic<OpEntry*>& slot = tables.roles[static_cast<size_t>(role)];
  OpEntry* entry = slot.load(std::memory_order_acquire);
  if (!entry) {
    ready_registry();
    entry = slot.load(std::memory_order_acquire);
  }
  BP_CHECK(entry, INTERNAL, "the registry has no op with the tag ", kRoleTags[static_cast<size_t>(role)],
           ", which the core needs; tag one in ops.yaml");
  return *entry;
}

// A new entry under the old handle. Readers of the old one find it withdrawn. Kernels that other plugins
// registered for the op move to the new entry.
static uint32_t revive(OpEntry& old, std::unique_ptr<OpEntry> entry) {
  entry->handle = old.handle;
  keep_name(*entry->record, registry().by_name.find(old.record->name)->first);
  entry->record->info.op = old.handle;
  // Of rows that others brought, an unload may be under way; records of views count nowhere.
  const auto is_others = [&](const auto& row) { return row->owner != old.owner; };
  old.lasting =
      std::any_of(old.rows.begin(), old.rows.end(), is_others) || (old.flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) != 0;
  for (auto& row : old.rows)
    if (!row->withdrawn) entry->rows.push_back(std::move(row));
  std::erase(old.rows, nullptr);
  rebuild_plan(*entry);
  rebuild_plan(old);
  retired().entries.emplace_back(&old);
  op_slots[old.handle].store(entry.release(), std::memory_order_release);
  return old.handle;
}

// May a handle of the one, with arguments read by its signature, be called as the other?
static bool same_signature(const OpRecord& a, const OpRecord& b) {
  const auto same_arg = [](const bp_arg_def& x, const bp_arg_def& y) {
    return x.type == y.type && x.flags == y.flags && std::string_view(x.name) == y.name;
  };
  return a.results.size() == b.results.size() &&
         std::equal(a.args.begin(), a.args.end(), b.args.begin(), b.args.end(), same_arg) &&
         std::equal(a.results.begin(), a.results.end(), b.results.begin(),
                    [](const bp_result_def& x, const bp_result_def& y) { return x.flags == y.flags; });
}

uint32_t register_op(PluginRecord* owner, const bp_op_def& def) {
  std::unique_ptr<OpRecord> record = copy_record(def);
  // The built-in records come first, but must not wait for themselves.
  Registry& r = owner == core_plugin() ? registry() : ready_registry();
  std::lock_guard guard(r.lock);
  auto taken = r.by_name.find(record->name);
  // A name that its owner gave up is free: for a plugin of that owner's name under the old handle, else under a new
  // one.
  if (taken != r.by_name.end()) {
    OpEntry& old = *op_entry(taken->second);
    BP_CHECK(old.withdrawn, VALUE, "register_op: the name ", record->name, " is taken by plugin \"", old.owner->name,
             "\" (", old.record->def.file ? old.record->def.file : "?", ":", old.record->def.line, "); plugin \"",
             owner->name, "\" (", record->def.file ? record->def.file : "?", ":", record->def.line,
             ") must choose another");
  }
  auto entry = std::make_unique<OpEntry>();
  entry->owner = owner;
  entry->record = std::move(record);
  classify(*entry);
  for (const ResolveOp resolve : resolvers()) resolve(*entry);
  owner->ops.emplace_back(entry->record->name);
  if (taken != r.by_name.end() && op_entry(taken->second)->owner->name == owner->name &&
      same_signature(*op_entry(taken->second)->record, *entry->record))
    return revive(*op_entry(taken->second), std::move(entry));
  const uint32_t handle = insert_entry(r, std::move(entry));
  take_role(*op_entry(handle));
  return handle;
}

uint32_t register_backend(PluginRecord* owner, const bp_backend_def& def) {
  Registry& r = ready_registry();
  std::lock_guard guard(r.lock);
  BackendRecord* backend = add_backend(owner, def);
  owner->backends.push_back(backend->name);
  rebuild_all_plans();
  return backend->index;
}

}  // namespace backplane::core

namespace backplane {

OpHandle find_op(std::string_view name) noexcept {
  try {
    if (core::find_op_loaded(name) != BP_NO_OP) {
      core::settle_registrations();
      if (const uint32_t handle = core::find_op_loaded(name); handle != BP_NO_OP) return handle;
    }
    core::plugin_finder.for_op(name);
    return core::find_op_loaded(name);
  } catch (const std::exception&) {
    // The refusal is kept with the plugin and shown by `plugins --why`; here the op just does not exist.
  }
  return BP_NO_OP;
}

const bp_op_def& op_def(OpHandle op) {
  core::OpEntry* entry = core::op_count() > op ? core::op_entry(op) : nullptr;
  BP_CHECK(entry, VALUE, "op_def: found no op with handle ", op);
  return entry->record->def;
}

std::shared_ptr<const bp_op_def> hold_op_def(OpHandle op) {
  std::lock_guard guard(core::ready_registry().lock);
  op_def(op);  // throws where there is none
  core::OpEntry* entry = core::op_entry(op);
  entry->holds.fetch_add(1, std::memory_order_relaxed);
  return {&entry->record->def, [entry](const bp_op_def*) { entry->holds.fetch_sub(1, std::memory_order_release); }};
}

std::vector<OpHandle> all_ops() {
  core::CallGuard guard;
  std::vector<OpHandle> handles;
  for (uint32_t i = 0; i < core::op_count(); ++i)
    if (!core::op_entry(i)->withdrawn) handles.push_back(i);
  return handles;
}

}  // namespace backplane
