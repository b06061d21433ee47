// attention_with_lse and attention_grad, block by block: scores of one block of queries with one block of keys exist at
// a time, so memory beside the operands does not grow with the product of the lengths.
//
// Forward (Dao and others, FlashAttention, 2022): a row keeps the largest score and the sum of exponentials that it has
// seen, and scales its sums down when a larger score comes. Backward makes the weights again from the saved
// logarithm of that sum. Half floats are computed in float32. Operands may have any strides.
#include <cmath>
#include <cstring>

#include "kernels/families.hpp"
#include "kernels/nn/attention_operands.hpp"
#include "kernels/nn/attention_rows.hpp"

namespace backplane::cpu {
namespace {

constexpr int64_t kQueries = 256, kKeys = 256;  // a block of float32 scores is 256 KiB
// Multiply-adds of a piece: about 20 microseconds.
constexpr int64_t kPieceWork = int64_t{1} << 20;

struct Attention {
  HeadTensor query, key, value, mask;
  std::vector<int64_t> batch;
  int64_t count = 1, queries, keys, features, value_features;
  bool causal;
  double scale;

  int64_t work() const { return kQueries * keys * (features + value_features); }
  // Keys that any of the queries before `end` attends to.
  int64_t keys_before(int64_t end) const { return causal ? std::min(keys, end) : keys; }
  // Of a block of keys from `first`, how many `query` attends to.
  int64_t visible(int64_t query, int64_t first, int64_t n) const {
    return causal ? std::clamp<int64_t>(query - first + 1, 0, n) : n;
  }
};

// Every batch dim of t must be 1 or equal to the result's.
void check_batch(const bp_frame* frame, const char* name, const HeadTensor& t, const std::vector<int64_t>& batch) {
  BP_CHECK(t.missing >= 0, SHAPE, frame->op->name, ": '", name, "' has ", t.batch_ndim,
           " batch dims, expected at most ", batch.size());
  for (int32_t d = 0; d < t.batch_ndim; ++d)
    BP_CHECK(t.shape[d] == 1 || t.shape[d] == batch[static_cast<size_t>(d + t.missing)], SHAPE, frame->op->name, ": '",
             name, "' has size ", t.shape[d], " along batch dim ", d + t.missing, ", expected 1 or ",
             batch[static_cast<size_t>(d + t.missing)]);
}

// (query, key, value, mask) at args[0, 1, 2], args[mask]; `options`: causal, scale. `like` has the result's batch dims,
// followed by `cores` axes.
Attention attention_of(const bp_frame* frame, const bp_value* args, const bp_value& mask, const bp_value* options,
                       const bp_tensor* like, int32_t cores) {
  const bp_tensor *q = plugin::as_tensor(args[0]), *k = plugin::as_tensor(args[1]), *v = plugin::as_tensor(args[2]);
  Attention a;
  const int32_t rank = like->dl.ndim - cores;
  BP_CHECK(q->dl.ndim >= 2 && k->dl.ndim >= 2 && v->dl.ndim >= 2, SHAPE, frame->op->name,
           ": found query, key and value with ", q->dl.ndim, ", ", k->dl.ndim, " and ", v->dl.ndim,
           " axes, expected at least 2");
  a.batch.assign(like->dl.shape, like->dl.shape + rank);
  for (int64_t size : a.batch) a.count *= size;
  a.query = HeadTensor(q, rank, 2);
  a.key = HeadTensor(k, rank, 2);
  a.value = HeadTensor(v, rank, 2);
  a.queries = a.query.rows;
  a.keys = a.key.rows;
  a.features = a.query.cols;
  a.value_features = a.value.cols;
  BP_CHECK(a.key.cols == a.features && a.value.rows == a.keys, SHAPE, frame->op->name, ": found queries of ",
           a.features, " and keys of ", a.key.cols, " features, ", a.keys, " keys and ", a.value.rows,
           " values, expected as many");
  check_batch(frame, "query", a.query, a.batch);
  check_batch(frame, "key", a.key, a.batch);
  check_batch(frame, "value", a.value, a.batch);
  if (mask.tag == BP_TAG_TENSOR) {
    a.mask = HeadTensor(mask.u.t, rank, 2);
    if (mask.u.t->dl.ndim == 1) {  // a row for all queries
      a.mask.cols = mask.u.t->dl.shape[0];
      a.mask.col_stride = mask.u.t->dl.strides[0];
    }
    BP_CHECK((a.mask.rows == 1 || a.mask.rows == a.queries) && (a.mask.cols == 1 || a.mask.cols == a.keys), SHAPE,
             frame->op->name, ": 'mask' ends in (", a.mask.rows, ", ", a.mask.cols,
             "), expected sizes that broadcast to (", a.queries, ", ", a.keys, ")");
    check_batch(frame, "mask", a.mask, a.batch);
  }
  a.causal = plugin::as_bool(options[0]);
  a.scale = options[1].tag == BP_TAG_ABSENT ? 1 / std::sqrt(static_cast<double>(std::max<int64_t>(a.features, 1)))
                                            : plugin::as_double(options[1]);
  return a;
}

template <class T>
Matrix block(T* data, int64_t rows, int64_t cols) {
  return {reinterpret_cast<char*>(data), rows, cols, cols, 1};
}
Matrix transposed(const Matrix& m) { return {m.data, m.cols, m.rows, m.col_stride, m.row_stride}; }

// The working memory of one piece of the forward pass.
template <class T>
struct ForwardScratch {
  Scratch<T> scores, sums, query, key, value, bias;
  RowState<T> states[kQueries];

