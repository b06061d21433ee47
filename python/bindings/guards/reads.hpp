// Notes what code reads and stores, while it runs, and makes guards and effects of the notes when it has ended.
//
// The first read of a place counts, unless the code itself had stored there: then other guards determine the value.
// Objects that the run made are its own, and drop out at the end. All functions need the interpreter lock, and leave no
// Python error where they do not say so.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bindings/guards/effects.hpp"
#include "bindings/guards/guards.hpp"
#include "bindings/guards/host_memory.hpp"
#include "bindings/guards/kept_tensors.hpp"
#include "bindings/sizes/number_log.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {

class Reads {
 public:
  // `is_made`: did this run make the object? `changed`: the host's memory of tensors that the run has changed in place
  // so far, which the graph will change. Both are asked while it runs.
  Reads(std::function<bool(PyObject*)> is_made, std::function<std::vector<MemorySpan>()> changed)
      : is_made_now_(std::move(is_made)), changed_memory_(std::move(changed)) {}

  // The name of an object in messages. `of_argument`: it, and all that it leads to, belongs to the call's arguments.
  // `parent`: the object that it was read from; nullptr: it existed before.
  void name(PyObject* object, std::string path, bool of_argument, PyObject* parent = nullptr);
  std::string path_of(PyObject* object) const;
  // A container that the call hands over in place of the caller's own.
  void name_copy(PyObject* container, const std::string& path);
  bool is_copy(PyObject* object) const { return copies_.count(object) > 0; }
  bool is_made_now(PyObject* object) const { return is_made_now_(object); }
  // Was the object read of somewhere? A tensor: and is it none that this run made?
  bool was_read(PyObject* object) const;
  // The tensors that the run has made, without tensors of the trace and views of other tensors.
  void set_made_tensors(std::unordered_set<const bp_tensor*> made) { made_tensors_ = std::move(made); }
  // Does the memory of an array that the run has read of somewhere overlap this?
  bool was_there(const MemorySpan& memory) const;

  // Numbers at the places that `numbers` wants become roots of it.
  void follow(NumberLog* numbers) { numbers_ = numbers; }
  // What the instruction that was noted last is about to load, and the root that is to take its place; nothing: none
  // is. `is_result`: it is the result of a call, as of dict.get.
  struct Loaded {
    PyRef value, root;
    bool is_result = false;
  };
  Loaded take_loaded();
  void loads_by_call() { loaded_.is_result = true; }
  void loads_nothing() { loaded_ = {}; }  // it was only asked whether something is there

  // ---- reads, each before the instruction runs
  struct Storing;
  // Where the instruction stands whose reads come next; nullptr: it has ended.
  void look_from(const Storing* place) { now_ = place; }
  void variable(PyObject* globals, PyObject* builtins, PyObject* name);
  void entry(PyObject* dict, PyObject* key);
  void cell(PyObject* cell, PyObject* name);
  // `plainly`: as object.__getattribute__ does, whatever the class defines.
  void attribute(PyObject* object, PyObject* name, bool plainly = false);
  void all_attributes(PyObject* object);
  void instance_attributes(PyObject* object);  // without those of its class
  void of_class(PyTypeObject* type, PyObject* name);
  // What the interpreter looks up in the class of an operand by itself, and in the operand if that is a class.
  void special_methods(PyObject* operand);
  void subscript(PyObject* container, PyObject* key, bool plainly = false);
  void content(PyObject* object);  // of a container with the containers in it, or of a buffer; else nothing
  void function(PyObject* function);
  void generic(Guard::Kind kind, PyObject* holder, PyObject* key);
  // An object that the code moves on, as an iterator, refused if it was there before. `what` the code does to it.
  void uses_up(PyObject* object, const char* what, const Storing& at);
  // An action of the code that a graph cannot repeat. Only the first one counts.
  static constexpr const char* kGraphKeeps = "a graph would keep the first result";
  void refuse(std::string what, const Storing& at, const char* why = kGraphKeeps);
  void refuse(std::string what);
  const std::string& refusal() const { return refusal_; }
  // A function of C whose result depends on what nobody sees: it is called again.
  void result(PyObject* function, PyObject* arguments);
  // functools.lru_cache: `is_asked`: for its counts, by cache_info.
  void cache(PyObject* cached_function, bool is_asked, const Storing& at);
  // An iterator that the code is about to make, or has made.
  void makes_iterator(PyObject* iterator) {
    if (known_used_up_.insert(iterator).second) held_.push_back(PyRef::borrow(iterator));
  }
  // No other call may use the graph.
  void keep_none(std::string why) { unkeepable_ = std::move(why); }

