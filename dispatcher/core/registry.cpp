#include "core/registry.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <set>

#include "backplane/op.hpp"
#include "core/device_call.hpp"
#include "core/dispatch.hpp"
#include "loader/discovery.hpp"

// The records that codegen derived from ops.yaml.
extern "C" {
extern const bp_op_def* const bp_ops[];
extern const uint32_t bp_op_count;
}

namespace backplane::core {

constinit std::atomic<OpEntry*> op_slots[kMaxOps] = {};

namespace {

constexpr uint32_t kMaxKeys = 60;
constexpr const char* kRoleTags[] = {"role:add",     "role:full",    "role:copy",   "role:cast",  "role:expand",
                                     "role:permute", "role:reshape", "role:select", "role:concat"};

// What calls read, without a lock and without an initialisation guard.
struct Tables {
  std::atomic<uint32_t> count{0};
  std::array<std::atomic<OpEntry*>, static_cast<size_t>(Role::kCount)> roles{};
  std::array<std::atomic<KeyRecord*>, kMaxKeys> keys{};
};
constinit Tables tables;

struct Registry {
  std::recursive_mutex lock;
  std::map<std::string, uint32_t, std::less<>> by_name;
  uint32_t key_count = 0;
  std::once_flag built_ins;
};

Registry& registry() {
  // Never destroyed: calls may come from static destructors of the program.
  static Registry* instance = new Registry;
  return *instance;
}

void register_built_ins() {
  for (uint32_t i = 0; i < bp_op_count; ++i) register_op(core_plugin(), *bp_ops[i]);
}

Registry& ready_registry() {
  Registry& r = registry();
  std::call_once(r.built_ins, register_built_ins);
  return r;
}

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

bool row_before(const KernelRow* a, const KernelRow* b) {
  if (a->for_all != b->for_all) return b->for_all;
  if (a->def.priority != b->def.priority) return a->def.priority > b->def.priority;
  return a->owner->name < b->owner->name;
}

// What was replaced and may still be read. Tables are freed once calls have drained; entries are kept for good, since
// op_def gives out references into them. Under the lock.
struct Retired {
  std::vector<std::unique_ptr<const KernelTable>> tables;  // oldest first
  uint64_t freed = 0;                                      // tables that stood before those
  std::vector<std::unique_ptr<OpEntry>> entries;
};
Retired& retired() {
  static Retired& all = *new Retired;
  return all;
}

// Under the lock.
void rebuild_table(OpEntry& entry) {
  auto table = std::make_unique<KernelTable>();
  table->by_backend.resize(backend_count());
  for (const auto& row : entry.rows) {
    if (row->withdrawn) continue;
    std::string_view backend = row->backend;
    if (backend.starts_with("key:")) {
      if (const KeyRecord* key = find_key(backend.substr(4))) {
        if (table->by_key.size() <= key->bit) table->by_key.resize(key->bit + 1);
        const KernelRow*& slot = table->by_key[key->bit];
        if (!slot || row_before(row.get(), slot)) slot = row.get();
      }
    } else if (row->for_all) {
      for (auto& rows : table->by_backend) rows.push_back(row.get());
    } else if (BackendRecord* found = find_backend(backend)) {
      table->by_backend[found->index].push_back(row.get());
    }
  }
  table->short_rows = std::make_unique<ShortRow[]>(table->by_backend.size());
  for (auto& rows : table->by_backend) {
    std::sort(rows.begin(), rows.end(), row_before);
    ShortRow& row = table->short_rows[table->n_short_rows++];
    if (!rows.empty()) row = short_row(entry, *rows.front());
  }
  if (const KernelTable* old = entry.table.exchange(table.release(), std::memory_order_acq_rel))
    retired().tables.emplace_back(old);
}

void rebuild_all_tables() {
  for (uint32_t i = 0; i < op_count(); ++i) rebuild_table(*op_entry(i));
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
  entry.short_way = short_way(record);
  entry.batch = batch_rule_of(record);
  const bool own_batch = entry.batch.kind == BatchRule::Kind::kStated || entry.batch.kind == BatchRule::Kind::kRefused;
  if ((entry.flags & BP_OP_COMPOSITE) && own_batch) entry.flags |= kBatchedWhole;
  if (!(entry.flags & (BP_OP_CREATION | BP_OP_RANDOM)) && !has_tag(record.def.tags, "creation"))
    entry.fall_through |= kCreationKey;
  entry.vjp_of_arg.clear();
  entry.jvp_of_arg.clear();
  for (uint32_t i = 0; i < record.args.size(); ++i) {
    entry.vjp_of_arg.push_back(record.find_formula(BP_RULE_VJP, i));
    entry.jvp_of_arg.push_back(record.find_formula(BP_RULE_JVP, i));
  }
  if (record.args.size() <= 3)
    for (uint64_t needs = 0; needs < 8; ++needs) entry.reads[needs] = formulas_read(entry, needs);
}

void take_role(OpEntry& entry) {
  for (size_t i = 0; i < tables.roles.size(); ++i)
    if (entry.owner == core_plugin() && has_tag(entry.record->def.tags, kRoleTags[i]))
      tables.roles[i].store(&entry, std::memory_order_release);
}

uint32_t insert_entry(Registry& r, std::unique_ptr<OpEntry> entry) {
  uint32_t handle = tables.count.load(std::memory_order_relaxed);
  BP_CHECK(handle < kMaxOps, VALUE, "register_op: the registry is full at ", handle, " ops");
  entry->handle = handle;
  entry->record->info.op = handle;
  r.by_name.insert_or_assign(std::string(entry->record->name), handle);
  op_slots[handle].store(entry.release(), std::memory_order_release);
  tables.count.store(handle + 1, std::memory_order_release);
  return handle;
}

}  // namespace

PluginRecord* core_plugin() {
  static PluginRecord* record = [] {
    auto* r = new PluginRecord;
    r->name = "backplane";
    r->state = PluginRecord::State::kLoaded;
    return r;
  }();
  return record;
}

void fail_entry(uint32_t handle) {
  const OpEntry* entry = op_entry(handle);
  BP_CHECK(entry, VALUE, "call: there is no op with handle ", handle, "; handles come from find_op");
  const OpEntry* now = op_entry(find_op_loaded(entry->record->name));
  BP_CHECK(!now || now == entry || now->withdrawn, NOT_IMPLEMENTED, entry->record->name,
           ": was defined anew with another signature; use the op of the new definition");
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
  BP_CHECK(entry, INTERNAL, "the registry has no op tagged ", kRoleTags[static_cast<size_t>(role)],
           ", which the core needs; tag one in ops.yaml");
  return *entry;
}

// A new entry under the old handle. Whoever still reads the old one finds it withdrawn. Kernels that other plugins
// brought for the op move over.
static uint32_t revive(OpEntry& old, std::unique_ptr<OpEntry> entry) {
  entry->handle = old.handle;
  entry->record->info.op = old.handle;
  for (auto& row : old.rows)
    if (!row->withdrawn) entry->rows.push_back(std::move(row));
  std::erase(old.rows, nullptr);
  rebuild_table(*entry);
  rebuild_table(old);
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
  owner->ops.emplace_back(entry->record->name);
  if (taken != r.by_name.end() && op_entry(taken->second)->owner->name == owner->name &&
      same_signature(*op_entry(taken->second)->record, *entry->record))
    return revive(*op_entry(taken->second), std::move(entry));
  OpEntry& placed = *entry;
  uint32_t handle = insert_entry(r, std::move(entry));
  rebuild_table(placed);
  take_role(placed);
  return handle;
}

uint32_t register_backend(PluginRecord* owner, const bp_backend_def& def) {
  Registry& r = ready_registry();
  std::lock_guard guard(r.lock);
  BackendRecord* backend = add_backend(owner, def);
  owner->backends.push_back(backend->name);
  rebuild_all_tables();
  return backend->index;
}

void register_kernel(PluginRecord* owner, const bp_kernel_def& def) {
  constexpr size_t kMinimum = offsetof(bp_kernel_def, line) + sizeof(uint32_t);
  BP_CHECK(def.header.struct_size >= kMinimum && def.header.struct_size <= BP_MAX_STRUCT_SIZE, VERSION,
           "register_kernel: struct size ", def.header.struct_size, " is impossible; this minor needs at least ",
           kMinimum);
  BP_CHECK(def.op && def.backend && def.fn, VALUE, "register_kernel: op, backend and fn are required");
  Registry& r = ready_registry();
  std::lock_guard guard(r.lock);
  uint32_t handle = find_op_loaded(def.op);
  BP_CHECK(handle != BP_NO_OP, VALUE, "register_kernel: there is no op ", def.op, "; plugin \"", owner->name,
           "\" registers a kernel for it on backend ", def.backend, ": register the op first or correct its name");
  OpEntry& entry = *op_entry(handle);
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
  entry.rows.push_back(std::move(row));
  rebuild_table(entry);
}

namespace {
int64_t rank_of(std::string_view name) {
  if (name == "autograd") return 0;
  if (name == "levels") return 1 << 20;
  const KeyRecord* key = find_key(name);
  BP_CHECK(key, VALUE, "register_key: there is no key \"", name, "\" to stand above or below of");
  return key->rank;
}
}  // namespace

uint32_t register_key(PluginRecord* owner, const bp_key_def& def) {
  BP_CHECK(def.name && *def.name, VALUE, "register_key: a name is required");
  Registry& r = ready_registry();
  std::lock_guard guard(r.lock);
  const KeyRecord* taken = find_key(def.name);
  BP_CHECK(!taken || (taken->withdrawn && taken->owner->name == owner->name), VALUE, "register_key: the key \"",
           def.name, "\" is taken by plugin \"", taken ? taken->owner->name : "", "\"");
  BP_CHECK(taken || r.key_count < kMaxKeys, VALUE, "register_key: all ", kMaxKeys, " functionality keys are taken");
  constexpr int64_t kStep = 1 << 10;
  int64_t low = def.above ? rank_of(def.above) : INT64_MIN, high = def.below ? rank_of(def.below) : INT64_MAX;
  BP_CHECK(low < high, VALUE, "register_key: \"", def.name, "\" cannot stand above \"", def.above ? def.above : "",
           "\" and below \"", def.below ? def.below : "", "\"");
  auto key = std::make_unique<KeyRecord>();
  key->name = def.name;
  key->bit = taken ? taken->bit : r.key_count++;
  if (def.above && def.below)
    key->rank = low + (high - low) / 2;
  else
    key->rank = def.below ? high - kStep - key->bit : (def.above ? low : 0) + kStep + key->bit;
  key->fallback = def.fallback;
  key->context = def.context;
  key->owner = owner;
  uint32_t bit = key->bit;
  tables.keys[bit].store(key.release(), std::memory_order_release);
  rebuild_all_tables();
  return bit;
}

const KeyRecord* key_at(uint32_t bit) noexcept {
  return bit < kMaxKeys ? tables.keys[bit].load(std::memory_order_acquire) : nullptr;
}

const KeyRecord* find_key(std::string_view name) noexcept {
  for (uint32_t bit = 0; bit < kMaxKeys; ++bit) {
    const KeyRecord* key = key_at(bit);
    if (!key) return nullptr;
    if (key->name == name) return key;
  }
  return nullptr;
}

uint64_t highest_key(uint64_t keys) noexcept {
  uint64_t best = 0;
  int64_t best_rank = INT64_MIN;
  for (uint64_t rest = keys; rest; rest &= rest - 1) {
    uint32_t bit = static_cast<uint32_t>(__builtin_ctzll(rest));
    uint64_t mask = uint64_t{1} << bit;
    const KeyRecord* key = key_at(bit);
    int64_t rank = mask == kTapeKey                    ? 0
                   : mask & (kLevelKey | kCreationKey) ? 1 << 20
                   : key && !key->withdrawn            ? key->rank
                                                       : INT64_MIN;
    if (rank > best_rank || !best) best_rank = rank, best = mask;
  }
  return best;
}

struct Withdrawn {
  PluginRecord* owner;
  std::vector<KeyRecord*> keys;
  std::vector<BackendRecord*> backends;
  std::vector<OpEntry*> ops;
  std::vector<KernelRow*> rows;
  std::vector<OpEntry*> touched;  // whose tables they concern
  uint64_t tables_before = 0;     // the count of all tables retired up to the withdrawal
};

namespace {

// Earlier registrations of the same owner are withdrawn already and stay so.
void collect(Registry& r, Withdrawn& all) {
  const PluginRecord* owner = all.owner;
  for (uint32_t bit = 0; bit < r.key_count; ++bit)
    if (KeyRecord* key = tables.keys[bit].load(std::memory_order_relaxed); key->owner == owner && !key->withdrawn)
      all.keys.push_back(key);
  for (uint32_t i = 0; i < backend_count(); ++i)
    if (BackendRecord& backend = backend_at(i); backend.owner == owner && !backend.withdrawn)
      all.backends.push_back(&backend);
  for (uint32_t i = 0; i < tables.count.load(std::memory_order_relaxed); ++i) {
    OpEntry& entry = *op_entry(i);
    if (entry.owner == owner && !entry.withdrawn) all.ops.push_back(&entry);
    const size_t rows_before = all.rows.size();
    for (auto& row : entry.rows)
      if (row->owner == owner && !row->withdrawn) all.rows.push_back(row.get());
    if (entry.owner == owner || all.rows.size() > rows_before) all.touched.push_back(&entry);
  }
}

// Backends and keys concern the tables of all ops; ops and rows their own.
void rebuild_tables_of(const Withdrawn& all) {
  if (!all.keys.empty() || !all.backends.empty()) return rebuild_all_tables();
  for (OpEntry* entry : all.touched) rebuild_table(*entry);
}

void mark(const Withdrawn& all, bool withdrawn) {
  for (KeyRecord* key : all.keys) key->withdrawn = withdrawn;
  for (BackendRecord* backend : all.backends) backend->withdrawn = withdrawn;
  for (OpEntry* op : all.ops) op->withdrawn.store(withdrawn, std::memory_order_release);
  for (KernelRow* row : all.rows) row->withdrawn = withdrawn;
  rebuild_tables_of(all);
}

}  // namespace

std::shared_ptr<const Withdrawn> withdraw(PluginRecord* owner) {
  Registry& r = ready_registry();
  std::lock_guard guard(r.lock);
  auto all = std::make_shared<Withdrawn>();
  all->owner = owner;
  collect(r, *all);
  mark(*all, true);
  all->tables_before = retired().freed + retired().tables.size();
  owner->ops.clear();
  owner->backends.clear();
  return all;
}

void free_withdrawn(const Withdrawn& all) {
  std::lock_guard guard(ready_registry().lock);
  Retired& old = retired();
  if (all.tables_before > old.freed) {
    const uint64_t count = all.tables_before - old.freed;
    old.tables.erase(old.tables.begin(), old.tables.begin() + static_cast<std::ptrdiff_t>(count));
    old.freed += count;
  }
  const std::set<const KernelRow*> gone(all.rows.begin(), all.rows.end());
  for (uint32_t i = 0; i < op_count(); ++i)
    std::erase_if(op_entry(i)->rows, [&](const auto& row) { return gone.contains(row.get()); });
}

void restore(const Withdrawn& all) {
  std::lock_guard guard(ready_registry().lock);
  mark(all, false);
  for (const OpEntry* op : all.ops) all.owner->ops.emplace_back(op->record->name);
  for (const BackendRecord* backend : all.backends) all.owner->backends.push_back(backend->name);
}

}  // namespace backplane::core

namespace backplane {

OpHandle find_op(std::string_view name) noexcept {
  uint32_t handle = core::find_op_loaded(name);
  if (handle != BP_NO_OP) return handle;
  try {
    core::open_plugin_for_op(name);
    return core::find_op_loaded(name);
  } catch (const std::exception&) {
    // The refusal is kept with the plugin and shown by `plugins --why`; here the op just does not exist.
  }
  return BP_NO_OP;
}

const bp_op_def& op_def(OpHandle op) {
  core::OpEntry* entry = core::op_count() > op ? core::op_entry(op) : nullptr;
  BP_CHECK(entry, VALUE, "op_def: there is no op with handle ", op);
  return entry->record->def;
}

std::vector<OpHandle> all_ops() {
  std::vector<OpHandle> handles;
  for (uint32_t i = 0; i < core::op_count(); ++i)
    if (!core::op_entry(i)->withdrawn) handles.push_back(i);
  return handles;
}

}  // namespace backplane
