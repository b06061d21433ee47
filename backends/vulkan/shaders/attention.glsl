// Attention and its gradients without a matrix of scores (Dao and others, FlashAttention, 2022): an invocation has
// kDown rows and meets the others, kTile at a time. What it weighs them with, it adds them up by, kFeatures
// features in one go; more features are slices, each of which makes the weights anew.
//
// kFunction 0: rows are queries, others keys, and values are added up. The largest score so far is the reference of the
// exponentials; what was added shrinks when it grows. 1: the query's gradient, of keys, with weights that lse gives
// again. 2, 3: rows are keys, others queries: the key's gradient, of queries, and the value's, of cotangents.
// kOption, bits 0 and 1, 2 and 3: the binary logarithms of kDown and kParts; 4, 5: what is multiplied, and what is
// added up with the result, have two features in an aligned word; 6, 7: the mask is of bools, or added.
//
// n: rows, others, features of a query, of a value and of the result; matrices, slices, rank of the batch; causal;
// 9, 10: scale. dims: per operand, in the order below, an address and two strides, from row to row and along it (of the
// mask from other to other); then rows with their strides of the batch.
//
// A variant includes this behind kLanes (of a block), kDown, kBlockRows, kTile, kParts, kPart and OVER_TILE (how loops
// over others with much in them run), and adds how others reach all lanes.

const uint kValues = 0, kQueryGrad = 1, kKeyGrad = 2, kValueGrad = 3;
const bool kRowsAreQueries = kFunction == kValues || kFunction == kQueryGrad;
const bool kHasSlopes = kFunction == kQueryGrad || kFunction == kKeyGrad;
const bool kProductPairs = (kOption & 16u) != 0u, kSumPairs = (kOption & 32u) != 0u;
const bool kBoolMask = (kOption & 64u) != 0u, kAddedMask = (kOption & 128u) != 0u;
const uint kFeatures = kParts * kPart;
const uint kWidth = kProductPairs ? 2u : 1u;

// Slopes are of the cotangent with the value: the second rows and others.
const uint kResult = 0, kRow = 1, kOther = 2, kSummed = 3, kSecondRow = 4, kSecondOther = 5, kMask = 6, kLse = 7;
const uint kDelta = 8, kOperands = 9;

struct Lines {
  uint64_t at;
  int step, along;
};
Lines given[kOperands];     // of the first matrix of the batch
Lines operands[kOperands];  // of the one at hand
T totals[kDown][kParts][kPart];  // features as feature_of says
T row_lse[kDown], row_delta[kDown];
T reference[kDown], total[kDown];  // of a query: the largest score and the sum of exponentials relative to it

// Adds the products of the lane's rows, the first of which is `row`, and of the tile's others along `inner` features.
void add_products(inout T products[kDown][kTile], Lines rows, Lines others, uint inner, uint row, uint tile);
// Adds to totals the tile's others, features from `feature` on, times the weights that scores and slopes give.
void add_others(T scores[kDown][kTile], T slopes[kDown][kTile], Lines others, uint tile, uint feature);
// An element for each of the tile's others.
void of_others(Lines line, uint tile, out T elements[kTile]);
uint feature_of(uint part, uint m);  // of a slice
uint lane();
uint first_block();
uint all_blocks();

uint64_t line_of(Lines lines, uint i) { return element(lines.at, int(i) * lines.step, kIn); }
uint row_count() { return n[0]; }
uint other_count() { return n[1]; }
bool is_causal() { return n[8] != 0u; }
uint row_of(uint first, uint a) { return first + a * kLanes + lane(); }

T infinity() { return T(bp_inf_float32()); }
T scale() {
#ifdef BACKPLANE_FLOAT64
  return packDouble2x32(uvec2(n[9], n[10]));
#else
  return uintBitsToFloat(n[9]);
#endif
}
T exponential(T x) { return JOIN(bp_exp_, CLASS)(x); }

void receive_operands() {
  [[unroll]] for (uint k = 0u; k < kOperands; ++k) {
    const uint64_t from = dims + uint64_t(16u * k);
    given[k] = Lines(Ref64(from).v, Ints(from + 8ul).v[0], Ints(from + 8ul).v[1]);
  }
}
void enter_matrix(uint i) {
  [[unroll]] for (uint k = 0u; k < kOperands; ++k) operands[k] = given[k];
  const uint64_t rows = dims + uint64_t(16u * kOperands);
  for (uint d = 0u; d < n[7]; ++d) {
    Ints row = Ints(rows + uint64_t(d * (kOperands + 3u)) * 4ul);
    const uint outer = quotient(i, uint(row.v[1]), uint(row.v[2]));
    const int index = int(i - outer * uint(row.v[0]));
    i = outer;
    [[unroll]] for (uint k = 0u; k < kOperands; ++k) {
      const uint format = k == kMask && kBoolMask ? kBool : kIn;
      operands[k].at = element(operands[k].at, index * row.v[k + 3u], format);
    }
  }
}

// -inf: the query does not attend to the key.
T score(T product, uint row, uint other) {
  const uint query = kRowsAreQueries ? row : other, key = kRowsAreQueries ? other : row;
  if (other >= other_count() || (is_causal() && key > query)) return -infinity();
  const T scaled = product * scale();
  const int place = int(min(row, row_count() - 1u)) * operands[kMask].step + int(other) * operands[kMask].along;
  if (kBoolMask) return load_bool(element(operands[kMask].at, place, kBool), kBool) ? scaled : -infinity();
  return kAddedMask ? scaled + LOAD(element(operands[kMask].at, place, kIn), kIn) : scaled;
}