  // ---- stores, in the same way
  struct Storing {
    PyFrameObject* frame;      // that does it; borrowed
    bool by_library;           // its code is the interpreter's own
    std::string line() const;  // of the user's program: "file:line"
    bool by_others() const;    // its code is the interpreter's own, or that of an installed package
  };
  void stores_attribute(PyObject* object, PyObject* name, PyObject* value, const Storing& storing,
                        bool plainly = false);
  void stores_entry(PyObject* container, PyObject* key, PyObject* value, const Storing& storing, bool plainly = false);
  void stores_variable(PyObject* globals, PyObject* name, PyObject* value, const Storing& storing);
  void stores_cell(PyObject* cell, PyObject* name, PyObject* value, const Storing& storing);
  // A call that changes the container, as list.append does.
  void changes(PyObject* container, PyObject* function, PyRef arguments, PyRef keywords, const Storing& storing);
  void sets_context(PyObject* variable);

  struct Closing {
    const Objects& made;                                  // objects that this run made: known when it has ended
    const Objects& entered;                               // inputs that more objects hold than before the run
    const Objects& handed;                                // the arguments and their contents
    const std::unordered_set<const bp_tensor*>& changed;  // tensors that this run made, and changed in place
    std::span<const Tensor> used;                         // tensors that the graph holds
    std::span<const TensorRead> reads;
    std::span<const Tensor> inputs;  // of the call
    const char* transform;
    bool guards_variables;
    bool has_unguarded;  // code that may keep what it likes
  };
  // Moves what counts to the two. False: a Python error, of a store that cannot be replayed, or a read that cannot be
  // guarded. `unkept`: not empty, where the call may run once but its graph not be kept, and why.
  bool close(const Closing& closing, Guards* guards, std::string* unkept);
  // Does each repetition of the run need a value of its own in place of this one?
  bool is_new_value(const Objects& made, PyObject* value) const;
  Effects& effects() { return effects_; }
  // Another tensor of the same form may not take the place of this one, whose memory the run looks at.
  void needs_same(PyObject* tensor) { same_tensors_.insert(handle_of(tensor)); }
  // The graph writes it at each call, as nothing outside may see.
  void forbid_keeping(PyObject* tensor) { passing_.insert(handle_of(tensor)); }
  // Is it stored as it is, so that somebody may compare it with what the run returns?
  // In an object that this run did not make?
  bool stores(PyObject* object) const;

