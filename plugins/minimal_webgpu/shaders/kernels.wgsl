// The kernels. runtime/shaders.cpp copies into each module what its kernel calls, from this file, from the scalar functions
// of the registry and from what it writes itself for the dtypes at hand:
//
//   Element, Result            the types in which an element is computed, as it is read and as it is written
//   element_size, result_size  bytes of an element in memory
//   element_K(at), store(at)   of operand K at byte `at` of its block; the result is operand 0
//   raw_K(at), store_raw(at)   the same, for elements that are only moved
//   word_K(at), put_word(at)   the same, for words of 32 bits, counted in words
//   join, second, …            functions of the registry
//
// Positions, sizes and offsets have 32 bits: no block has 2^31 bytes.

struct Arguments {
  at: vec4<u32>,               // where the operands begin in their blocks, in bytes
  n: array<vec2<u32>, 6>,      // numbers, the low word first; what they mean stands at the kernel
  items: u32,                  // how many there are to do
  fault: u32,                  // the word of `faults` that is set where data are bad
  rank: vec2<u32>,             // dimensions of the first loop and of the second one
  rows: array<array<i32, 5>>,  // a size, then the bytes of a step in each operand; the last dimension moves first
}

fn size_at(k: u32) -> u32 { return call.n[k].x; }
fn place(operand: u32, offset: i32) -> u32 { return call.at[operand] + u32(offset); }
fn report() { atomicStore(&faults[call.fault], 1u); }

// Byte offsets of the operands at position i of the first loop (0) or the second one (1).
fn offsets_of(i: u32, which: u32) -> vec4<i32> {
  let first = select(0u, call.rank.x, which == 1u);
  var left = i;
  var offsets = vec4<i32>(0, 0, 0, 0);
  for (var d = call.rank[which]; d > 0u; d--) {
    let row = first + d - 1u;
    let size = u32(call.rows[row][0]);
    let steps = vec4<i32>(call.rows[row][1], call.rows[row][2], call.rows[row][3], call.rows[row][4]);
    offsets += i32(left % size) * steps;
    left /= size;
  }
  return offsets;
}

// Of a result of an int64 position, which is not negative.
fn put_position(at: u32, position: u32) {
  put_word(at >> 2u, position);
  put_word((at >> 2u) + 1u, 0u);
}

fn kernel_unary(i: u32) {
  let o = offsets_of(i, 0u);
  store(place(0u, o.x), unary_of(element_1(place(1u, o.y))));
}

// From a complex number to a real one: the absolute value.
fn kernel_real_of(i: u32) {
  let o = offsets_of(i, 0u);
  store(place(0u, o.x), bp_abs_complex64(element_1(place(1u, o.y))));
}

// n, of integers: 1: a y of 0 is bad data; 2: a y below 0 is.
fn kernel_binary(i: u32) {
  let o = offsets_of(i, 0u);
  let y = element_2(place(2u, o.z));
  if ((size_at(0u) == 1u && is_zero(y)) || (size_at(0u) == 2u && is_negative(y))) { report(); }
  store(place(0u, o.x), join(element_1(place(1u, o.y)), y));
}

fn kernel_compare(i: u32) {
  let o = offsets_of(i, 0u);
  store(place(0u, o.x), compared(element_1(place(1u, o.y)), element_2(place(2u, o.z))));
}

fn kernel_complex_of(i: u32) {
  let o = offsets_of(i, 0u);
  store(place(0u, o.x), bp_complex_from_float32(element_1(place(1u, o.y)), element_2(place(2u, o.z))));
}

fn kernel_convert(i: u32) {
  let o = offsets_of(i, 0u);
  store(place(0u, o.x), cast_of(element_1(place(1u, o.y))));
}

// n: the bits of the start, and of the step.
fn kernel_count(i: u32) {
  store(call.at.x + i * result_size, cast_of(counted(i, element_of(0u), element_of(2u))));
}

