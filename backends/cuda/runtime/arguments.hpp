// What kernels receive: plain structs that the host fills and passes by value, the same text for nvcc and for the
// host's compiler.
//
// Dimensions lie innermost first. Counts and sizes are below 2^31, which the host ensures by splitting what is larger,
// so that an index is divided by a size with one multiplication (Granlund and Montgomery, "Division by Invariant
// Integers using Multiplication", PLDI 1994).
#pragma once

#include <stdint.h>

namespace backplane::cuda {

constexpr int kMaxRank = 12;
constexpr int kMaxOperands = 4;
constexpr uint32_t kWarp = 32;
constexpr uint32_t kThreads = 256;         // of a block, in kernels that do not say otherwise
constexpr uint32_t kLongestBlock = 512;    // threads that share a line
constexpr int kHeldPacks = 4;              // of a line, that each thread of its block holds
constexpr uint32_t kSortedInBlock = 1024;  // elements of a line that one block sorts
constexpr uint32_t kSquare = 32;           // rows and columns that a block turns around at a time
constexpr int kCastTogether = 4;           // elements that a thread converts at a time
constexpr int kWhereTogether = 4;          // elements that a thread selects at a time
constexpr uint32_t kDigitBits = 8;         // of a radix sort
constexpr uint32_t kDigits = 256;          // one per thread of a block
constexpr int kTile = 64;                  // rows and columns of a product that one block computes
constexpr int kTileDepth = 8;              // of x and y in shared memory at a time

// i / size is (i * magic / 2^32 + i) / 2^shift.
struct Divider {
  uint32_t size;
  uint32_t magic;
  uint32_t shift;
};

// A number in the place of a tensor, as one element.
struct alignas(8) Number {
  unsigned char bytes[16];
};

// What is wrong with the data of one call; in host memory, which the device writes and the host reads when the call's
// work has ended.
enum class DataFault : uint32_t {
  kNone = 0,
  kDivisorZero = 1,
  kNegativeExponent = 2,
  kIndexOutOfRange = 3,
  kNotPositive = 4,  // of a matrix, as are those that follow: `value` says which of the stack
  kSingular = 5,
  kNotFinite = 6,
  kNoEigenvalues = 7,
  kNoSingularValues = 8
};
struct DataError {
  uint32_t taken;  // by the first thread that found one
  uint32_t fault;  // DataFault
  int64_t value;
  int64_t axis;
  int64_t size;
};

// Elements that an elementwise kernel takes at a time, by the bytes of the largest: 16 bytes, and of bytes 8.
#ifdef __CUDACC__
#define BP_CUDA_BOTH __host__ __device__
#else
#define BP_CUDA_BOTH
#endif
BP_CUDA_BOTH constexpr uint32_t together_of(int64_t item) {
  return item >= 16 ? 1 : item == 1 ? 8 : static_cast<uint32_t>(16 / item);
}

// An elementwise call: operand 0 is the result. Strides in bytes.
struct Loop {
  uint32_t count;
  int32_t rank;
  Divider sizes[kMaxRank];
  int64_t strides[kMaxOperands][kMaxRank];
  char* data[kMaxOperands];  // nullptr: the operand is the number of the same place
  Number numbers[kMaxOperands];
  DataError* error;
  int32_t in_dtype;   // of cast's operand
  uint32_t repeated;  // where the innermost dimension counts packs: bit k says that operand k has one element for each
  uint32_t rest;      // elements that fill no pack
};

// Some of a tensor's dimensions, with the bytes that a step along each moves in the result and in the operand.
struct Dimensions {
  uint32_t count;
  int32_t rank;
  Divider sizes[kMaxRank];
  int64_t out[kMaxRank];
  int64_t x[kMaxRank];
};

// A reduction: an element of the result per position of `kept`, over the positions of `reduced`. With more than one
// chunk, totals of the chunks go to `partial`, [position][chunk] in the type that is computed in.
struct Reduction {
  Dimensions kept;
  Dimensions reduced;
  char* out;
  const char* x;
  char* partial;
  uint32_t chunks;
  uint32_t chunk_size;
  int32_t in_dtype;
};

// Lines along one axis of contiguous tensors: line l begins at l / inner * length * inner + l % inner, in steps of
// inner.
struct Lines {
  int64_t count;
  int64_t inner;
  int64_t length;
  const char* x;
  char* out;
  int32_t in_dtype;
  int32_t item;  // bytes of an element of x
};

// Contiguous lines along a tensor's last axes. `weight` and `bias`: of one line, or nullptr.
struct NormalizedLines {
  uint32_t count;
  uint32_t length;
  const char* x;
  const char* weight;
  const char* bias;
  const char* cotangent;
  char* out;
  double eps;
};

// Windows over an axis of images.
struct WindowAxis {
  Divider kernel;   // elements of a window
  Divider windows;  // how many there are
  int32_t size;     // of the image
  uint32_t stride;
  int32_t padding;
  uint32_t dilation;
};
// What is made of the windows of contiguous images (n, c, h, w), an element per thread.
struct Windows {
  WindowAxis down, across;
  Divider images, channels;  // channels of a group
  uint32_t groups;
  uint32_t count;  // of results
  const char* x;
  char* out;
  char* indices;  // nullptr: not wanted
};

// Lines along one axis of strided tensors; `lines` are the other dimensions.
struct Sorting {
  Dimensions lines;
  const char* x;
  char* out;
  int64_t x_step;  // bytes
  int64_t out_step;
  uint32_t length;
  uint32_t padded;  // the power of two from `length` on
  int32_t descending;
};

// How elements become keys, whose order as unsigned words is that of the elements.
enum class KeyKind : uint32_t { kBool, kUnsigned, kSigned, kFloat };
struct KeyMaking {
  char* keys;         // [line][length]
  uint64_t* varying;  // [line], zeros beforehand: the bits in which a line's keys differ
  uint64_t infinity;  // of floats: the bits of the largest that is a number
  KeyKind kind;
};

// A pass of a radix sort: lines of keys, unsigned words, are ordered by one digit, and equal digits stay in order. A
// line whose keys all have that digit is left as it is. Each pass that is not left out takes the keys from one place to
// the other, first from place 0; before it the positions are in order.
struct RadixPass {
  char* keys[2];            // [line][length]
  uint32_t* positions[2];   // of the keys
  const uint64_t* varying;  // [line]; nullptr: no pass is left out
  uint32_t* counts;         // [line][digit][tile]: first of the tile's keys, then of those in the tiles before it
  uint32_t* totals;         // [line][digit]
  uint32_t lines, length;
  uint32_t tiles;   // of a line; the digits of a single one are not counted beforehand
  uint32_t number;  // of the pass, and of the digit
};
// Keys that a block orders at a time, as many as its shared memory holds: of up to 4 bytes, and of 8.
constexpr uint32_t kRadixTile = 16 * kThreads;
constexpr uint32_t kWideRadixTile = 8 * kThreads;

// out = x y, a matrix per position of the batch. Strides in elements.
struct Product {
  Dimensions operands;  // the batch, with the strides of y as `out` and of x as `x`
  Dimensions results;   // the same positions of out, as `out`
  char* out;
  const char* x;
  const char* y;
  int64_t rows, depth, columns;
  int64_t x_row, x_column, y_row, y_column, out_row, out_column;
};

// Contiguous matrices by rows, one behind the other, that are made of others, whose steps are in elements. `info`: one
// for each matrix; not 0 says that something is wrong with it.
struct Matrices {
  int64_t count, rows, columns;
  char* out;
  const char* x;
  int64_t x_matrix, x_row, x_column;
  int32_t* info;
  int32_t upper;       // of triangles
  int32_t conjugated;  // what is made
};

// Of n x n matrices' LU factors, as cuSOLVER leaves them.
struct Determinants {
  int64_t count, n;
  const char* factors;
  const int64_t* pivots;
  const int32_t* info;
  char* value;  // the determinant, or its sign
  char* log;
};

// Triangular systems: y holds the right sides, and then the solutions, [matrix][column][row].
struct Substitution {
  Dimensions stack;  // x: bytes in a
  const char* a;     // by rows
  char* y;
  int64_t n, columns;
  int32_t upper, unit;
};

// Elements of x at positions that index tensors name. The dimensions are those of the picked elements: first those that
// x keeps, then those of the positions. Strides in bytes.
struct Indexing {
  Dimensions kept;       // out: of the picked elements
  Dimensions positions;  // out: of the picked elements; x: not used
  struct Index {
    const char* data;
    int64_t axis_size;
    int64_t axis_stride;
    int64_t strides[kMaxRank];  // per dimension of positions
    int32_t dtype;
    int32_t axis;
  } indices[kMaxRank];
  int32_t n_indices;
  char* x;
  char* picked;
  DataError* error;
};

// Index positions in the order of the places that they point to, in a run those that point to one.
struct Runs {
  const char* keys;        // of the places, in order: words of 4 bytes, or of 8 where `wide`
  const uint32_t* order;   // the positions
  const int64_t* offsets;  // in x, of each position
  uint64_t nowhere;        // the key, larger than all others, of positions that are out of range
  uint32_t wide;
  uint32_t group;  // threads, a power of two, that take a run's kept elements
};

}  // namespace backplane::cuda
