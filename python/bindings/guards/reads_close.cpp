// When the run has ended: which notes are guards, which effects are to be repeated, and what cannot be.
#include <algorithm>
#include <array>

#include "backplane/autograd.hpp"
#include "backplane/transforms.hpp"
#include "bindings/guards/class_protocols.hpp"
#include "bindings/guards/object_contents.hpp"
#include "bindings/guards/reads.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

constexpr int kMostLevels = 4;  // of containers in containers

// Is it one of these tensors, or a tensor over the memory of one, as detach gives it?
bool is_used(const Tensor& tensor, std::span<const Tensor> used) {
  const bp_storage* storage = tensor.get()->storage;
  return std::any_of(used.begin(), used.end(), [&](const Tensor& u) {
    return u.get() == tensor.get() || (storage && u.get()->storage == storage);
  });
}

void fill_in(GuardItem& item, const Reads::Closing& closing, bool is_the_same) {
  PyObject* object = item.value.get();
  const Tensor t = tensor_of(object);
  // The values may have been read of another tensor over the same memory.
  const auto shows_it = [&](const TensorRead& r) { return is_used(t, {&r.tensor, 1}); };
  const auto read = std::find_if(closing.reads.begin(), closing.reads.end(), shows_it);
  TensorGuard& own = *item.tensor;
  own = TensorGuard{{}, {}, {}, {}, requires_grad(t), t.dtype(), t.device(), {t.shape().begin(), t.shape().end()}};
  if (read != closing.reads.end()) own.read = *read;
  if (own.read) own.bytes = shared_bytes(t);
  if (own.read || is_the_same || is_used(t, closing.used)) {
    own.tensor = t.get();
    own.held = t;
  }
  item.value = {};
}

// Was a tensor that the graph holds there, at the same place of a container of the same kind?
bool is_replaced(PyObject* had, PyObject* now, std::span<const Tensor> used, int levels = kMostLevels) {
  if (!had || had == now || levels == 0) return false;
  if (is_tensor(had) || is_tensor(now)) return is_tensor(had) && is_tensor(now) && is_used(tensor_of(had), used);
  if (PyDict_Check(had) && PyDict_Check(now)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(had, &at, &key, &value);)
      if (PyObject* other = PyDict_GetItem(now, key); other && is_replaced(value, other, used, levels - 1)) return true;
    return false;
  }
  const bool lists = PyList_Check(had) && PyList_Check(now), tuples = PyTuple_Check(had) && PyTuple_Check(now);
  if (!lists && !tuples) return false;
  const Py_ssize_t size = std::min(PySequence_Fast_GET_SIZE(had), PySequence_Fast_GET_SIZE(now));
  for (Py_ssize_t i = 0; i < size; ++i)
    if (is_replaced(PySequence_Fast_GET_ITEM(had, i), PySequence_Fast_GET_ITEM(now, i), used, levels - 1)) return true;
  return false;
}

}  // namespace

void raise_refusal(const char* transform, const std::string& what) {
  raise(BP_ERROR_VALUE,
        "%s: the function %s. Fix: do that outside and pass the result as an "
        "argument, or compile with fullgraph=False, which runs such a function as it is",
        transform, what.c_str());
}

namespace {

// For compile with state=, which adds to these errors what its users can do.
void mark_kept_tensor() {
  PyObject *type = nullptr, *error = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  if (error && PyObject_SetAttrString(error, "keeps_tensor", Py_True) < 0) PyErr_Clear();
  PyErr_Restore(type, error, trace);
}

void refuse_tensor(const char* transform, const Effects::Effect& effect, bool replaces) {
  if (replaces)
    raise(BP_ERROR_VALUE,
          "%s: the function replaces %s, which it reads, by another tensor (%s): later calls would read the first one "
          "again. Fix: change it in place, as in x[...] = value, or pass it as an argument and return the new one",
          transform, effect.place.c_str(), effect.line.c_str());
  else
    raise(BP_ERROR_VALUE,
          "%s: the function keeps a tensor in %s that has no value (%s): it belongs to the trace, which runs once and "
          "then ends. Fix: return the tensor, and keep the result of the call; or write it into a tensor that existed "
          "before, as in x[...] = value",
          transform, effect.place.c_str(), effect.line.c_str());
  if (!replaces) mark_kept_tensor();
}

}  // namespace

