// A context holds a chain of entries, the innermost first: immutable, as contexts are copied. A block's end takes its
// own entry out, also where blocks of generators in one context end in another order than they began.
#include "bindings/interpreter/context_settings.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "backplane/autograd.hpp"
#include "backplane/device.hpp"
#include "backplane/op.hpp"
#include "backplane/placement.hpp"
#include "bindings/interpreter/errors.hpp"

namespace backplane::python {
namespace {

constexpr size_t kSettings = static_cast<size_t>(Setting::kCount);

struct Entry {
  PyObject_HEAD Entry* parent;
  const void* owner;  // by which it is found, for nothing else; nullptr: of change_setting
  Setting setting;
  int64_t value;
  int64_t thread_before;      // the thread's, as the entry was made
  int64_t values[kSettings];  // of the chain that begins here
};
PyTypeObject* g_entry_type = nullptr;
PyObject* g_variable = nullptr;  // the ContextVar of a chain, or None

size_t place(Setting setting) noexcept { return static_cast<size_t>(setting); }

// Iterative: chains may be long.
void entry_dealloc(PyObject* object) {
  while (object) {
    auto* entry = reinterpret_cast<Entry*>(object);
    PyObject* parent = reinterpret_cast<PyObject*>(entry->parent);
    PyTypeObject* type = Py_TYPE(object);
    PyObject_Free(object);
    Py_DECREF(type);
    g_unusual.fetch_sub(1, std::memory_order_relaxed);
    object = nullptr;
    if (!parent) break;
    if (Py_REFCNT(parent) == 1)
      object = parent;
    else
      Py_DECREF(parent);
  }
}

int64_t value_of(const Entry* chain, Setting setting) noexcept {
  return chain ? chain->values[place(setting)] : kUnset;
}

Entry* new_entry(Entry* parent, const void* owner, Setting setting, int64_t value, int64_t thread_before) noexcept {
  Entry* entry = PyObject_New(Entry, g_entry_type);
  if (!entry) return nullptr;
  g_unusual.fetch_add(1, std::memory_order_relaxed);
  Py_XINCREF(parent);
  entry->parent = parent;
  entry->owner = owner;
  entry->setting = setting;
  entry->value = value;
  entry->thread_before = thread_before;
  for (size_t i = 0; i < kSettings; ++i) entry->values[i] = parent ? parent->values[i] : kUnset;
  entry->values[place(setting)] = value;
  return entry;
}

// What this thread follows. `before`: its own settings where the chain has one.
struct Followed {
  Entry* chain = nullptr;
  uint64_t thread_state = 0, version = 0;  // of CPython
  int64_t before[kSettings] = {};
  ~Followed() {
    if (!chain || interpreter_gone()) return;
    WithGil locked;
    Py_DECREF(chain);
  }
};
thread_local Followed followed;
thread_local constinit bp_dtype t_float = BP_DTYPE_NONE;

std::optional<HostFallback> fallback_of_value(int64_t value) {
  return value == kUnset ? std::nullopt : std::optional(static_cast<HostFallback>(value));
}

bp_device device_of_value(int64_t value) noexcept {
  return {static_cast<uint32_t>(static_cast<uint64_t>(value) >> 32), static_cast<int32_t>(value)};
}

// The dtype's bits, above them the backend counted from 1; 0: any.
constexpr int kDtypeBits = 16;

Autocast autocast_of_value(int64_t value) noexcept {
  if (value == kUnset) return {BP_DTYPE_NONE, std::nullopt};
  const auto backend = static_cast<uint32_t>(value >> kDtypeBits);
  return {static_cast<bp_dtype>(value & ((1 << kDtypeBits) - 1)), backend ? std::optional(backend - 1) : std::nullopt};
}

int64_t read_thread(Setting setting) noexcept {
  switch (setting) {
    case Setting::kRecording:
      return grad_enabled();
    case Setting::kDevice: {
      const std::optional<bp_device> device = set_thread_default_device(std::nullopt);
      set_thread_default_device(device);
      return device ? value_of_device(*device) : kUnset;
    }
    case Setting::kHostFallback: {
      const std::optional<HostFallback> policy = set_thread_host_fallback(std::nullopt);
      set_thread_host_fallback(policy);
      return policy ? static_cast<int64_t>(*policy) : kUnset;
    }
    case Setting::kBatchLoop: {
      const std::optional<bool> allowed = set_thread_batch_loop(std::nullopt);
      set_thread_batch_loop(allowed);
      return allowed ? *allowed : kUnset;
    }
    case Setting::kFloat:
      return t_float == BP_DTYPE_NONE ? kUnset : t_float;
    case Setting::kAutocast:
      return value_of_autocast(autocast());
    case Setting::kCount:
      break;
  }
  return kUnset;
}

void write_thread(Setting setting, int64_t value) noexcept {
  switch (setting) {
    case Setting::kRecording:
      set_grad_enabled(value != 0);
      break;
    case Setting::kDevice:
      set_thread_default_device(value == kUnset ? std::nullopt : std::optional(device_of_value(value)));
      break;
    case Setting::kHostFallback:
      set_thread_host_fallback(fallback_of_value(value));
      break;
    case Setting::kBatchLoop:
      set_thread_batch_loop(value == kUnset ? std::nullopt : std::optional(value != 0));
      break;
    case Setting::kFloat:
      t_float = value == kUnset ? bp_dtype{BP_DTYPE_NONE} : static_cast<bp_dtype>(value);
      break;
    case Setting::kAutocast:
      set_autocast(autocast_of_value(value));
      break;
    case Setting::kCount:
      break;
  }
}

void note_chain(Entry* chain) noexcept {
  Py_XINCREF(chain);
  Entry* old = std::exchange(followed.chain, chain);
  Py_XDECREF(old);
}

// The thread's settings become the chain's.
void follow(Entry* chain) noexcept {
  for (size_t i = 0; i < kSettings; ++i) {
    const auto setting = static_cast<Setting>(i);
    const int64_t before = value_of(followed.chain, setting), now = value_of(chain, setting);
    if (before == now) continue;
    if (before == kUnset) followed.before[i] = read_thread(setting);
    write_thread(setting, now == kUnset ? followed.before[i] : now);
  }
  note_chain(chain);
}

bool set_variable(Entry* chain) noexcept {
  const PyRef token = PyRef::steal(PyContextVar_Set(g_variable, chain ? reinterpret_cast<PyObject*>(chain) : Py_None));
  return static_cast<bool>(token);
}

bool push(const void* owner, Entry* parent, Setting setting, int64_t value, int64_t thread_before) noexcept {
  const PyRef entry =
      PyRef::steal(reinterpret_cast<PyObject*>(new_entry(parent, owner, setting, value, thread_before)));
  auto* made = reinterpret_cast<Entry*>(entry.get());
  if (!made || !set_variable(made)) return false;
  if (value_of(followed.chain, setting) == kUnset) followed.before[place(setting)] = thread_before;
  note_chain(made);
  write_thread(setting, value);
  return true;
}

PyType_Slot entry_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(entry_dealloc)}, {0, nullptr}};
PyType_Spec entry_spec = {"backplane._SettingEntry", sizeof(Entry), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, entry_slots};

