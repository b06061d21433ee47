// Functionality keys: their registration, and which of several comes first.
#include "registry/functionality_keys.hpp"

#include "record/foreign_struct.hpp"
#include "registry/registry_state.hpp"

namespace backplane::core {

namespace {
KeyRecord* taken_by(std::string_view name) noexcept {
  for (auto& slot : tables.keys)
    if (KeyRecord* key = slot.load(std::memory_order_acquire); key && key->name == name) return key;
  return nullptr;
}

int64_t rank_of(std::string_view name) {
  const KeyRecord* key = find_key(name);
  BP_CHECK(key, VALUE, "register_key: found no key \"", name, "\" to place the new key above or below");
  return key->rank;
}
}  // namespace

uint32_t register_key(PluginRecord* owner, const bp_key_def& given) {
  const bp_key_def def = read_struct(given, offsetof(bp_key_def, flags), "register_key");
  BP_CHECK(def.name && *def.name, VALUE, "register_key: a name is required");
  check_flags(def.flags, 0, BP_HINTS_OF_32, "register_key: key \"", def.name, "\"");
  Registry& r = ready_registry();
  std::lock_guard guard(r.lock);
  KeyRecord* taken = taken_by(def.name);
  BP_CHECK(!taken || (taken->withdrawn && taken->owner->name == owner->name), VALUE, "register_key: the key \"",
           def.name, "\" is taken by plugin \"", taken ? taken->owner->name : "", "\"");
  BP_CHECK(taken || r.key_count < kPluginBits, VALUE, "register_key: all ", kPluginBits,
           " functionality keys are taken");
  constexpr int64_t kStep = 1 << 10;
  int64_t low = def.above ? rank_of(def.above) : INT64_MIN, high = def.below ? rank_of(def.below) : INT64_MAX;
  BP_CHECK(low < high, VALUE, "register_key: \"", def.name, "\" cannot be above \"", def.above ? def.above : "",
           "\" and below \"", def.below ? def.below : "", "\"");
  // Nobody reads more of a withdrawn key than that it is one: its calls have ended, and its record serves again.
  KeyRecord* key = taken;
  std::unique_ptr<KeyRecord> made;
  if (!key) {
    made = std::make_unique<KeyRecord>();
    key = made.get();
    key->name = def.name;
    key->bit = r.key_count++;
  }
  if (def.above && def.below)
    key->rank = low + (high - low) / 2;
  else
    key->rank = def.below ? high - kStep - key->bit : (def.above ? low : 0) + kStep + key->bit;
  key->fallback = def.fallback;
  key->context = def.context;
  key->owner = owner;
  key->withdrawn = false;
  if (made) tables.keys[key->bit].store(made.release(), std::memory_order_release);
  rebuild_all_plans();
  return key->bit;
}

void register_layer(uint64_t key, const char* name, int64_t rank, Handle handle, HandleFast fast) {
  BP_CHECK(!key_at(static_cast<uint32_t>(__builtin_ctzll(key))), INTERNAL, "register_layer: the bit of \"", name,
           "\" is already used by another layer");
  auto record = std::make_unique<KeyRecord>();
  record->name = name;
  record->bit = static_cast<uint32_t>(__builtin_ctzll(key));
  record->rank = rank;
  record->handle = handle;
  record->fast = fast;
  record->owner = core_plugin();
  const uint32_t bit = record->bit;
  tables.keys[bit].store(record.release(), std::memory_order_release);
}

const KeyRecord* key_at(uint32_t bit) noexcept { return tables.keys[bit].load(std::memory_order_acquire); }

const KeyRecord* find_key(std::string_view name) noexcept { return taken_by(name); }

uint64_t highest_key(uint64_t keys) noexcept {
  if (!(keys & (keys - 1))) return keys;
  uint64_t best = 0;
  int64_t best_rank = INT64_MIN;
  for (uint64_t rest = keys; rest; rest &= rest - 1) {
    const auto bit = static_cast<uint32_t>(__builtin_ctzll(rest));
    const KeyRecord* key = key_at(bit);
    const int64_t rank = key && !key->withdrawn ? key->rank : INT64_MIN;
    if (rank >= best_rank) best_rank = rank, best = uint64_t{1} << bit;  // a level before the creation in it
  }
  return best;
}

}  // namespace backplane::core