bool Reads::is_made(const Objects& made, PyObject* object) const {
  if (copies_.count(object) > 0) return true;  // what it holds, the arguments' guards see
  if (has_bytes(object) && !has_content(object)) return !was_there(object);
  // The collector does not know a dict of numbers and strings. One that was there was read of somewhere.
  if (PyDict_CheckExact(object)) {
    const auto named = names_.find(object);
    if (named == names_.end()) {
      if (!PyObject_GC_IsTracked(object)) return true;
    } else if (named->second.was_untracked) {
      return named->second.parent && is_made(made, named->second.parent.get());
    }
  }
  return made.count(object) > 0;
}

bool Reads::is_made(const Objects& made, const Place& place) const {
  if (place.guard.owner) return is_made(made, place.guard.owner.get());
  const auto owner = owner_of_dict_.find(place.guard.holder.get());
  return is_made(made, owner == owner_of_dict_.end() ? place.guard.holder.get() : owner->second.get());
}

bool Reads::is_new_value(const Objects& made, PyObject* value) const {
  if (is_tensor(value)) return made_tensors_.count(handle_of(value)) > 0;
  if (PyType_Check(value)) return made.count(value) > 0;
  if (is_plain_value(value) || PyModule_Check(value) || is_of_this_package(Py_TYPE(value))) return false;
  if (has_bytes(value) && !has_content(value)) return !was_there(value);
  if (const auto owner = owner_of_dict_.find(value); owner != owner_of_dict_.end())
    return is_made(made, owner->second.get());
  return made.count(value) > 0 || (has_content(value) && names_.count(value) == 0);
}

// Functions that keep their results: another one is kept, or they were forgotten.
bool Reads::close_caches(const Closing& closing, Guards* guards) const {
  for (const Cache& cache : caches_) {
    PyObject* function = cache.function.get();
    if (is_made(closing.made, function)) continue;
    if (leads_to_traced(function)) {
      const PyRef done = PyRef::steal(PyObject_CallMethod(function, "cache_clear", nullptr));
      forget_error();
      raise(BP_ERROR_VALUE,
            "%s: %s keeps a tensor of the trace in its cache (%s), which has no value once the trace has ended. Fix: "
            "call it outside, or leave out functools.lru_cache",
            closing.transform, path_of(function).c_str(), cache.line.c_str());
      return false;
    }
    PyRef counts = cache.counts ? cache.counts : cache_counts(function);
    forget_error();
    Guard guard{Guard::kCache, cache.function, {}, {}, "the cache of " + path_of(function), false, false, {}, {}};
    guard.items.push_back({PyRef::steal(PyUnicode_InternFromString("cache_info")), std::move(counts), {}});
    guards->add(std::move(guard));
  }
  return true;
}

// What a class that the run made says comes from its bases.
void Reads::add_bases(const Closing& closing, const Place& place, Guards* guards) const {
  const PyRef mro = PyRef::borrow(reinterpret_cast<PyTypeObject*>(place.guard.holder.get())->tp_mro);
  for (Py_ssize_t i = 1; mro && i < PyTuple_GET_SIZE(mro.get()); ++i) {
    PyObject* base = PyTuple_GET_ITEM(mro.get(), i);
    auto* type = reinterpret_cast<PyTypeObject*>(base);
    if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || is_made(closing.made, base)) continue;
    Guard guard{Guard::kClass, PyRef::borrow(base), {}, {}, path_of(base), false, false, {}, {}};
    if (place.guard.content) guard.content = class_protocol(type);
    for (const GuardItem& item : place.guard.items) {
      PyObject* value = _PyType_Lookup(type, item.key.get());
      if (!value || !is_tensor(value)) guard.items.push_back({item.key, PyRef::borrow(value), {}});
    }
    guards->add(std::move(guard));
  }
}

