// Ops whose results have a size that depends on values: `shape: dynamic(max=N)`.
//
// Such an entry describes its padded form, an op of fixed shapes with one more result, the count: name_padded. The op
// itself is made of it: it keeps the first `count` rows.
#pragma once

#include "schema/reader.hpp"

namespace backplane::codegen {

// Does a `shape:` of the entry call `dynamic`?
bool states_largest_size(const YamlNode* shape);
// Converts the signature to the padded form.
void make_padded(ValueReader& reader, Entry& entry);
// `dynamic(max=N)` becomes the shape [N]; false where the shape is something else.
bool read_largest_size(ValueReader& reader, ShapeSpec& shape);
// `count` is an int64 without dims.
void add_count(Entry& entry);
// The op itself, `entry`, of its padded form, from which it takes what concerns its name and its examples.
void add_exact_form(Entry& padded, Entry& entry, Diagnostics& diagnostics);

}  // namespace backplane::codegen
