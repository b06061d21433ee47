// In-place changes of tensors of levels, through views too.
#pragma once

#include "levels/level.hpp"

namespace backplane::core {

// A view whose base was changed takes its value anew from the base.
void refresh(TensorImpl* view);
// The same for a view that was written through as well: it is what its call gives of the base now.
void take_view_anew(TensorImpl* view);
// A call with a given out slot, of which `level` is the highest concerned.
void change_in_place(Level& level, const Call& call);

}  // namespace backplane::core
