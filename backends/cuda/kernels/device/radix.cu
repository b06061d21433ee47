// A stable radix sort of lines of keys with their positions, from the least significant digit on (Knuth, "The Art of
// Computer Programming", vol. 3, 5.2.5). A pass orders by one digit of 8 bits: blocks count the digits of their tiles,
// the counts become the places where each tile's keys of a digit go, and blocks move their tiles there. Keys are
// unsigned words of 1, 2, 4 or 8 bytes.
#include "kernels/device/sort_keys.cuh"

namespace backplane::cuda {
namespace {

constexpr uint32_t kWarps = kThreads / kWarp;
constexpr uint32_t kBlocks = 3;  // at a time on a multiprocessor: of more, registers spill
static_assert(kDigits == kThreads, "a thread per digit");

template <class U>
constexpr uint32_t kTileKeys = sizeof(U) == 8 ? kWideRadixTile : kRadixTile;
template <class U>
constexpr uint32_t kItems = kTileKeys<U> / kThreads;

template <class U>
__device__ uint32_t digit_of(U key, uint32_t shift) {
  return static_cast<uint32_t>(key >> shift) % kDigits;
}

// What a pass does with a line.
struct Step {
  bool wanted;    // its keys differ in the digit
  bool first;     // none before it was wanted
  uint32_t from;  // which of the two places the keys are in
};
__device__ Step step_of(const RadixPass& call, uint32_t l) {
  const uint64_t varying = call.varying != nullptr ? call.varying[l] : ~uint64_t{0};
  uint32_t before = 0;
  for (uint32_t n = 0; n < call.number; ++n) before += digit_of(varying, n * kDigitBits) != 0;
  return {digit_of(varying, call.number * kDigitBits) != 0, before == 0, before % 2};
}
__device__ uint32_t* positions_of(const RadixPass& call, uint32_t l, uint32_t place) {
  return (place == 0 ? call.positions[0] : call.positions[1]) + uint64_t{l} * call.length;
}
template <class U>
__device__ U* keys_of(const RadixPass& call, uint32_t l, uint32_t place) {
  return reinterpret_cast<U*>(place == 0 ? call.keys[0] : call.keys[1]) + uint64_t{l} * call.length;
}

// A block's keys: a warp has consecutive ones, of which a lane has every 32nd.
template <class U>
struct Tile {
  U keys[kItems<U>];
  uint32_t ranks[kItems<U>];  // among the warp's keys of the same digit, which stands above the lower 16 bits
  uint32_t first;             // this thread's first key in the line
  uint32_t count;             // of its keys