void Reads::close_contexts() {
  for (const auto& [variable, had] : contexts_) {
    PyObject* found = nullptr;
    if (PyContextVar_Get(variable.get(), nullptr, &found) < 0) forget_error();
    const PyRef now = PyRef::steal(found);
    if (!now || now.get() == had.get()) continue;
    const PyRef set = PyRef::steal(PyObject_GetAttrString(variable.get(), "set"));
    PyRef arguments = PyRef::steal(PyTuple_Pack(1, now.get()));
    effects_.add(Effects::Effect{variable, set, std::move(arguments), {}, {}, path_of(variable.get()), "", false, {}});
  }
}

// The dict in which a change of the holder at `key` shows: itself, or its attribute dict. Borrowed; nullptr: none.
PyObject* Reads::changed_dict(PyObject* holder, PyObject* key) {
  if (PyDict_Check(holder)) return holder;
  return key && PyUnicode_Check(key) && !PyType_Check(holder) ? dict_with(holder, key).get() : nullptr;
}

// Does the container have the same contents as before the run? `before`: its first copy, which may have been made when
// attributes of its owner had changed already.
bool Reads::holds_again(PyObject* container, const Effects::Before& before) {
  const PyRef now = has_content(container) ? copied_content(container) : PyRef{};
  if (!now) return false;
  const PyRef had = PyRef::steal(PyDict_Check(container) ? PyDict_New() : nullptr);
  if (!had) return is_same_content(now.get(), before.value.get());
  const Py_ssize_t count = PyList_GET_SIZE(before.value.get()) / 2;
  for (Py_ssize_t i = 0; i < count; ++i)
    PyDict_SetItem(had.get(), PyList_GET_ITEM(before.value.get(), i), PyList_GET_ITEM(before.value.get(), count + i));
  const PyRef seen = PyRef::steal(PySet_New(nullptr));
  for (const Effects::Before* one = effects_.befores().data(); seen && one != &before; ++one) {
    PyObject* key = one->key.get();
    if (!key || changed_dict(one->holder.get(), key) != container || PySet_Contains(seen.get(), key) != 0) continue;
    PySet_Add(seen.get(), key);
    one->value ? PyDict_SetItem(had.get(), key, one->value.get()) : PyDict_DelItem(had.get(), key);
  }
  forget_error();
  if (!seen || PySet_GET_SIZE(seen.get()) == 0) return is_same_content(now.get(), before.value.get());
  PyObject *key = nullptr, *value = nullptr;
  bool same = PyDict_GET_SIZE(had.get()) == PyDict_GET_SIZE(container);
  for (Py_ssize_t at = 0; same && PyDict_Next(container, &at, &key, &value);)
    same = PyDict_GetItem(had.get(), key) == value;
  return same;
}

// Does the key have the same value as before the run? False also where keys were removed from the dict.
bool Reads::holds_entry_again(PyObject* dict, PyObject* key, const Effects::Before& before) {
  if (!key || !PyDict_Check(dict) || !before.value) return false;
  for (const Effects::Effect& effect : effects_.all()) {
    PyObject* const arguments = effect.arguments.get();
    const Py_ssize_t n = arguments ? PyTuple_GET_SIZE(arguments) : 0;
    PyObject* const other = n > 1 ? PyTuple_GET_ITEM(arguments, 1) : nullptr;
    if (n != 3 && changed_dict(effect.holder.get(), other) == dict) return false;
  }
  PyObject* had = nullptr;
  const Py_ssize_t count = PyList_GET_SIZE(before.value.get()) / 2;
  for (Py_ssize_t i = 0; !had && i < count; ++i) {
    PyObject* const one = PyList_GET_ITEM(before.value.get(), i);
    if (one == key || same_value(one, key)) had = PyList_GET_ITEM(before.value.get(), count + i);
  }
  for (const Effects::Before* one = effects_.befores().data(); one != &before; ++one)
    if (one->key.get() == key && changed_dict(one->holder.get(), key) == dict) return false;
  return had && PyDict_GetItem(dict, key) == had;
}

