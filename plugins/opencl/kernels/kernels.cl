// The kernels in OpenCL C. One is compiled at a time: KERNEL_name, with the types and functions that its defines name,
// after the scalar functions of the registry. NAME_T is how an element lies in memory, NAME_S as what it is computed.
#define MAX_DIMS 10  // two loops are within the 1,024 bytes of arguments that every device takes
typedef struct {
  long rank, count;
  long sizes[MAX_DIMS];
  long strides[4][MAX_DIMS];  // bytes
} Loop;

// Byte offsets of the operands at position i.
#define OFFSETS(loop, i, n, offsets)                                                        \
  long offsets[n] = {0};                                                                    \
  {                                                                                         \
    long rest_ = (i);                                                                       \
    for (long d_ = (loop).rank - 1; d_ >= 0; --d_) {                                        \
      const long at_ = d_ > 0 ? rest_ % (loop).sizes[d_] : rest_;                           \
      rest_ = d_ > 0 ? rest_ / (loop).sizes[d_] : 0;                                        \
      for (int k_ = 0; k_ < (n); ++k_) offsets[k_] += at_ * (loop).strides[k_][d_];         \
    }                                                                                       \
  }
// Elements that are summed by themselves before they join a total: a float32 counts to 2^24 alone, by ones.
#define SEGMENT 8192L
// The position of this item. There are more items than positions, since they come in groups of one size: a driver that
// compiles a kernel anew for each size of group does so once.
#define ITEM(i)                      \
  const long i = get_global_id(0);   \
  if (i >= items) return;
#define AT(type, base, bytes) ((global type*)((global uchar*)(base) + (bytes)))
#define READ(type, base, bytes) (*(global const type*)((global const uchar*)(base) + (bytes)))

#ifdef KERNEL_unary
kernel void unary(global uchar* out, long out_at, global const uchar* x, long x_at, Loop loop, long items) {
  ITEM(i)
  OFFSETS(loop, i, 2, o)
  *AT(OUT_T, out, out_at + o[0]) = OUT_STORE(FUNCTION(X_LOAD(READ(X_T, x, x_at + o[1]))));
}
#endif

#ifdef KERNEL_binary
kernel void binary(global uchar* out, long out_at, global const uchar* x, long x_at, global const uchar* y, long y_at, Loop loop, long items) {
  ITEM(i)
  OFFSETS(loop, i, 3, o)
  *AT(OUT_T, out, out_at + o[0]) = OUT_STORE(FUNCTION(X_LOAD(READ(X_T, x, x_at + o[1])), X_LOAD(READ(X_T, y, y_at + o[2]))));
}
#endif

#ifdef KERNEL_checked_binary
// Integers: REFUSED(y) holds where there is no value.
kernel void checked_binary(global uchar* out, long out_at, global const uchar* x, long x_at, global const uchar* y, long y_at, Loop loop,
                           global int* found, long items) {
  ITEM(i)
  OFFSETS(loop, i, 3, o)
  const X_S b = READ(X_T, y, y_at + o[2]);
  if (REFUSED(b)) *found = 1;
  *AT(OUT_T, out, out_at + o[0]) = FUNCTION(READ(X_T, x, x_at + o[1]), b);
}
#endif

#ifdef KERNEL_choose
kernel void choose(global uchar* out, long out_at, global const uchar* holds, long holds_at, global const uchar* x, long x_at,
                   global const uchar* y, long y_at, Loop loop, long items) {
  ITEM(i)
  OFFSETS(loop, i, 4, o)
  *AT(OUT_T, out, out_at + o[0]) = READ(uchar, holds, holds_at + o[1]) != 0 ? READ(OUT_T, x, x_at + o[2]) : READ(OUT_T, y, y_at + o[3]);
}
#endif

#ifdef KERNEL_count
// VALUE(i, a, b) is start + i * step, in the type of the two numbers.
kernel void count(global uchar* out, long out_at, NUMBER start, NUMBER by, long items) {
  ITEM(i)
  AT(OUT_T, out, out_at)[i] = OUT_STORE(CAST(VALUE(i, start, by)));
}
#endif

