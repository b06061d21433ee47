// The rows of an op in the order in which calls try them, by backend and by key. A table is made anew whenever rows,
// keys or backends change, and replaced as a whole: calls read it without a lock.
#include <algorithm>

#include "registry/registry_state.hpp"

namespace backplane::core {

namespace {

bool row_before(const KernelRow* a, const KernelRow* b) {
  if (a->for_all != b->for_all) return b->for_all;
  if (a->def.priority != b->def.priority) return a->def.priority > b->def.priority;
  return a->owner->name < b->owner->name;
}

}  // namespace

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
    if (!rows.empty() && !entry.withdrawn) row = short_row(entry, *rows.front(), table->n_short_rows - 1);
  }
  if (const KernelTable* old = entry.table.exchange(table.release(), std::memory_order_acq_rel))
    retired().tables.emplace_back(old);
}

void rebuild_all_tables() {
  for (uint32_t i = 0; i < op_count(); ++i) rebuild_table(*op_entry(i));
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
  for (const bp_arg_def& arg : entry.record->args) row->n_args += arg.since <= def.revision;
  entry.rows.push_back(std::move(row));
  rebuild_table(entry);
}

}  // namespace backplane::core