// Does the changed place have its old value again? Such effects need no replay, and a tensor of the trace
// that was there meanwhile is not kept.
bool Reads::left_no_trace(const Effects::Effect& effect) {
  PyObject *holder = effect.holder.get(), *arguments = effect.arguments.get();
  PyObject* key = PyTuple_GET_SIZE(arguments) > 1 ? PyTuple_GET_ITEM(arguments, 1) : nullptr;
  PyObject* const dict = changed_dict(holder, key);
  const Effects::Before* first = nullptr;
  for (const Effects::Before& before : effects_.befores()) {
    PyObject* const changed = before.holder.get();
    if (before.of == Effects::Before::kContent && (changed == holder || changed == dict))
      return holds_again(changed, before) || holds_entry_again(changed, key, before);
    if (!first && changed == holder && (!before.key || before.key.get() == key)) first = &before;
  }
  if (!first) return false;
  switch (first->of) {
    case Effects::Before::kAttribute:
      return own_attribute(holder, key).get() == first->value.get();
    case Effects::Before::kEntry:
      return PyDict_GetItem(holder, key) == first->value.get();
    case Effects::Before::kCell:
      return PyCell_GET(holder) == first->value.get();
    default:
      return false;  // a context variable's effects are made of what it had and has
  }
}

// Does it fill a cache of Python's or NumPy's modules? A replay need not do so.
static bool fills_library_cache(const Effects::Effect& effect) {
  PyObject* const holder = effect.holder.get();
  if (effect.by_library && PyDict_Check(holder) && effect.place.find("_cache") != std::string::npos)
    return true;  // as those of re and logging
  constexpr std::array<const char*, 3> kCaches[] = {
      {"numpy", "iinfo", "_min_vals"},
      {"numpy", "iinfo", "_max_vals"},
      {"numpy", "finfo", "_finfo_cache"},
      {"linecache", "cache", nullptr},
  };
  return std::any_of(std::begin(kCaches), std::end(kCaches), [&](const auto& path) {
    const PyRef name = PyRef::steal(PyUnicode_FromString(path[0]));
    PyRef found = PyRef::steal(name ? PyImport_GetModule(name.get()) : nullptr);
    for (size_t i = 1; i < path.size() && path[i] && found; ++i)
      found = PyRef::steal(PyObject_GetAttrString(found.get(), path[i]));
    PyErr_Clear();
    return found && found.get() == holder;
  });
}

bool Reads::close_effects(const Closing& closing) {
  auto& effects = effects_.all();
  for (const Effects::Effect& effect : effects) {
    if (copies_.count(effect.holder.get()) == 0) continue;
    raise(BP_ERROR_VALUE,
          "%s: the function changes %s at %s, a container in its arguments, but a trace works on a copy of it. Fix: "
          "make a new one with dict(...) or list(...), and return it",
          closing.transform, effect.place.c_str(), effect.line.c_str());
    return false;
  }
  // A tensor of the trace that made room for another value at the same place is in no replay.
  const auto is_overwritten = [&](const Effects::Effect& effect) {
    const auto stores_there = [&](const Effects::Effect& other) {
      return &other > &effect && other.holder.get() == effect.holder.get() && other.place == effect.place &&
             !other.place.empty() && other.arguments &&
             PyTuple_GET_SIZE(other.arguments.get()) == PyTuple_GET_SIZE(effect.arguments.get());
    };
    const Py_ssize_t n = PyTuple_GET_SIZE(effect.arguments.get());
    return n == 3 && leads_to_traced(PyTuple_GET_ITEM(effect.arguments.get(), n - 1)) &&
           std::any_of(effects.begin(), effects.end(), stores_there);
  };
  std::vector<bool> drops;
  for (const Effects::Effect& effect : effects) {
    const auto owner = owner_of_dict_.find(effect.holder.get());
    drops.push_back(!effect.arguments || is_overwritten(effect) || left_no_trace(effect) ||
                    fills_library_cache(effect) ||
                    is_made(closing.made, owner == owner_of_dict_.end() ? effect.holder.get() : owner->second.get()));
  }
  std::vector<Effects::Effect> kept;
  for (size_t i = 0; i < effects.size(); ++i) (drops[i] ? dropped_ : kept).push_back(std::move(effects[i]));
  effects = std::move(kept);
  for (Effects::Effect& effect : effects) {
    PyObject* arguments = effect.arguments.get();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); ++i) {
      PyObject* value = PyTuple_GET_ITEM(arguments, i);
      const bool is_holder = value == effect.holder.get();
      const auto has_no_value = [&](const Tensor& t) {
        return is_transformed(t) || closing.changed.count(t.get()) > 0;
      };
      if (!is_holder && leads_to_tensor(value, has_no_value)) {
        refuse_tensor(closing.transform, effect, is_replaced(effect.had.get(), value, closing.used));
        return false;
      }
      if (!is_holder && !passing_.empty() &&
          leads_to_tensor(value, [&](const Tensor& t) { return passing_.count(t.get()) > 0; })) {
        raise(BP_ERROR_VALUE,
              "%s: the function keeps the old tensor of an entry of its state in %s (%s), and may replace that entry. "
              "Fix: keep a copy, bp.copy(x)",
              closing.transform, effect.place.c_str(), effect.line.c_str());
        return false;
      }
      effect.is_new.push_back(!is_holder && is_new_value(closing.made, value));
    }
  }
  if (closing.guards_variables || effects.empty()) return true;
  raise(BP_ERROR_VALUE,
        "%s: the function stores an object in %s at %s, which a graph cannot repeat. Fix: return it; or store it in a "
        "function that you call with unguarded: it then runs only during a trace",
        closing.transform, effects.front().place.c_str(), effects.front().line.c_str());
  return false;
}