#ifdef KERNEL_fold
// An item per result. `kept` walks the results (operands: out, x), `folded` the elements of each (operand 1).
kernel void fold(global uchar* out, long out_at, global const uchar* x, long x_at, Loop folded, Loop kept, long items) {
  ITEM(i)
  OFFSETS(kept, i, 2, o)
  OUT_S total = START;
  for (long begin = 0; begin < folded.count; begin += SEGMENT) {
    OUT_S part = START;
    for (long j = begin; j < min(begin + SEGMENT, folded.count); ++j) {
      OFFSETS(folded, j, 2, e)
      part = JOIN(part, CAST(X_LOAD(READ(X_T, x, x_at + o[1] + e[1]))));
    }
    total = JOIN(total, part);
  }
  *AT(OUT_T, out, out_at + o[0]) = OUT_STORE(total);
}
#endif

// Along an axis: item i is the line that begins at element (i / inner) * length * inner + i % inner.
#define LINE_START(i, inner, length) ((i) / (inner) * (length) * (inner) + (i) % (inner))

#ifdef KERNEL_arg_extreme
kernel void arg_extreme(global uchar* out, long out_at, global const uchar* x, long x_at, long length, long inner, long items) {
  ITEM(i)
  const long first = LINE_START(i, inner, length);
  global const X_T* line = AT(X_T, x, x_at) + first;
  long best = 0;
  for (long k = 1; k < length; ++k) {  // strictly better, or the first NaN
    const X_S held = X_LOAD(line[best * inner]), next = X_LOAD(line[k * inner]);
    if (held == held && JOIN(held, next) != held) best = k;
  }
  AT(long, out, out_at)[i] = best;
}
#endif

#ifdef KERNEL_running_sum
kernel void running_sum(global uchar* out, long out_at, global const uchar* x, long x_at, long length, long inner, long items) {
  ITEM(n)
  const long first = LINE_START(n, inner, length);
  OUT_S before = START, part = START, total = START;
  for (long k = 0; k < length; ++k) {
    const OUT_S element = CAST(X_LOAD(AT(X_T, x, x_at)[first + k * inner]));
    if (k % SEGMENT == 0) before = total;
    part = k % SEGMENT == 0 ? element : JOIN(part, element);
    total = k < SEGMENT ? part : JOIN(before, part);
    AT(OUT_T, out, out_at)[first + k * inner] = OUT_STORE(total);
  }
}
#endif

#ifdef KERNEL_sort_line
// A merge sort from below, which is stable; positions lie in `out` and in `other` in turn. A NaN counts as the largest.
#define BEFORE(a, b) ((a) < (b) || ((a) == (a) && (b) != (b)))
kernel void sort_line(global uchar* out, long out_at, global const uchar* x, long x_at, long length, long inner, long descending, global long* other, long items) {
  ITEM(n)
  const long first = LINE_START(n, inner, length);
  global const X_T* line = AT(X_T, x, x_at) + first;
  global long *from = AT(long, out, out_at) + first, *to = other + first;
  for (long k = 0; k < length; ++k) from[k * inner] = k;
  for (long width = 1; width < length; width *= 2) {
    for (long begin = 0; begin < length; begin += 2 * width) {
      const long middle = min(begin + width, length), end = min(begin + 2 * width, length);
      long i = begin, j = middle;
      for (long k = begin; k < end; ++k) {
        bool second = i == middle;
        if (!second && j < end) {
          const X_S a = X_LOAD(line[from[i * inner] * inner]), b = X_LOAD(line[from[j * inner] * inner]);
          second = descending ? BEFORE(a, b) : BEFORE(b, a);
        }
        to[k * inner] = second ? from[j++ * inner] : from[i++ * inner];
      }
    }
    global long* sorted = to;
    to = from;
    from = sorted;
  }
  global long* result = AT(long, out, out_at) + first;
  if (from != result)
    for (long k = 0; k < length; ++k) result[k * inner] = from[k * inner];
}
#endif