  __device__ void load(const RadixPass& call, const U* line);
  __device__ void rank(const RadixPass& call, uint32_t* counts);
};

template <class U>
__device__ void Tile<U>::load(const RadixPass& call, const U* line) {
  first = (blockIdx.x * kThreads + threadIdx.x - lane()) * kItems<U> + lane();
  count = first < call.length ? (call.length - first + kWarp - 1) / kWarp : 0;
#pragma unroll
  for (uint32_t k = 0; k < kItems<U>; ++k) keys[k] = k < count ? line[first + k * kWarp] : U{0};
}

// The lanes whose keys have this lane's digit.
__device__ uint32_t lanes_alike(uint32_t digit, bool has) {
  uint32_t alike = __ballot_sync(kAllLanes, has);
#pragma unroll
  for (uint32_t bit = 1; bit < kDigits; bit *= 2) {
    const bool set = (digit & bit) != 0;
    const uint32_t votes = __ballot_sync(kAllLanes, set);
    alike &= set ? votes : ~votes;
  }
  return alike;
}

// `counts`: of the warp, [digit]; what it ends with is how many keys have each digit.
template <class U>
__device__ void Tile<U>::rank(const RadixPass& call, uint32_t* counts) {
  for (uint32_t d = lane(); d < kDigits; d += kWarp) counts[d] = 0;
  __syncwarp();
#pragma unroll
  for (uint32_t k = 0; k < kItems<U>; ++k) {
    const uint32_t digit = digit_of(keys[k], call.number * kDigitBits), alike = lanes_alike(digit, k < count);
    const uint32_t lower = alike & ((1u << lane()) - 1), before = counts[digit];
    __syncwarp();
    if (k < count && lower == 0) counts[digit] = before + __popc(alike);
    __syncwarp();
    ranks[k] = digit << 16 | (before + __popc(lower));
  }
}

template <class U>
__device__ void count_digits(const RadixPass& call) {
  __shared__ uint32_t counts[kWarps][kDigits];
  for (uint32_t l = blockIdx.y; l < call.lines; l += gridDim.y) {
    const Step step = step_of(call, l);
    if (!step.wanted) continue;
    Tile<U> tile;
    tile.load(call, keys_of<U>(call, l, step.from));
    tile.rank(call, counts[threadIdx.x / kWarp]);
    __syncthreads();
    uint32_t count = 0;
#pragma unroll
    for (uint32_t w = 0; w < kWarps; ++w) count += counts[w][threadIdx.x];
    call.counts[(uint64_t{l} * kDigits + threadIdx.x) * call.tiles + blockIdx.x] = count;
    __syncthreads();
  }
}

// The sum of the lanes up to this one.
__device__ uint32_t warp_sum(uint32_t value) {
#pragma unroll
  for (uint32_t step = 1; step < kWarp; step *= 2) {
    const uint32_t other = __shfl_up_sync(kAllLanes, value, step);
    if (lane() >= step) value += other;
  }
  return value;
}

// The sum of the threads before this one. `sums` is free again after the next barrier.
__device__ uint32_t sum_before(uint32_t value, uint32_t (&sums)[kWarps]) {
  const uint32_t inclusive = warp_sum(value);
  if (lane() == kWarp - 1) sums[threadIdx.x / kWarp] = inclusive;
  __syncthreads();
  uint32_t before = inclusive - value;
  for (uint32_t w = 0; w < threadIdx.x / kWarp; ++w) before += sums[w];
  return before;
}

// A warp per line and digit: over the tiles, each count becomes the sum of those before it.
__device__ void sum_counts(const RadixPass& call) {
  constexpr uint32_t kAhead = 8;  // fetched at a time
  const uint64_t rows = uint64_t{call.lines} * kDigits;
  for (uint64_t row = first_index() / kWarp; row < rows; row += index_step() / kWarp) {
    if (!step_of(call, static_cast<uint32_t>(row / kDigits)).wanted) continue;
    uint32_t* counts = call.counts + row * call.tiles;
    uint32_t total = 0;
    for (uint32_t begin = lane(); begin - lane() < call.tiles; begin += kAhead * kWarp) {
      uint32_t found[kAhead];
#pragma unroll
      for (uint32_t j = 0; j < kAhead; ++j) found[j] = begin + j * kWarp < call.tiles ? counts[begin + j * kWarp] : 0;
#pragma unroll
      for (uint32_t j = 0; j < kAhead; ++j) {
        const uint32_t inclusive = warp_sum(found[j]);
        if (begin + j * kWarp < call.tiles) counts[begin + j * kWarp] = total + inclusive - found[j];
        total += __shfl_sync(kAllLanes, inclusive, kWarp - 1);
      }
    }
    if (lane() == 0) call.totals[row] = total;
  }
}

// What a block orders its tile with.
template <class U>
struct Ordered {
  uint32_t counts[kWarps][kDigits];  // of a warp's keys; then where in the tile its first one goes
  uint32_t places[kDigits];          // where in the line the tile's keys of a digit go, less where they are in the tile
  uint32_t sums[2][kWarps];
  uint32_t positions[kTileKeys<U>];
  U keys[kTileKeys<U>];
};

// A thread per digit.
template <class U>
__device__ void place_digits(const RadixPass& call, uint32_t l, Ordered<U>& ordered) {
  const uint32_t digit = threadIdx.x;
  uint32_t count = 0;
#pragma unroll
  for (uint32_t w = 0; w < kWarps; ++w) count += ordered.counts[w][digit];
  const uint32_t start = sum_before(count, ordered.sums[0]);
  uint32_t next = start;
#pragma unroll
  for (uint32_t w = 0; w < kWarps; ++w) {
    const uint32_t here = ordered.counts[w][digit];
    ordered.counts[w][digit] = next;
    next += here;
  }
  uint32_t to = start;
  if (call.tiles > 1) {
    const uint64_t row = uint64_t{l} * kDigits + digit;
    to = sum_before(call.totals[row], ordered.sums[1]) + call.counts[row * call.tiles + blockIdx.x];
  }
  ordered.places[digit] = to - start;
}

// body(place in the line, key, position) for each of the tile's keys, by digits, so that neighbours go side by side.
template <class U, class Body>
__device__ void for_each_ordered(const RadixPass& call, uint32_t l, const Step& step, Ordered<U>& ordered, Body body) {
  const uint32_t* positions = positions_of(call, l, step.from);
  Tile<U> tile;
  tile.load(call, keys_of<U>(call, l, step.from));
  tile.rank(call, ordered.counts[threadIdx.x / kWarp]);
  __syncthreads();
  place_digits(call, l, ordered);
  __syncthreads();
#pragma unroll
  for (uint32_t k = 0; k < kItems<U>; ++k) {
    tile.ranks[k] = ordered.counts[threadIdx.x / kWarp][tile.ranks[k] >> 16] + (tile.ranks[k] & 0xffff);
    if (k < tile.count) ordered.keys[tile.ranks[k]] = tile.keys[k];
  }
#pragma unroll
  for (uint32_t k = 0; k < kItems<U>; ++k) {
    const uint32_t i = tile.first + k * kWarp;
    if (k < tile.count) ordered.positions[tile.ranks[k]] = step.first ? i : positions[i];
  }
  __syncthreads();
  const uint32_t count = min(kTileKeys<U>, call.length - blockIdx.x * kTileKeys<U>);
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < count; i += kThreads)
    body(ordered.places[digit_of(ordered.keys[i], call.number * kDigitBits)] + i, ordered.keys[i],
         ordered.positions[i]);
  __syncthreads();
}

template <class U>
__device__ void move_keys(const RadixPass& call) {
  __shared__ Ordered<U> ordered;
  for (uint32_t l = blockIdx.y; l < call.lines; l += gridDim.y) {
    const Step step = step_of(call, l);
    if (!step.wanted) continue;
    U* keys = keys_of<U>(call, l, 1 - step.from);
    uint32_t* positions = positions_of(call, l, 1 - step.from);
    for_each_ordered(call, l, step, ordered, [&](uint32_t to, U key, uint32_t position) {
      keys[to] = key;
      positions[to] = position;
    });
  }
}

// The last pass of argsort.
template <class U>
__device__ void write_positions(const RadixPass& call, const Sorting& sorting) {
  __shared__ Ordered<U> ordered;
  for (uint32_t l = blockIdx.y; l < call.lines; l += gridDim.y) {
    const Step step = step_of(call, l);
    char* out = sorting.out + place(sorting.lines, l).out;
    const auto write = [&](uint32_t to, uint32_t position) {
      *reinterpret_cast<int64_t*>(out + to * sorting.out_step) = position;
    };
    if (step.wanted) {
      for_each_ordered(call, l, step, ordered, [&](uint32_t to, U, uint32_t position) { write(to, position); });
      continue;
    }
    const uint32_t* positions = positions_of(call, l, step.from);
    for (uint32_t i = first_index(); i < call.length; i += index_step()) write(i, step.first ? i : positions[i]);
  }
}

}  // namespace
}  // namespace backplane::cuda

