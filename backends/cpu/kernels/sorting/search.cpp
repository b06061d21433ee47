// searchsorted: places of elements in a sorted vector. isin_vector: are elements in a vector?
//
// Elements are compared by their sorting keys, in which NaN is largest and zeros of both signs are equal.
#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/families.hpp"
#include "kernels/sorting/sort_keys.hpp"
#include "loops/elementwise.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

// Elements as they are compared: a bool is true by any byte but 0.
template <class T>
using Compared = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
template <class T>
using KeyOf = SortKey<Compared<T>>;

template <class T>
KeyOf<T> key_at(const char* x, int64_t i) {
  if constexpr (std::is_same_v<T, bool>)
    return tie_key<uint8_t>(x[i] != 0);
  else
    return tie_key(reinterpret_cast<const T*>(x)[i]);
}
template <class T>
constexpr bool is_nan_key(KeyOf<T> key) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return key > sort_key(std::bit_cast<T>(kInfinityBits<T>));
}

int64_t count_of(const bp_tensor* t) { return static_cast<int64_t>(t->nbytes / plugin::kItemSize[t->dtype]); }

template <class T>
void read_all(const bp_tensor* values, int64_t n, KeyOf<T>* keys) {
  for (int64_t i = 0; i < n; ++i) keys[i] = key_at<T>(data_of(values), i);
}

// The steps of a search among n keys: powers of two from the greatest down.
inline int64_t first_step(int64_t n) { return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n))); }

// How many of n ascending keys are below `key`, or (Right) not above it. Without branches: the order of the searched
// elements decides nothing that a processor could predict.
template <bool Right, class Key>
[[gnu::always_inline]] inline int64_t place_of(Key key, const Key* keys, int64_t n, int64_t step) {
  int64_t place = 0;
  for (; step > 0; step /= 2) {
    const int64_t next = place + step;
    const Key at = keys[std::min(next, n) - 1];
    place = ((next <= n) & (Right ? at <= key : at < key)) != 0 ? next : place;
  }
  return place;
}

int64_t grain_of_search(int64_t n) { return std::max<int64_t>(kCheapGrain / (4 + 4 * std::bit_width<uint64_t>(n)), 1); }

template <class T, bool Right>
void search(const bp_frame* frame, const bp_tensor* sorted, const bp_tensor* x, const bp_tensor* out) {
  const int64_t n = sorted->dl.shape[0], count = count_of(x);
  const Scratch<KeyOf<T>> keys(n);
  read_all<T>(sorted, n, keys.get());
  const int64_t step = first_step(n);
  const char* from = data_of(x);
  auto* to = reinterpret_cast<int64_t*>(data_of(out));
  plugin::parallel_for(frame, 0, count, grain_of_search(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = place_of<Right>(key_at<T>(from, i), keys.get(), n, step);
  });
}

// A set of keys as one bit for each number from the least key to the greatest.
template <class Key>
class BitSet {
 public:
  BitSet(const Key* keys, int64_t n, Key least, Key greatest) : least_(least), words_((greatest - least) / 64 + 1) {
    std::fill_n(words_.get(), (greatest - least) / 64 + 1, uint64_t{0});
    for (int64_t i = 0; i < n; ++i) words_.get()[(keys[i] - least) / 64] |= uint64_t{1} << ((keys[i] - least) % 64);
    span_ = greatest - least;
  }
  bool has(Key key) const {
    const auto at = static_cast<Key>(key - least_);
    return at <= span_ && (words_.get()[at / 64] >> (at % 64) & 1) != 0;
  }

 private:
  Key least_, span_;
  Scratch<uint64_t> words_;
};

// A set of keys with open addressing, at most half full. A free place holds the first key: who finds that is right
// where he looks for it, and else knows that his own is missing.
template <class Key>
class HashSet {
 public:
  HashSet(const Key* keys, int64_t n)
      : bits_(std::bit_width(static_cast<uint64_t>(2 * n))), places_(int64_t{1} << bits_), free_(keys[0]) {
    std::fill_n(places_.get(), int64_t{1} << bits_, free_);
    for (int64_t i = 0; i < n; ++i) *place(keys[i]) = keys[i];
  }
  bool has(Key key) const { return *place(key) == key; }

