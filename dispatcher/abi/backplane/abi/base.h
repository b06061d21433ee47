/* Backplane binary contract: versions, calling convention, status codes, dtypes.
 *
 * C11, fixed-width types only. Nothing here allocates or has a side effect; every file of the
 * contract includes this one. Layouts are pinned by layout.c and by tests/abi/layout_*.txt. */
#ifndef BACKPLANE_ABI_BASE_H
#define BACKPLANE_ABI_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Within a major, structs and tables only grow at their end; see `bp_header`. */
#define BP_ABI_MAJOR 0
#define BP_ABI_MINOR 3

/* The oldest minor of hosts that a plugin is to run on: -DBP_TARGET_MINOR=1, or NEEDS_MINOR of backplane_add_plugin.
 * Slots that came later are hidden then, so that using one is a compile error instead of a refusal at a user's. */
#ifndef BP_TARGET_MINOR
#define BP_TARGET_MINOR BP_ABI_MINOR
#elif BP_TARGET_MINOR < 1 || BP_TARGET_MINOR > BP_ABI_MINOR
#error "BP_TARGET_MINOR: not a minor that these headers know; they know 1 to BP_ABI_MINOR"
#endif

#if defined(_WIN32)
#define BP_CALL __cdecl
#define BP_EXPORT __declspec(dllexport)
#else
#define BP_CALL
#define BP_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
#define BP_STATIC_ASSERT(cond, text) static_assert(cond, text)
#else
#define BP_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif

/* Every struct and table that may grow starts so. `struct_size` is sizeof() on the side that filled
 * it; a member is read only if it lies within that size. `version` is the minor it was filled for.
 * In a struct that the callee fills, `struct_size` is the room that the caller has: nothing is written beyond it. */
typedef struct bp_header {
  uint32_t struct_size;
  uint32_t version;
} bp_header;

#define BP_HEADER(type) \
  { (uint32_t)sizeof(type), BP_TARGET_MINOR }

/* True if `member` lies within the struct as its writer knew it. */
#define BP_HAS(ptr, type, member) ((ptr)->header.struct_size >= offsetof(type, member) + sizeof((ptr)->member))

/* A word of flags has bits that the reader must understand, its low half, and hints, its high half (of a 16-bit word
 * the top four bits). What carries an unknown bit of the first kind is refused, with the bit named; an unknown hint is
 * ignored. */
#define BP_HINTS_OF_16 0xf000u
#define BP_HINTS_OF_32 0xffff0000u
#define BP_HINTS_OF_64 0xffffffff00000000u

/* A struct larger than this, or whose size is not a multiple of 8, is refused as damaged. */
#define BP_MAX_STRUCT_SIZE 4096u

/* What every function of the contract returns. The message travels beside it: `bp_host::set_error`. */
typedef int32_t bp_status;
enum {
  BP_OK = 0,
  BP_ERROR_VALUE = 1,           /* an argument's value is outside its domain   -> ValueError */
  BP_ERROR_TYPE = 2,            /* an argument has the wrong kind              -> TypeError */
  BP_ERROR_SHAPE = 3,           /* shapes do not fit                           -> ValueError */
  BP_ERROR_DTYPE = 4,           /* a dtype is not accepted                     -> TypeError */
  BP_ERROR_INDEX = 5,           /* an index or axis is out of range            -> IndexError */
  BP_ERROR_NOT_IMPLEMENTED = 6, /* no rule or kernel                           -> NotImplementedError */
  BP_ERROR_MEMORY = 7,          /* out of memory                               -> MemoryError */
  BP_ERROR_DEVICE = 8,          /* a vendor's call failed; the device lives    -> RuntimeError */
  BP_ERROR_DEVICE_LOST = 9,     /* fatal: every later call on it fails         -> RuntimeError */
  BP_ERROR_DATA = 10,           /* a kernel met bad data (deferred; lives on)  -> ValueError */
  BP_ERROR_VERSION = 11,        /* contract versions do not meet               -> ImportError */
  BP_ERROR_BUSY = 12,           /* leases or running calls hold the plugin     -> RuntimeError */
  BP_ERROR_INTERNAL = 13,       /* an invariant of ours is broken              -> RuntimeError */
  BP_ERROR_PYTHON = 14,         /* a callback's own exception is pending       -> that exception */
  BP_ERROR_OVERFLOW = 15        /* a number lies outside a dtype's range       -> OverflowError, ValueError */
};