  explicit ForwardScratch(const Attention& a)
      : scores(kQueries * kKeys),
        sums(kQueries * a.value_features),
        query(kQueries * a.features),
        key(kKeys * a.features),
        value(kKeys * a.value_features),
        bias(kKeys) {}
};

// Adds to the sums of `rows` queries from `first` what the keys [from, from + n) bring.
template <class T>
void absorb_keys(const Attention& a, int64_t head, const Matrix& query, int64_t first, int64_t from, int64_t n,
                 ForwardScratch<T>& s) {
  const AttentionLoops<T>& loops = attention_loops<T>();
  const int64_t rows = query.rows;
  const Matrix key = rows_as(a.key, a.key.matrix(head, a.batch), from, n, s.key.get());
  gemm(plugin::kDtypeOf<T>, query, transposed(key), block(s.scores.get(), rows, n));
  const char* mask = a.mask.data == nullptr ? nullptr : a.mask.matrix(head, a.batch);
  for (int64_t i = 0; i < rows; ++i) {
    T* row = s.scores.get() + i * n;
    const int64_t visible = a.visible(first + i, from, n);
    const T* bias = bias_of(a.mask, mask, first + i, from, visible, s.bias.get());
    const T shrink = loops.absorb(row, visible, static_cast<T>(a.scale), bias, s.states[i]);
    std::fill_n(row + visible, n - visible, T(0));
    if (from > 0 && shrink != T(1)) loops.multiply(s.sums.get() + i * a.value_features, a.value_features, shrink);
  }
  gemm(plugin::kDtypeOf<T>, block(s.scores.get(), rows, n),
       rows_as(a.value, a.value.matrix(head, a.batch), from, n, s.value.get()),
       block(s.sums.get(), rows, a.value_features), from > 0);
}

template <class T>
void forward_block(const Attention& a, int64_t head, int64_t first, const HeadTensor& values, const HeadTensor& lse,
                   ForwardScratch<T>& s) {
  const AttentionLoops<T>& loops = attention_loops<T>();
  const int64_t rows = std::min(kQueries, a.queries - first), end = a.keys_before(first + rows);
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  std::fill_n(s.states, rows, RowState<T>{kNone, T(0)});
  if (end == 0) std::fill_n(s.sums.get(), rows * a.value_features, T(0));
  const Matrix query = rows_as(a.query, a.query.matrix(head, a.batch), first, rows, s.query.get());
  for (int64_t from = 0; from < end; from += kKeys)
    absorb_keys(a, head, query, first, from, std::min(kKeys, end - from), s);
  for (int64_t i = 0; i < rows; ++i) {
    RowState<T>& state = s.states[i];
    if (state.sum != T(0)) loops.multiply(s.sums.get() + i * a.value_features, a.value_features, T(1) / state.sum);
    state.largest = state.sum == T(0) ? kNone : state.largest + std::log(state.sum);
  }
  if (values.data != nullptr) write_rows(s.sums.get(), values, values.matrix(head, a.batch), first, rows);
  if (lse.data == nullptr) return;
  char* at = lse.matrix(head, a.batch) + first * lse.row_stride * lse.item;
  cast_row(plugin::kDtypeOf<T>, reinterpret_cast<const char*>(&s.states[0].largest), sizeof(RowState<T>), lse.dtype, at,
           lse.row_stride * lse.item, rows);
}

HeadTensor wanted(const bp_value& out, int32_t rank, int32_t cores) {
  return out.tag == BP_TAG_TENSOR ? HeadTensor(out.u.t, rank, cores) : HeadTensor();
}

template <class Body>
void in_computing_type(bp_dtype dtype, Body&& body) {
  plugin::dispatch_dtype<BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64)>(
      dtype == BP_FLOAT64 ? BP_FLOAT64 : BP_FLOAT32, body);
}

// (query, key, value, mask, *, causal, scale) -> (values, lse)
bp_status BP_CALL attention(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bool first_wanted = outs[0].tag == BP_TAG_TENSOR;
    const bp_tensor* like = first_wanted ? outs[0].u.t : outs[1].u.t;
    const Attention a = attention_of(frame, args, args[3], args + 4, like, first_wanted ? 2 : 1);
    const auto rank = static_cast<int32_t>(a.batch.size());
    const HeadTensor values = wanted(outs[0], rank, 2), lse = wanted(outs[1], rank, 1);
    const int64_t blocks = (a.queries + kQueries - 1) / kQueries, pieces = a.count * blocks;
    if (pieces == 0) return;
    in_computing_type(like->dtype, [&]<class T>() {
      const auto range = [&](int64_t begin, int64_t end) {
        ForwardScratch<T> scratch(a);
        for (int64_t i = begin; i < end; ++i) forward_block(a, i / blocks, i % blocks * kQueries, values, lse, scratch);
      };
      const int64_t grain = std::max<int64_t>(kPieceWork / std::max<int64_t>(a.work(), 1), 1);
      if (pieces <= grain) return range(0, pieces);
      plugin::parallel_for(frame, 0, pieces, grain, range);
    });
  });
}

