// Views whose parameters are formulas: `shape: view.slice(x, [-1], [which], [none], [2])`.
//
// A view.* word names arguments; the record says so. With formulas, the op is a composite instead: it decomposes into
// the view of namespace bp that the word describes, which brings the gradient, batching and writing through the view.
#pragma once

#include "schema/reader.hpp"

namespace backplane::codegen {

// Makes a composite of a view whose word has formulas; leaves every other entry as it is.
void expand_view_formulas(ValueReader& reader, Entry& entry);

}  // namespace backplane::codegen
