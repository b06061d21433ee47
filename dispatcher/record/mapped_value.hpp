// An argument with its tensors replaced, also inside lists: it passes calls on with other tensors.
#pragma once

#include <vector>

#include "backplane/abi/value.h"

namespace backplane::core {

// Memory of the lists that mapped values point to.
using TensorLists = std::vector<std::vector<bp_tensor*>>;

// `change` gets each tensor that is there and gives the one in its place. References are the caller's business.
template <class Change>
inline bp_value mapped(const bp_value& value, TensorLists& lists, Change change) {
  bp_value result = value;
  if (value.tag == BP_TAG_TENSOR) {
    result.u.t = change(value.u.t);
  } else if (value.tag == BP_TAG_TENSOR_LIST) {
    auto& list = lists.emplace_back(value.u.tensors, value.u.tensors + value.count);
    for (bp_tensor*& t : list)
      if (t) t = change(t);
    result.u.tensors = list.data();
  }
  return result;
}

}  // namespace backplane::core
