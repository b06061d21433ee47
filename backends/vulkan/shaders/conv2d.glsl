// conv2d and its two adjoints as products of matrices that nobody writes out: an element of the right one is looked up
// in the images or results where the windows show it (implicit GEMM; Chetlur et al., "cuDNN: Efficient Primitives for
// Deep Learning", 2014). Per group:
//
//   kFunction       rows      inner dimension          columns                  left     right
//   0 (conv2d)      filters   channels x kernel        images x result          kernels  images
//   1 (of images)   channels  filters x kernel         images x image           kernels  results
//   2 (of kernels)  filters   images x result          channels x kernel        results  images
//
// at: result, left, right; all contiguous. n: images, groups, channels and filters of a group; heights and widths of the
// images, of the results, of the kernels; strides, paddings, dilations; slices. The inner dimension may be cut into
// slices, each of which makes a whole result; they follow each other. kOption, bit 4: the strides are 1.
const uint kForward = 0, kOfImages = 1, kOfKernels = 2;
const bool kUnitStrides = (kOption & 16u) != 0u;

uvec2 image() { return uvec2(n[4], n[5]); }
uvec2 result() { return uvec2(n[6], n[7]); }
uvec2 kernel() { return uvec2(n[8], n[9]); }
uint area(uvec2 sizes) { return sizes.x * sizes.y; }

// A number as digits: what is above an area, and a row and a column in it.
uvec3 digits(uint i, uvec2 sizes) { return uvec3(i / area(sizes), i / sizes.y % sizes.x, i % sizes.y); }
uvec3 sum_of(uvec3 a, uvec3 b, uvec2 sizes) {
  uvec3 sum = a + b;
  if (sum.z >= sizes.y) sum.yz += uvec2(1u, -sizes.y);
  if (sum.y >= sizes.x) sum.xy += uvec2(1u, -sizes.x);
  return sum;
}

// What a window shows. tap: channel or filter of the group, place in the kernel. place: image, place in what the window
// moves over. Beyond an edge it shows zero; negative numbers wrap, and so lie beyond the upper edge.
T shown(uvec3 tap, uvec3 place, uint group) {
  const uvec2 stride = uvec2(n[10], n[11]), padding = uvec2(n[12], n[13]), reach = tap.yz * uvec2(n[14], n[15]);
  uvec2 at_place;
  uvec2 sizes;
  uint inner;
  bool there = true;
  if (kFunction == kOfImages) {
    at_place = place.yz + padding - reach;
    if (!kUnitStrides) {
      there = all(greaterThanEqual(ivec2(at_place), ivec2(0))) && at_place % stride == uvec2(0u);
      at_place /= stride;
    }
    sizes = result();
    inner = n[3];
  } else {
    at_place = place.yz * (kUnitStrides ? uvec2(1u) : stride) + reach - padding;
    sizes = image();
    inner = n[2];
  }
  T value = T(0);
  if (there && all(lessThan(at_place, sizes))) {
    const uint plane = (place.x * n[1] + group) * inner + tap.x;
    value = LOAD(element(at[2], int((plane * sizes.x + at_place.x) * sizes.y + at_place.y), kIn), kIn);
  }
  return value;
}

// The sizes of the matrices.
uint taps() { return n[2] * area(kernel()); }
uint places() { return n[0] * area(result()); }
uint rows_of() { return kFunction == kOfImages ? n[2] : n[3]; }
uint inner_of() { return kFunction == kForward ? taps() : kFunction == kOfImages ? n[3] * area(kernel()) : places(); }
uint columns_of() { return kFunction == kForward ? places() : kFunction == kOfImages ? n[0] * area(image()) : taps(); }

// The left matrix: runs of the inner dimension that are contiguous, from one run to the next, from row to row.
// With BACKPLANE_TURNED the kernels of the pass of images are turned: groups, channels, filters, kernel.
#ifdef BACKPLANE_TURNED
const bool kTurned = kFunction == kOfImages;
#else
const bool kTurned = false;
#endif
uint run_of() {
  if (kTurned) return max(n[3] * area(kernel()), 1u);
  return max(kFunction == kForward ? taps() : area(kFunction == kOfImages ? kernel() : result()), 1u);
}
uint next_run_of(uint run) { return kTurned ? run : kFunction == kOfImages ? taps() : n[1] * n[3] * run; }
uint group_start_of(uint group, uint run) {
  return group * (kTurned ? n[2] * run : n[3] * (kFunction == kOfKernels ? run : taps()));
}

// The digits of the inner dimension and of the columns.
uvec2 inner_sizes_of() { return kFunction == kOfKernels ? result() : kernel(); }
uvec2 column_sizes_of() { return kFunction == kForward ? result() : kFunction == kOfImages ? image() : kernel(); }

// Where the sum of a row and a column belongs, and how far from it that of the next row; column_digits: the column's.
uint target_of(uint row, uint column, uvec3 column_digits, uint group, uint slice) {
  const uint groups = n[1], rows = rows_of(), columns = columns_of();
  if (kFunction == kOfKernels) return ((slice * groups + group) * rows + row) * columns + column;
  const uvec2 sizes = column_sizes_of();
  const uint within = column_digits.y * sizes.y + column_digits.z;
  return slice * groups * rows * columns + ((column_digits.x * groups + group) * rows + row) * area(sizes) + within;
}
uint target_step() { return kFunction == kOfKernels ? columns_of() : area(column_sizes_of()); }
