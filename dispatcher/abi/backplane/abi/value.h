/* Backplane binary contract: tensors and values, as kernels and callers see them.
 *
 * A `bp_value` is borrowed wherever it is an argument. Its layout, DLPack's, and the part of a tensor
 * handle that is declared here are fixed for the whole major, so they carry no struct size of their own
 * beyond the handle's. */
#ifndef BACKPLANE_ABI_VALUE_H
#define BACKPLANE_ABI_VALUE_H

#include "backplane/abi/base.h"
#include "backplane/abi/dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bp_storage bp_storage; /* opaque: the host's */

/* The head of a tensor handle; what follows it is the host's. Reading it needs no lock: shape, strides
 * and dtype never change after creation. `dl.data` is the storage's base exactly as its backend
 * returned it (an address or a buffer handle); all displacement is in `dl.byte_offset`. */
typedef struct bp_tensor {
  DLTensor dl; /* strides are always present, in elements */
  uint32_t struct_size;
  uint32_t flags;   /* BP_TENSOR_* */
  uint32_t backend; /* index of its backend; with `ordinal` the device's identity */
  int32_t ordinal;
  bp_dtype dtype; /* dense twin of dl.dtype */
  uint16_t reserved0;
  uint32_t reserved1;
  bp_storage* storage;
  uint64_t nbytes; /* of the elements: count x item size; the storage may be larger */
} bp_tensor;

enum {
  BP_TENSOR_WRAPPER = 1u << 0,    /* of a transform: promises no data */
  BP_TENSOR_CONTIGUOUS = 1u << 1, /* row-major without gaps */
  BP_TENSOR_NUMBER = 1u << 2      /* made from a Python number: weak in promotion */
};

enum {
  BP_TAG_ABSENT = 0,
  BP_TAG_BOOL = 1,      /* i: 0 or 1 */
  BP_TAG_INT = 2,       /* i; other members where BP_VALUE_UINT64 or BP_VALUE_BEYOND say so */
  BP_TAG_FLOAT = 3,     /* f */
  BP_TAG_COMPLEX = 4,   /* c: two doubles */
  BP_TAG_STRING = 5,    /* s, count bytes, also NUL-terminated */
  BP_TAG_DTYPE = 6,     /* i: a bp_dtype */
  BP_TAG_DEVICE = 7,    /* d */
  BP_TAG_TENSOR = 8,    /* t */
  BP_TAG_GENERATOR = 9, /* g */
  BP_TAG_GRAPH = 10,    /* p */
  /* A list's tag is BP_TAG_LIST | its element's tag, with `count` elements. INT: const int64_t*, FLOAT:
   * const double*, BOOL: const uint8_t*, TENSOR: bp_tensor* const* (NULL: an absent element). Where ints
   * may be absent, the list is of plain values: BP_TAG_LIST | BP_TAG_ABSENT, const bp_value*. */
  BP_TAG_LIST = 0x100
};
#define BP_TAG_INT_LIST (BP_TAG_LIST | BP_TAG_INT)
#define BP_TAG_FLOAT_LIST (BP_TAG_LIST | BP_TAG_FLOAT)
#define BP_TAG_BOOL_LIST (BP_TAG_LIST | BP_TAG_BOOL)
#define BP_TAG_TENSOR_LIST (BP_TAG_LIST | BP_TAG_TENSOR)
#define BP_TAG_VALUE_LIST (BP_TAG_LIST | BP_TAG_ABSENT)

/* Flags of a value. The first two describe an out slot on entry; see `bp_kernel_fn`. */
enum {
  BP_VALUE_GIVEN = 1u << 0,      /* out: a borrowed tensor to write into */
  BP_VALUE_NOT_WANTED = 1u << 1, /* out: leave it alone */
  BP_VALUE_NUMBER = 1u << 2,     /* BOOL/INT/FLOAT/COMPLEX standing in a tensor position */
  BP_VALUE_UINT64 = 1u << 3, /* INT: i holds the bits of a uint64_t from 2^63 on; a kernel meets it in uint64 alone */
  BP_VALUE_BEYOND = 1u << 4  /* INT: 64 bits do not hold it, f is the double next to it; no kernel meets it */
};

/* A backend's index is process-local; it is never written to a file. */
typedef struct bp_device {
  uint32_t backend;
  int32_t ordinal;
} bp_device;

/* A position in a Philox 4x32-10 sequence, reserved by the caller before the op is called. */
typedef struct bp_generator_state {
  uint64_t key;
  uint64_t counter;
} bp_generator_state;

typedef struct bp_value {
  uint16_t tag;
  uint16_t flags;
  uint32_t count; /* elements of a list, bytes of a string; else 0 */
  union {
    int64_t i;
    double f;
    const double* c;
    const char* s;
    bp_device d;
    bp_tensor* t;
    const bp_generator_state* g;
    const void* p;
    const int64_t* ints;
    const double* floats;
    const uint8_t* bools;
    bp_tensor* const* tensors;
    const struct bp_value* values;
  } u;
} bp_value;

BP_STATIC_ASSERT(sizeof(void*) == 8, "the contract is defined for 64-bit hosts");
BP_STATIC_ASSERT(sizeof(DLTensor) == 48, "DLTensor");
BP_STATIC_ASSERT(sizeof(bp_value) == 16 && offsetof(bp_value, u) == 8, "bp_value");
BP_STATIC_ASSERT(offsetof(bp_tensor, struct_size) == 48, "bp_tensor");
BP_STATIC_ASSERT(offsetof(bp_tensor, storage) == 72 && sizeof(bp_tensor) == 88, "bp_tensor");

#ifdef __cplusplus
}
#endif
#endif