// Refuses tensors of the trace that C code kept, which no instruction shows. Containers that the run read get back what
// they held.
bool Reads::close_kept(const Closing& closing) {
  if (closing.has_unguarded) return true;
  const std::vector<PyObject*> left = traced_among(closing.made);
  if (left.empty() && closing.entered.empty()) return true;
  std::vector<PyObject*> roots;
  for (const auto& [object, named] : names_) roots.push_back(object);
  const PyRef keeper = keeper_of_traced(left, closing.made, closing.entered, closing.handed, roots);
  if (!keeper) return true;
  for (const Place& place : places_) {
    const Guard& guard = place.guard;
    if (guard.kind == Guard::kContent && guard.content && !place.before)
      effects_.add(Effects::Before{guard.holder, {}, guard.content, Effects::Before::kContent});
    if (guard.kind != Guard::kEntries) continue;
    for (const GuardItem& item : guard.items)
      if (!item.value) effects_.add(Effects::Before{guard.holder, item.key, {}, Effects::Before::kEntry});
  }
  raise(BP_ERROR_VALUE,
        "%s: the function leaves a tensor of the trace in %s, where it has no value once the trace has ended. Fix: "
        "return the tensor, and keep the result of the call",
        closing.transform, path_of(keeper.get()).c_str());
  return false;
}

bool Reads::close(const Closing& closing, Guards* guards, std::string* unkept) {
  close_contexts();
  if (!close_memory(closing) || !close_effects(closing) || !close_caches(closing, guards) || !close_kept(closing))
    return false;
  *unkept = unkeepable_;
  for (Place& place : places_) {
    Guard& guard = place.guard;
    if (guard.kind == Guard::kContent || guard.kind == Guard::kBytes || guard.kind == Guard::kFunction) {
      if (!place.is_read || !guard.content) continue;
    } else if (guard.items.empty() && !guard.content) {
      continue;
    }
    if (!closing.guards_variables && !guard.of_argument) continue;
    if (guard.kind != Guard::kResult && is_made(closing.made, place)) {
      if (guard.kind == Guard::kClass) add_bases(closing, place, guards);
      continue;
    }
    const bool is_tracked = guard.kind == Guard::kContent || guard.kind == Guard::kBytes;
    const bool is_stored = guard.kind == Guard::kBytes && is_stored_to(guard.holder.get());
    if (is_tracked && !place.before && !is_stored && !still_holds(guard))
      *unkept = guard.path + " changed while the function ran";
    std::erase_if(guard.items,
                  [](const GuardItem& item) { return item.tensor && is_transformed(tensor_of(item.value.get())); });
    for (GuardItem& item : guard.items)
      if (item.tensor) fill_in(item, closing, same_tensors_.count(handle_of(item.value.get())) > 0);
    if (guard.content || !guard.items.empty()) guards->add(std::move(guard));
  }
  return !PyErr_Occurred();
}

}  // namespace backplane::python
