// Numbers that the code loads from places that were there before: which of them become roots of the number log.
#include <algorithm>
#include <utility>

#include "bindings/guards/reads.hpp"

namespace backplane::python {

Reads::Loaded Reads::take_loaded() { return std::exchange(loaded_, Loaded{}); }

void Reads::loads(Place& place, PyObject* key, PyObject* value) {
  if (!numbers_ || !value) return;
  if (loaded_.root) numbers_->look_at(loaded_.root.get());
  loaded_ = {};
  if (!may_be_traced(value)) return;
  const auto is_it = [&](const auto& one) { return one.value.get() == value && same_value(one.key.get(), key); };
  auto root = std::find_if(place.roots.begin(), place.roots.end(), is_it);
  if (root == place.roots.end()) {
    const auto item = std::find_if(place.guard.items.begin(), place.guard.items.end(), is_it);
    if (item == place.guard.items.end() || item->step) return;  // the run has stored it
    const PyRef number = numbers_->root(value, place_of(place.guard, key));
    if (!number) return;
    item->step = numbers_->step_of(number.get());
    root = place.roots.insert(root, {item->key, item->value, number});
  }
  loaded_ = {root->value, root->number, false};
}

void Reads::forget_roots(PyObject* holder, PyObject* key) {
  if (!numbers_) return;
  for (const Guard::Kind kind : {Guard::kEntries, Guard::kAttributes, Guard::kElements, Guard::kCell, Guard::kGeneric})
    if (const auto at = index_.find({kind, holder}); at != index_.end())
      std::erase_if(places_[at->second].roots,
                    [&](const Place::Root& root) { return !key || same_value(root.key.get(), key); });
}

}  // namespace backplane::python