using namespace backplane::cuda;

#define BP_CUDA_RADIX(width, U)                                                                                     \
  extern "C" __global__ void make_keys_##width(const __grid_constant__ Sorting call,                                \
                                               const __grid_constant__ KeyMaking making) {                          \
    make_keys<U>(call, making);                                                                                     \
  }                                                                                                                 \
  extern "C" __global__ __launch_bounds__(kThreads) void count_digits_##width(                                      \
      const __grid_constant__ RadixPass call) {                                                                     \
    count_digits<U>(call);                                                                                          \
  }                                                                                                                 \
  extern "C" __global__ __launch_bounds__(kThreads,                                                                 \
                                          kBlocks) void move_keys_##width(const __grid_constant__ RadixPass call) { \
    move_keys<U>(call);                                                                                             \
  }                                                                                                                 \
  extern "C" __global__ __launch_bounds__(kThreads, kBlocks) void write_positions_##width(                          \
      const __grid_constant__ RadixPass call, const __grid_constant__ Sorting sorting) {                            \
    write_positions<U>(call, sorting);                                                                              \
  }
BP_CUDA_RADIX(1, uint8_t)
BP_CUDA_RADIX(2, uint16_t)
BP_CUDA_RADIX(4, uint32_t)
BP_CUDA_RADIX(8, uint64_t)

extern "C" __global__ void sum_counts(const __grid_constant__ RadixPass call) { backplane::cuda::sum_counts(call); }
extern "C" __global__ void clear_words(uint64_t* words, uint32_t count) {
  for (uint32_t i = first_index(); i < count; i += index_step()) words[i] = 0;
}