// The chain without one of its entries. Entries before it are made again: the next entry now follows the one that
// it followed.
PyRef without(Entry* chain, const Entry* removed) noexcept {
  std::vector<Entry*> kept;
  for (; chain != removed; chain = chain->parent) kept.push_back(chain);
  PyRef made = PyRef::borrow(reinterpret_cast<PyObject*>(removed->parent));
  bool followed_on = false;
  for (; !kept.empty(); kept.pop_back()) {
    const Entry& e = *kept.back();
    const bool next = e.setting == removed->setting && !std::exchange(followed_on, true);
    PyObject* entry = reinterpret_cast<PyObject*>(new_entry(reinterpret_cast<Entry*>(made.get()), e.owner, e.setting,
                                                            e.value, next ? removed->thread_before : e.thread_before));
    if (!entry) return {};
    made = PyRef::steal(entry);
  }
  return made;
}

}  // namespace

void set_process_float(bp_dtype dtype) noexcept {
  const bp_dtype before = g_default_float.exchange(dtype, std::memory_order_relaxed);
  if (before == BP_FLOAT32 && dtype != BP_FLOAT32) g_unusual.fetch_add(1, std::memory_order_relaxed);
  if (before != BP_FLOAT32 && dtype == BP_FLOAT32) g_unusual.fetch_sub(1, std::memory_order_relaxed);
}