 private:
  std::function<bool(PyObject*)> is_made_now_;
  struct Place {
    Guard guard;
    PyRef known;              // a dict: keys that were read or stored
    PyRef before;             // of a container that was stored to: its content then
    bool is_changed = false;  // otherwise than by entries that are in `known`
    bool is_read = false;     // kContent, kBytes: all of it
    struct Root {
      PyRef key, value, number;
    };
    std::vector<Root> roots = {};  // of numbers that stand there since before the run
  };
  Place& place(Guard::Kind kind, PyObject* holder);
  Place& place_of_dict(PyObject* dict);  // its entries, or the attributes of its owner
  bool is_first(Place& place, PyObject* key);
  // The key's value is about to be loaded from the place.
  void loads(Place& place, PyObject* key, PyObject* value);
  // Another value is stored there; without a key, anywhere in the holder.
  void forget_roots(PyObject* holder, PyObject* key);
  static void set_owner(Guard& guard, PyObject* owner);
  void note(Place& place, PyObject* key, PyObject* value);
  void reach(PyObject* value, const std::string& path, bool of_argument, PyObject* parent);
  Place& place_before(PyObject* container);
  bool is_changed(PyObject* container) const;
  void array_attribute(PyObject* array, PyObject* name);
  // ---- reads_buffers.cpp
  bool was_there(PyObject* buffer) const;
  bool is_stored_to(PyObject* buffer) const;
  void check_memory(PyObject* buffer);
  void element(PyObject* buffer, PyObject* key);
  void bytes(PyObject* buffer);
  void form(PyObject* buffer);
  void keep_tensor_memory(PyObject* buffer);
  void objects_in(PyObject* array);
  bool refuses_memory(PyObject* buffer, const Storing& storing);
  bool close_memory(const Closing& closing) const;
  void store(PyObject* holder, PyRef function, PyRef arguments, std::string where, PyRef had, const Storing& storing);
  void stores_dict_entry(PyObject* dict, PyObject* key, PyObject* value, const Storing& storing);
  bool is_made(const Objects& made, PyObject* object) const;
  bool is_made(const Objects& made, const Place& place) const;
  bool close_effects(const Closing& closing);
  bool close_kept(const Closing& closing);
  bool close_caches(const Closing& closing, Guards* guards) const;
  void close_contexts();
  void add_bases(const Closing& closing, const Place& place, Guards* guards) const;
  PyRef dict_of(PyObject* object);
  PyRef dict_with(PyObject* object, PyObject* name);
  // The attribute in the dict of the object or class itself; empty if it has none.
  PyRef own_attribute(PyObject* object, PyObject* name);
  PyObject* changed_dict(PyObject* holder, PyObject* key);
  bool holds_again(PyObject* container, const Effects::Before& before);
  bool holds_entry_again(PyObject* dict, PyObject* key, const Effects::Before& before);
  bool left_no_trace(const Effects::Effect& effect);
  PyObject* shown_by(PyObject* object);
  // A class, or a dict of attributes, is called what the object is.
  void name_as(PyObject* part, PyObject* object);

  std::map<std::pair<Guard::Kind, PyObject*>, size_t> index_;
  std::vector<Place> places_;
  struct Named {
    PyRef object;
    std::string path;
    bool of_argument;
    PyRef parent;
    bool was_untracked;  // by the collector, which would take it for a new one as soon as it holds an object
  };
  std::unordered_map<PyObject*, Named> names_;
  std::unordered_map<PyObject*, PyRef> owner_of_dict_;
  std::vector<std::pair<PyRef, MemorySpan>> buffers_;  // that were there before: they are no garbage collector's
  struct TensorMemory {
    PyRef array, bytes;  // that it had
    std::string line;    // of the call that got it
  };
  std::vector<TensorMemory> tensor_memory_;
  std::vector<std::pair<PyRef, PyRef>> contexts_;  // that were set, and what they had
  struct Cache {
    PyRef function, counts;  // counts: before the run, where it asks for them
    std::string line;
  };
  std::vector<Cache> caches_;
  std::unordered_set<PyObject*> copies_;  // of containers among the arguments
  std::string unkeepable_, refusal_;
  std::unordered_set<const void*> tensors_;  // that were read of somewhere
  std::unordered_set<const bp_tensor*> same_tensors_, passing_, made_tensors_;
  std::unordered_set<PyObject*> known_used_up_;
  std::unordered_set<PyObject*> tuples_;               // that were gone through
  std::vector<PyRef> held_;                            // objects that sets of addresses speak of
  std::unordered_map<PyObject*, PyRef> class_stores_;  // names stored on any class
  Effects effects_;
  std::vector<Effects::Effect> dropped_;  // held: Closing::made has addresses of what they hold
  std::function<std::vector<MemorySpan>()> changed_memory_;
  const Storing* now_ = nullptr;
  bool has_decimals_ = false;
  NumberLog* numbers_ = nullptr;
  Loaded loaded_;
};

// "compile: the function calls time(), which reads a clock, at …": a Python error.
void raise_refusal(const char* transform, const std::string& what);

}  // namespace backplane::python