/* Dtypes, dense, so that a set of them is a mask: `1u << BP_FLOAT32`. X(constant, number, name, C++ type of an element,
 * bytes, DLPack's code). This is the only list of these facts. float16 and bfloat16 are structs of
 * plugin/dtype.hpp. */
#define BP_DTYPES(X)                                                \
  X(BOOL, 0, "bool", bool, 1, kDLBool)                              \
  X(INT8, 1, "int8", int8_t, 1, kDLInt)                             \
  X(INT16, 2, "int16", int16_t, 2, kDLInt)                          \
  X(INT32, 3, "int32", int32_t, 4, kDLInt)                          \
  X(INT64, 4, "int64", int64_t, 8, kDLInt)                          \
  X(UINT8, 5, "uint8", uint8_t, 1, kDLUInt)                         \
  X(UINT16, 6, "uint16", uint16_t, 2, kDLUInt)                      \
  X(UINT32, 7, "uint32", uint32_t, 4, kDLUInt)                      \
  X(UINT64, 8, "uint64", uint64_t, 8, kDLUInt)                      \
  X(FLOAT16, 9, "float16", float16, 2, kDLFloat)                    \
  X(BFLOAT16, 10, "bfloat16", bfloat16, 2, kDLBfloat)               \
  X(FLOAT32, 11, "float32", float, 4, kDLFloat)                     \
  X(FLOAT64, 12, "float64", double, 8, kDLFloat)                    \
  X(COMPLEX64, 13, "complex64", std::complex<float>, 8, kDLComplex) \
  X(COMPLEX128, 14, "complex128", std::complex<double>, 16, kDLComplex)

/* Numbers kept for dtypes to come, of less than a byte or of formats that no C++ type has. Elements of less than a byte
 * will be packed and contiguous, and in no loop descriptor. */
#define BP_RESERVED_DTYPES(X) \
  X(COMPLEX32, 15)            \
  X(FLOAT8_E4M3FN, 16)        \
  X(FLOAT8_E5M2, 17)          \
  X(FLOAT6_E2M3FN, 18)        \
  X(FLOAT6_E3M2FN, 19)        \
  X(FLOAT4_E2M1FN, 20)        \
  X(INT4, 21)                 \
  X(UINT4, 22)                \
  X(INT2, 23)                 \
  X(UINT2, 24)                \
  X(FLOAT8_E4M3FNUZ, 25)      \
  X(FLOAT8_E5M2FNUZ, 26)      \
  X(FLOAT8_E8M0FNU, 27)

typedef uint16_t bp_dtype;
#define BP_DTYPE_VALUE(constant, number, name, type, bytes, code) BP_##constant = number,
enum { BP_DTYPES(BP_DTYPE_VALUE) BP_DTYPE_COUNT, BP_DTYPE_NONE = 0xffff };
#undef BP_DTYPE_VALUE
#define BP_DTYPE_VALUE(constant, number) BP_##constant = number,
enum { BP_RESERVED_DTYPES(BP_DTYPE_VALUE) BP_RESERVED_DTYPE_COUNT };
#undef BP_DTYPE_VALUE
/* A set of dtypes has 64 bits. A mask holds the first 32 of them: structs of before 0.3 have masks, to which a set was
 * appended. The reader takes both together. */
typedef uint64_t bp_dtype_set;
#define BP_DTYPE_SET_BIT(dtype) ((bp_dtype_set)1u << (dtype))
typedef uint32_t bp_dtype_mask;
#define BP_DTYPE_BIT(dtype) ((bp_dtype_mask)1u << (dtype))
#define BP_MASK_BOOL BP_DTYPE_BIT(BP_BOOL)
#define BP_MASK_SIGNED 0x001eu
#define BP_MASK_UNSIGNED 0x01e0u
#define BP_MASK_INTEGER (BP_MASK_SIGNED | BP_MASK_UNSIGNED)
#define BP_MASK_FLOATING 0x1e00u
#define BP_MASK_COMPLEX 0x6000u
#define BP_MASK_ANY 0x7fffu

#ifdef __cplusplus
}
#endif
#endif