void score_tile(inout T scores[kDown][kTile], uint first, uint tile) {
  if (kBoolMask || kAddedMask) {
    OVER_TILE for (uint l = 0u; l < kTile; ++l)
      [[unroll]] for (uint a = 0u; a < kDown; ++a) scores[a][l] = score(scores[a][l], row_of(first, a), tile + l);
  } else {
    [[unroll]] for (uint a = 0u; a < kDown; ++a)
      [[unroll]] for (uint l = 0u; l < kTile; ++l) scores[a][l] = score(scores[a][l], row_of(first, a), tile + l);
  }
}

// What the exponentials of a query's scores are relative to. None so far: 0.
T low_of(uint a) { return reference[a] == -infinity() ? T(0) : reference[a]; }

// Lets references grow with the scores.
void follow(T scores[kDown][kTile]) {
  [[unroll]] for (uint a = 0u; a < kDown; ++a) {
    T top = reference[a];
    [[unroll]] for (uint l = 0u; l < kTile; ++l) top = scores[a][l] > top ? scores[a][l] : top;
    if (top == reference[a]) continue;
    const T shrink = exponential(reference[a] - top);
    reference[a] = top;
    total[a] *= shrink;
    [[unroll]] for (uint b = 0u; b < kParts; ++b)
      [[unroll]] for (uint m = 0u; m < kPart; ++m) totals[a][b][m] *= shrink;
  }
}

// What the lane's row number `a` weighs an other with. A query without keys has the logarithm -inf.
T weight_of(uint a, T score, T slope, T other_lse, T other_delta) {
  if (kFunction == kValues) {
    const T weight = exponential(score - low_of(a));
    total[a] += weight;
    return weight;
  }
  const T lse = kRowsAreQueries ? row_lse[a] : other_lse;
  const T weight = exponential(score - (lse == -infinity() ? infinity() : lse));
  return kHasSlopes ? weight * ((slope - (kRowsAreQueries ? row_delta[a] : other_delta)) * scale()) : weight;
}

void meet(uint first, uint tile, uint feature) {
  T scores[kDown][kTile], slopes[kDown][kTile];
  [[unroll]] for (uint a = 0u; a < kDown; ++a)
    [[unroll]] for (uint l = 0u; l < kTile; ++l) scores[a][l] = slopes[a][l] = T(0);
  add_products(scores, operands[kRow], operands[kOther], n[2], first, tile);
  if (kHasSlopes) add_products(slopes, operands[kSecondRow], operands[kSecondOther], n[3], first, tile);
  score_tile(scores, first, tile);
  if (kFunction == kValues) follow(scores);
  add_others(scores, slopes, operands[kSummed], tile, feature);
}

void write_rows(uint first, uint feature) {
  [[unroll]] for (uint a = 0u; a < kDown; ++a) {
    const uint row = row_of(first, a);
    if (row >= row_count()) continue;
    const T by = kFunction == kValues && total[a] != T(0) ? T(1) / total[a] : T(1);
    const uint64_t to = line_of(operands[kResult], row);
    [[unroll]] for (uint b = 0u; b < kParts; b += kSumPairs ? 2u : 1u)
      [[unroll]] for (uint m = 0u; m < kPart; ++m) {
        const uint f = feature + feature_of(b, m);
        if (f >= n[4]) continue;
        const uint64_t address = element(to, int(f) * operands[kResult].along, kIn);
        if (kSumPairs)
          store_pair(address, totals[a][b][m] * by, totals[a][b + 1u][m] * by);
        else
          store(address, kIn, totals[a][b][m] * by);
      }
    if (kFunction == kValues && feature == 0u && operands[kLse].at != 0ul)
      store(line_of(operands[kLse], row), kIn, low_of(a) + JOIN(bp_log_, CLASS)(total[a]));
  }
}

void main() {
  receive();
  receive_operands();
  const uint slices = n[6], tiles = (row_count() + kBlockRows - 1u) / kBlockRows;
  for (uint i = first_block(); i < tiles * slices * n[5]; i += all_blocks()) {
    const uint feature = i % slices * kFeatures, first = i / slices % tiles * kBlockRows;
    enter_matrix(i / slices / tiles);
    [[unroll]] for (uint a = 0u; a < kDown; ++a) {
      reference[a] = -infinity();
      total[a] = T(0);
      const uint row = min(row_of(first, a), row_count() - 1u);
      if (kFunction == kQueryGrad) row_lse[a] = LOAD(line_of(operands[kLse], row), kIn);
      if (kFunction == kQueryGrad) row_delta[a] = LOAD(line_of(operands[kDelta], row), kIn);
      [[unroll]] for (uint b = 0u; b < kParts; ++b)
        [[unroll]] for (uint m = 0u; m < kPart; ++m) totals[a][b][m] = T(0);
    }
    const uint begin = is_causal() && !kRowsAreQueries ? first / kTile * kTile : 0u;
    const uint end = is_causal() && kRowsAreQueries ? min(first + kBlockRows, other_count()) : other_count();
    for (uint tile = begin; tile < end; tile += kTile) meet(first, tile, feature);
    write_rows(first, feature);
  }
}
