/* The contract's layout as this compiler lays it out: rows for the test that compares it with the committed files of
 * dispatcher/abi/released. Not installed. */
#ifndef BACKPLANE_LAYOUT_H
#define BACKPLANE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bp_layout_kind { BP_LAYOUT_FIXED, BP_LAYOUT_OPEN, BP_LAYOUT_MEMBER, BP_LAYOUT_VALUE };

typedef struct bp_layout_row {
  enum bp_layout_kind kind;
  const char* owner;  /* the struct, or the constant */
  const char* member; /* of a MEMBER row */
  uint64_t offset;    /* of a MEMBER row; a constant's value */
  uint64_t size;      /* of a struct or member */
} bp_layout_row;

/* In the order of layout_structs.h, then of layout_values.h. Static data. */
const bp_layout_row* bp_layout(size_t* count);

#ifdef __cplusplus
}
#endif
#endif