// An item per segment of a result. The first loop: results, with the operands out and x; the second one: the n[0]
// elements of each. n[1], n[2]: segments of a result, elements of a segment; of one segment its total is the result, else
// the totals lie one after the other. n[3], n[4]: the bits of what the fold begins with.
fn kernel_fold(i: u32) {
  let segments = size_at(1u);
  let begin = (i % segments) * size_at(2u);
  let end = min(begin + size_at(2u), size_at(0u));
  let result = offsets_of(i / segments, 0u);
  var total = start_of(3u);
  for (var k = begin; k < end; k++) {
    total = join(total, element_1(place(1u, result.y + offsets_of(k, 1u).x)));
  }
  store(select(place(0u, result.x), call.at.x + i * result_size, segments > 1u), total);
}

// Along an axis, n: length of a line, elements between two of a line; begin and end of the part of the line that this
// launch goes through, after those before it. Where the item's line begins:
fn line_start(i: u32) -> u32 { return i / size_at(1u) * size_at(0u) * size_at(1u) + i % size_at(1u); }

fn kernel_running(i: u32) {
  let first = line_start(i);
  let begin = size_at(2u);
  var carry: Element;
  var total: Element;
  if (begin > 0u) { carry = element_0(call.at.x + (first + (begin - 1u) * size_at(1u)) * result_size); }
  for (var k = begin; k < size_at(3u); k++) {
    let here = first + k * size_at(1u);
    let next = element_1(call.at.y + here * element_size);
    if (k == begin) { total = next; } else { total = join(total, next); }
    if (begin > 0u) { store(call.at.x + here * result_size, join(carry, total)); }
    else { store(call.at.x + here * result_size, total); }
  }
}

fn kernel_arg_extreme(i: u32) {
  let first = line_start(i);
  let result = call.at.x + i * 8u;
  var position = 0u;
  if (size_at(2u) > 0u) { position = word_0(result >> 2u); }
  var best = element_1(call.at.y + (first + position * size_at(1u)) * element_size);
  for (var k = size_at(2u); k < size_at(3u); k++) {  // strictly better, or the first NaN
    let next = element_1(call.at.y + (first + k * size_at(1u)) * element_size);
    if (is_same(best, best) && !is_same(join(best, next), best)) {
      best = next;
      position = k;
    }
  }
  put_position(result, position);
}

// Whether x stands before y in the order asked for. n[2]: 1: descending.
fn goes_first(x: Element, y: Element) -> bool {
  if (size_at(2u) != 0u) { return is_before(y, x); }
  return is_before(x, y);
}

// A pass of a stable merge sort, an item per element: two sorted runs of n[3] elements become one. An element goes as far
// behind the start of its own run as elements of the other run stand before it. Operands: sorted positions, x, those
// before.
fn sorted_before(first: u32, k: u32) -> u32 {
  if (size_at(3u) == 1u) { return k; }
  return word_2((call.at.z >> 2u) + (first + k * size_at(1u)) * 2u);
}
fn key_of(first: u32, position: u32) -> Element {
  return element_1(call.at.y + (first + position * size_at(1u)) * element_size);
}
fn kernel_merge(i: u32) {
  let length = size_at(0u);
  let inner = size_at(1u);
  let width = size_at(3u);
  let k = i / inner % length;
  let first = i - k * inner;
  let begin = k - k % (2u * width);
  let middle = min(begin + width, length);
  let end = min(middle + width, length);
  let is_left = k < middle;
  let position = sorted_before(first, k);
  let other = select(begin, middle, is_left);
  let own = key_of(first, position);
  var low = other;
  var high = select(middle, end, is_left);
  while (low < high) {
    let split = (low + high) / 2u;
    let theirs = key_of(first, sorted_before(first, split));
    let stands_before = select(!goes_first(own, theirs), goes_first(theirs, own), is_left);
    if (stands_before) { low = split + 1u; } else { high = split; }
  }
  let to = begin + (k - select(middle, begin, is_left)) + (low - other);
  put_position(call.at.x + (first + to * inner) * 8u, position);
}