#ifdef KERNEL_product
// An item per element of the result (stack..., rows, columns). `stack`: operands out, x, y.
kernel void product(global uchar* out, long out_at, global const uchar* x, long x_at, global const uchar* y, long y_at, long rows, long depth,
                    long columns, Loop stack, long items) {
  ITEM(i)
  const long c = i % columns, r = i / columns % rows;
  OFFSETS(stack, i / columns / rows, 3, o)
  global const X_T* a = AT(X_T, x, x_at + o[1]) + r * depth;
  global const X_T* b = AT(X_T, y, y_at + o[2]) + c;
  X_S sum = START;
  for (long begin = 0; begin < depth; begin += SEGMENT) {
    X_S part = START;
    for (long d = begin; d < min(begin + SEGMENT, depth); ++d) part = ADD(part, MULTIPLY(X_LOAD(a[d]), X_LOAD(b[d * columns])));
    sum = ADD(sum, part);
  }
  AT(X_T, out, out_at + o[0])[r * columns + c] = X_STORE(sum);
}
#endif

#ifdef KERNEL_add_offsets
// Adds to the byte offset of each joint position what one axis' index asks for. `loop`: operands offsets, index.
kernel void add_offsets(global uchar* offsets, long offsets_at, global const uchar* index, long index_at, long size, long stride, Loop loop,
                        global int* found, long items) {
  ITEM(i)
  OFFSETS(loop, i, 2, o)
  const X_T value = READ(X_T, index, index_at + o[1]);
  const bool below = value < 0;
  long at = (long)value + (below ? size : 0);
  if ((!below && (ulong)value >= (ulong)size) || at < 0) {
    *found = 1;
    at = 0;
  }
  *AT(long, offsets, offsets_at + o[0]) += at * stride;
}
#endif

// Of both that follow, `joint` and `kept` walk the indexed tensor and what is selected from it; the offsets are those of
// the joint positions in the indexed one.
#ifdef KERNEL_gather
// An item per selected element.
kernel void gather(global uchar* out, long out_at, global const uchar* x, long x_at, global const long* offsets, Loop joint, Loop kept, long items) {
  ITEM(i)
  OFFSETS(joint, i / kept.count, 2, j)
  OFFSETS(kept, i % kept.count, 2, k)
  *AT(OUT_T, out, out_at + j[1] + k[1]) = READ(OUT_T, x, x_at + offsets[i / kept.count] + k[0]);
}
#endif

#ifdef KERNEL_scatter
// An item per kept element, which takes the joint positions in their order: the last value stays.
kernel void scatter(global uchar* out, long out_at, global const uchar* values, long values_at, global const long* offsets, Loop joint, Loop kept, long items) {
  ITEM(n)
  OFFSETS(kept, n, 2, k)
  for (long i = 0; i < joint.count; ++i) {
    OFFSETS(joint, i, 2, j)
    global OUT_T* to = AT(OUT_T, out, out_at + offsets[i] + k[0]);
    *to = OUT_STORE(JOIN(OUT_LOAD(*to), OUT_LOAD(READ(OUT_T, values, values_at + j[1] + k[1]))));
  }
}
#endif

#ifdef KERNEL_draw
// Philox 4x32-10: word i % 4 of the block at counter + i / 4; an item per block.
kernel void draw(global uchar* out, long out_at, long words, ulong key, ulong counter, long items) {
  ITEM(i)
  const ulong at = counter + (ulong)i;
  uint low = (uint)key, high = (uint)(key >> 32);
  uint b[4] = {(uint)at, (uint)(at >> 32), 0, 0};
  for (int round = 0; round < 10; ++round) {
    const uint first = b[0], second = b[2];
    const uint x = mul_hi(0xCD9E8D57u, second) ^ b[1] ^ low, y = 0xCD9E8D57u * second;
    const uint z = mul_hi(0xD2511F53u, first) ^ b[3] ^ high, w = 0xD2511F53u * first;
    b[0] = x, b[1] = y, b[2] = z, b[3] = w;
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
  for (long k = 0; k < 4 && i * 4 + k < words; ++k) AT(uint, out, out_at)[i * 4 + k] = b[k];
}
#endif