// The working memory of one head's backward pass; the gradient of its queries is summed whole.
template <class T>
struct BackwardScratch {
  Scratch<T> weights, slopes, query_grad, key_grad, value_grad, query, key, value, g, bias, lse, delta;

  explicit BackwardScratch(const Attention& a)
      : weights(kQueries * kKeys),
        slopes(kQueries * kKeys),
        query_grad(a.queries * a.features),
        key_grad(kKeys * a.features),
        value_grad(kKeys * a.value_features),
        query(kQueries * a.features),
        key(kKeys * a.features),
        value(kKeys * a.value_features),
        g(kQueries * a.value_features),
        bias(kKeys),
        lse(a.queries),
        delta(a.queries) {}
};

// What the queries [first, first + rows) bring to the gradients of a block of n keys from `from`, and it to theirs.
template <class T>
void backward_block(const Attention& a, int64_t head, const HeadTensor& cotangent, const Matrix& key,
                    const Matrix& value, int64_t from, int64_t first, BackwardScratch<T>& s) {
  constexpr bp_dtype kDtype = plugin::kDtypeOf<T>;
  const AttentionLoops<T>& loops = attention_loops<T>();
  const int64_t rows = std::min(kQueries, a.queries - first), n = key.rows;
  const Matrix query = rows_as(a.query, a.query.matrix(head, a.batch), first, rows, s.query.get());
  const Matrix g = rows_as(cotangent, cotangent.matrix(head, a.batch), first, rows, s.g.get());
  const Matrix weights = block(s.weights.get(), rows, n), slopes = block(s.slopes.get(), rows, n);
  gemm(kDtype, query, transposed(key), weights);
  gemm(kDtype, g, transposed(value), slopes);
  const char* mask = a.mask.data == nullptr ? nullptr : a.mask.matrix(head, a.batch);
  for (int64_t i = 0; i < rows; ++i) {
    T *row = s.weights.get() + i * n, *slope = s.slopes.get() + i * n;
    const int64_t visible = a.visible(first + i, from, n);
    const T* bias = bias_of(a.mask, mask, first + i, from, visible, s.bias.get());
    loops.recall(row, visible, static_cast<T>(a.scale), bias, s.lse.get()[first + i]);
    loops.slope(row, slope, visible, s.delta.get()[first + i], static_cast<T>(a.scale));
    std::fill_n(row + visible, n - visible, T(0));
    std::fill_n(slope + visible, n - visible, T(0));
  }
  gemm(kDtype, transposed(weights), g, block(s.value_grad.get(), n, a.value_features), true);
  gemm(kDtype, transposed(slopes), query, block(s.key_grad.get(), n, a.features), true);
  gemm(kDtype, slopes, key, block(s.query_grad.get() + first * a.features, rows, a.features), true);
}