// An item per element of the result (stack..., rows, columns). n: rows, depth, columns; begin and end of the part of the
// depth that this launch adds to the result.
fn kernel_product(i: u32) {
  let depth = size_at(1u);
  let columns = size_at(2u);
  let column = i % columns;
  let row = i / columns % size_at(0u);
  let o = offsets_of(i / columns / size_at(0u), 0u);
  let result = place(0u, o.x) + (row * columns + column) * result_size;
  var sum: Element;
  if (size_at(3u) > 0u) { sum = element_0(result); }
  var part: Element;
  for (var d = size_at(3u); d < size_at(4u); d++) {
    part = second(part, join(element_1(place(1u, o.y) + (row * depth + d) * element_size),
                             element_2(place(2u, o.z) + (d * columns + column) * element_size)));
  }
  if (size_at(3u) > 0u) { part = second(sum, part); }
  store(result, part);
}

// Adds to the byte offset of each joint position what the index of one axis asks for. n: size and stride of the axis.
fn kernel_add_positions(i: u32) {
  let o = offsets_of(i, 0u);
  var index = index_of(element_1(place(1u, o.y)), i32(size_at(0u)));
  if (index < 0) {
    report();
    index = 0;
  }
  let to = place(0u, o.x) >> 2u;
  put_word(to, word_0(to) + u32(index) * size_at(1u));
}

fn kernel_move(i: u32) {
  let o = offsets_of(i, 0u);
  store_raw(place(0u, o.x), raw_1(place(1u, o.y)));
}

fn kernel_choose(i: u32) {
  let o = offsets_of(i, 0u);
  let at = place(1u, o.y);
  let holds = extractBits(word_1(at >> 2u), (at & 3u) * 8u, 8u) != 0u;
  if (holds) { store_raw(place(0u, o.x), raw_2(place(2u, o.z))); }
  else { store_raw(place(0u, o.x), raw_3(place(3u, o.w))); }
}

// n: the bits of the element.
fn kernel_fill(i: u32) { store_raw(call.at.x + i * result_size, bits_of(0u)); }

// Of the two that follow the first loop is over the joint positions of the indices, the second over what is kept; its
// operands are the selected elements, then the indexed ones. Operands: result, the other one, offsets of the joint
// positions. n: positions of the inner loop.
fn joint_offset(j: u32) -> i32 { return i32(word_2((call.at.z >> 2u) + j * 2u)); }
fn kernel_gather(i: u32) {
  let joint = offsets_of(i / size_at(0u), 0u);
  let kept = offsets_of(i % size_at(0u), 1u);
  store_raw(place(0u, joint.x + kept.x), raw_1(place(1u, joint_offset(i / size_at(0u)) + kept.y)));
}

// An item per kept element, which takes the joint positions in their order: the last value stays. n: begin and end of the
// joint positions that this launch takes.
fn kernel_put_selected(i: u32) {
  let kept = offsets_of(i, 1u);
  for (var j = size_at(0u); j < size_at(1u); j++) {
    let joint = offsets_of(j, 0u);
    store_raw(place(0u, joint_offset(j) + kept.y), raw_1(place(1u, joint.x + kept.x)));
  }
}

// The same with the sum of what is there and what comes.
fn kernel_add_selected(i: u32) {
  let kept = offsets_of(i, 1u);
  for (var j = size_at(0u); j < size_at(1u); j++) {
    let joint = offsets_of(j, 0u);
    let to = place(0u, joint_offset(j) + kept.y);
    store(to, join(element_0(to), element_1(place(1u, joint.x + kept.x))));
  }
}

// Philox 4x32-10: word k of the block at counter + i is word 4 i + k. n: words, key, counter.
fn kernel_draw(i: u32) {
  var key = call.n[1];
  var block = vec4<u32>(bp_add_of_uint64(call.n[2], vec2<u32>(i, 0u)), 0u, 0u);
  for (var round = 0; round < 10; round++) {
    let x = bp_multiplied_words(0xD2511F53u, block.x);
    let z = bp_multiplied_words(0xCD9E8D57u, block.z);
    block = vec4<u32>(z.y ^ block.y ^ key.x, z.x, x.y ^ block.w ^ key.y, x.x);
    key += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
  }
  for (var k = 0u; k < 4u && i * 4u + k < size_at(0u); k++) { put_word((call.at.x >> 2u) + i * 4u + k, block[k]); }
}