int64_t value_of_device(bp_device device) noexcept {
  return static_cast<int64_t>(uint64_t{device.backend} << 32 | static_cast<uint32_t>(device.ordinal));
}

int64_t value_of_autocast(const Autocast& autocast) noexcept {
  return (autocast.backend ? int64_t{*autocast.backend} + 1 : 0) << kDtypeBits | autocast.dtype;
}

void follow_context() noexcept {
  PyThreadState* state = PyThreadState_Get();
  if (state->id == followed.thread_state && state->context_ver == followed.version) return;
  followed.thread_state = state->id;
  followed.version = state->context_ver;
  PyObject* found = nullptr;
  if (PyContextVar_Get(g_variable, Py_None, &found) != 0) return PyErr_Clear();
  const PyRef held = PyRef::steal(found);
  auto* chain = found == Py_None ? nullptr : reinterpret_cast<Entry*>(found);
  if (chain != followed.chain) follow(chain);
}

bp_dtype float_of_block() noexcept { return t_float; }

namespace {

// Where no block of the setting is open.
void change_base(Setting setting, int64_t value, bool process) noexcept {
  if (setting == Setting::kFloat)
    set_process_float(static_cast<bp_dtype>(value));
  else if (setting == Setting::kDevice)
    set_default_device(device_of_value(value));
  else if (setting == Setting::kBatchLoop)
    allow_batch_loop(value != 0);
  else if (setting == Setting::kHostFallback && process)
    set_host_fallback(static_cast<HostFallback>(value));
  else
    write_thread(setting, value);
}

}  // namespace

bool change_setting(Setting setting, int64_t value, bool process) noexcept {
  follow_context();
  if (value_of(followed.chain, setting) == kUnset) {
    change_base(setting, value, process);
    return true;
  }
  Entry* parent = followed.chain;
  int64_t thread_before = read_thread(setting);
  if (!parent->owner && parent->setting == setting) {
    thread_before = parent->thread_before;
    parent = parent->parent;
  }
  return push(nullptr, parent, setting, value, thread_before);
}

bool enter_block(const void* owner, Setting setting, int64_t value) noexcept {
  follow_context();
  return push(owner, followed.chain, setting, value, read_thread(setting));
}

bool leave_block(const void* owner) noexcept {
  follow_context();
  Entry *chain = followed.chain, *entry = chain;
  const PyRef held = PyRef::borrow(reinterpret_cast<PyObject*>(chain));
  while (entry && entry->owner != owner) entry = entry->parent;
  if (!entry) return true;   // it was entered in another context
  Entry* innermost = chain;  // but for what change_setting set in the block
  while (innermost != entry && !innermost->owner && innermost->setting == entry->setting) innermost = innermost->parent;
  if (innermost == entry) {
    write_thread(entry->setting, entry->thread_before);
    note_chain(entry->parent);
    return set_variable(followed.chain);
  }
  const PyRef rest = without(chain, entry);
  if (!rest && PyErr_Occurred()) return false;
  follow(reinterpret_cast<Entry*>(rest.get()));
  return set_variable(followed.chain);
}

BlockPlace place_of_block(const void* owner) noexcept {
  follow_context();
  const Entry* entry = followed.chain;
  if (entry && entry->owner == owner) return BlockPlace::kInnermost;
  while (entry && entry->owner != owner) entry = entry->parent;
  return entry ? BlockPlace::kOuter : BlockPlace::kElsewhere;
}

bool add_context_variable() {
  g_entry_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&entry_spec));
  g_variable = PyContextVar_New("backplane.settings", nullptr);
  return g_entry_type && g_variable;
}

}  // namespace backplane::python