struct Gradients {
  HeadTensor cotangent, lse, delta, query, key, value;
};

template <class T>
void backward_head(const Attention& a, int64_t head, const Gradients& t, BackwardScratch<T>& s) {
  const auto column = [&](const HeadTensor& from, T* to) {
    cast_row(from.dtype, from.matrix(head, a.batch), from.row_stride * from.item, plugin::kDtypeOf<T>,
             reinterpret_cast<char*>(to), sizeof(T), a.queries);
  };
  column(t.lse, s.lse.get());
  column(t.delta, s.delta.get());
  std::fill_n(s.query_grad.get(), a.queries * a.features, T(0));
  for (int64_t from = 0; from < a.keys; from += kKeys) {
    const int64_t n = std::min(kKeys, a.keys - from);
    const Matrix key = rows_as(a.key, a.key.matrix(head, a.batch), from, n, s.key.get());
    const Matrix value = rows_as(a.value, a.value.matrix(head, a.batch), from, n, s.value.get());
    std::fill_n(s.key_grad.get(), n * a.features, T(0));
    std::fill_n(s.value_grad.get(), n * a.value_features, T(0));
    const int64_t start = a.causal ? from / kQueries * kQueries : 0;
    for (int64_t first = start; first < a.queries; first += kQueries)
      backward_block(a, head, t.cotangent, key, value, from, first, s);
    if (t.key.data != nullptr) write_rows(s.key_grad.get(), t.key, t.key.matrix(head, a.batch), from, n);
    if (t.value.data != nullptr) write_rows(s.value_grad.get(), t.value, t.value.matrix(head, a.batch), from, n);
  }
  if (t.query.data != nullptr) write_rows(s.query_grad.get(), t.query, t.query.matrix(head, a.batch), 0, a.queries);
}

// (query, key, value, cotangent, lse, delta, mask, *, causal, scale) -> (query_grad, key_grad, value_grad), parallel
// over heads
bp_status BP_CALL attention_grad(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *g = plugin::as_tensor(args[3]), *lse = plugin::as_tensor(args[4]);
    const bp_tensor* delta = plugin::as_tensor(args[5]);
    BP_CHECK(g->dl.ndim >= 2, SHAPE, frame->op->name, ": 'cotangent' has ", g->dl.ndim, " axes, expected at least 2");
    const Attention a = attention_of(frame, args, args[6], args + 7, g, 2);
    const auto rank = static_cast<int32_t>(a.batch.size());
    const Gradients t{HeadTensor(g, rank, 2),   HeadTensor(lse, rank, 1), HeadTensor(delta, rank, 1),
                      wanted(outs[0], rank, 2), wanted(outs[1], rank, 2), wanted(outs[2], rank, 2)};
    BP_CHECK(t.cotangent.rows == a.queries && t.cotangent.cols == a.value_features && t.lse.rows == a.queries &&
                 t.delta.rows == a.queries,
             SHAPE, frame->op->name, ": 'cotangent', 'lse' and 'delta' are not of the shapes of attention's results");
    check_batch(frame, "lse", t.lse, a.batch);
    check_batch(frame, "delta", t.delta, a.batch);
    in_computing_type(g->dtype, [&]<class T>() {
      const auto range = [&](int64_t begin, int64_t end) {
        BackwardScratch<T> scratch(a);
        for (int64_t head = begin; head < end; ++head) backward_head(a, head, t, scratch);
      };
      const int64_t work = std::max<int64_t>(a.queries * a.keys * (3 * a.features + 2 * a.value_features), 1);
      const int64_t grain = std::max<int64_t>(kPieceWork / work, 1);
      if (a.count <= grain) return range(0, a.count);
      plugin::parallel_for(frame, 0, a.count, grain, range);
    });
  });
}

}  // namespace

const Family kAttention([](const Registrar& registrar) {
  registrar.kernel(
      BP_KERNEL("bp::attention_with_lse", "cpu", attention, .dtypes = BP_MASK_FLOATING, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(
      BP_KERNEL("bp::attention_grad", "cpu", attention_grad, .dtypes = BP_MASK_FLOATING, .flags = BP_KERNEL_STRIDED));
});

}  // namespace backplane::cpu
