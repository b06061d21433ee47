/* Pins the contract's layout: every offset, size and constant of a released minor is asserted when this file is
 * compiled, from the very files that are committed (released/layout_MAJOR_MINOR.txt). The file of a released minor
 * never changes; that of the minor in the making grows with layout_structs.h and layout_values.h, from which the
 * rows here are made. */
#include "layout.h"

#include "backplane/abi/extensions.h"
#include "backplane/abi/signature.h"
#include "backplane/abi/vocabulary.h"

#define BP_SIZE_OF(type, member) sizeof(((type*)0)->member)

#define FIXED(type, size) BP_STATIC_ASSERT(sizeof(type) == (size), #type " is fixed for the major");
#define OPEN(type, size) BP_STATIC_ASSERT(sizeof(type) >= (size), #type " may only grow");
#define MEMBER(type, member, offset, size)                                                   \
  BP_STATIC_ASSERT(offsetof(type, member) == (offset) && BP_SIZE_OF(type, member) == (size), \
                   #type "." #member " has moved");
#define VALUE(name, value) BP_STATIC_ASSERT((uint64_t)(name) == (value), #name " has changed");
#include "released/layout_0_1.txt"
#include "released/layout_0_2.txt"
#include "released/layout_0_3.txt"
#undef FIXED
#undef OPEN
#undef MEMBER
#undef VALUE

#define STRUCT(type, kind) {BP_LAYOUT_##kind, #type, NULL, 0, sizeof(type)},
#define MEMBER(type, member) {BP_LAYOUT_MEMBER, #type, #member, offsetof(type, member), BP_SIZE_OF(type, member)},
#define VALUE(name) {BP_LAYOUT_VALUE, #name, NULL, (uint64_t)(name), 0},
static const bp_layout_row rows[] = {
#include "layout_structs.h"
#include "layout_values.h"
};

const bp_layout_row* bp_layout(size_t* count) {
  *count = sizeof rows / sizeof rows[0];
  return rows;
}