 private:
  // Where the key lies, or the free place where it would.
  Key* place(Key key) const {
    const uint64_t mask = (uint64_t{1} << bits_) - 1;
    uint64_t at = static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15u >> (64 - bits_);
    while (places_.get()[at] != key && places_.get()[at] != free_) at = (at + 1) & mask;
    return places_.get() + at;
  }

  int bits_;
  Scratch<Key> places_;
  Key free_;
};

// Up to 16 keys are compared with all elements, a block at a time, so that the loops vectorise.
constexpr int64_t kFewKeys = 16, kKeyBlock = 512;
template <class T>
void compare_all(const bp_frame* frame, const bp_tensor* x, const bp_tensor* out, const KeyOf<T>* keys, int64_t n) {
  const char* from = data_of(x);
  char* to = data_of(out);
  plugin::parallel_for(frame, 0, count_of(x), kCheapGrain / 8, [&](int64_t begin, int64_t end) {
    KeyOf<T> block[kKeyBlock], hits[kKeyBlock];
    for (int64_t first = begin; first < end; first += kKeyBlock) {
      const int64_t some = std::min(kKeyBlock, end - first);
      for (int64_t i = 0; i < some; ++i) block[i] = key_at<T>(from, first + i);
      std::fill_n(hits, some, KeyOf<T>{0});
      for (int64_t k = 0; k < n; ++k)
        for (int64_t i = 0; i < some; ++i) hits[i] |= block[i] == keys[k];
      for (int64_t i = 0; i < some; ++i) to[first + i] = static_cast<char>(hits[i]);
    }
  });
}

template <class T, class Set>
void look_up(const bp_frame* frame, const bp_tensor* x, const bp_tensor* out, const Set& set) {
  const char* from = data_of(x);
  char* to = data_of(out);
  plugin::parallel_for(frame, 0, count_of(x), kCheapGrain / 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const KeyOf<T> key = key_at<T>(from, i);
      to[i] = static_cast<char>(!is_nan_key<T>(key) && set.has(key));
    }
  });
}

template <class T>
void is_in(const bp_frame* frame, const bp_tensor* x, const bp_tensor* values, const bp_tensor* out) {
  using Key = KeyOf<T>;
  const int64_t count = count_of(x);
  int64_t n = values->dl.shape[0];
  const Scratch<Key> keys(n);
  read_all<T>(values, n, keys.get());
  n = std::remove_if(keys.get(), keys.get() + n, is_nan_key<T>) - keys.get();
  if (n == 0) {
    std::memset(data_of(out), 0, static_cast<size_t>(count));
    return;
  }
  const auto [least, greatest] = std::minmax_element(keys.get(), keys.get() + n);
  if (*greatest - *least <= 65536 + 8 * static_cast<uint64_t>(count))
    look_up<T>(frame, x, out, BitSet<Key>(keys.get(), n, *least, *greatest));
  else if (n <= kFewKeys)
    compare_all<T>(frame, x, out, keys.get(), n);
  else
    look_up<T>(frame, x, out, HashSet<Key>(keys.get(), n));
}

constexpr bp_dtype_mask kReal = BP_MASK_ANY & ~BP_MASK_COMPLEX;

// isin_vector(Tensor x, Tensor values), of contiguous tensors.
bp_status BP_CALL isin_vector(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *values = plugin::as_tensor(args[1]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    plugin::dispatch_dtype<kReal>(x->dtype, [&]<class T>() { is_in<T>(frame, x, values, out); });
  });
}

// searchsorted(Tensor x1, Tensor x2, str side, *, Tensor? sorter), of contiguous tensors and no sorter.
bp_status BP_CALL searchsorted(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *sorted = plugin::as_tensor(args[0]), *x = plugin::as_tensor(args[1]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    const bool right = std::strcmp(args[2].u.s, "right") == 0;
    plugin::dispatch_dtype<kReal>(x->dtype, [&]<class T>() {
      if (right)
        search<T, true>(frame, sorted, x, out);
      else
        search<T, false>(frame, sorted, x, out);
    });
  });
}

bp_status BP_CALL supports_no_sorter(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  if (args[3].tag == BP_TAG_ABSENT) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "takes no sorter");
  return BP_ERROR_NOT_IMPLEMENTED;
}

}  // namespace

const Family kSearch([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::isin_vector", "cpu", isin_vector, .dtypes = kReal));
  registrar.kernel(BP_KERNEL("bp::searchsorted", "cpu", searchsorted, .dtypes = kReal, .supports = supports_no_sorter));
});

}  // namespace backplane::cpu
