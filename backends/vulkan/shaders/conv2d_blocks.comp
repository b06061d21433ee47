// conv2d and its adjoints, block by block: see conv2d.glsl for what they are, blocks.glsl for how. kOption, bit 5: two
// neighbours of a run of the left matrix lie in one aligned word.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BACKPLANE_TURNED
#include "blocks.glsl"
#include "conv2d.glsl"

const bool kLeftPairs = (kOption & 32u) != 0u;

// A step of the inner dimension: where the left matrix has it, and its digits.
struct Inner {
  uint next_run, in_run;
  uvec3 digits;
};

void advance(inout Inner at_inner, uint run, uvec2 sizes) {
  at_inner.in_run += 1u;
  if (at_inner.in_run == run) {
    at_inner.in_run = 0u;
    at_inner.next_run += 1u;
  }
  at_inner.digits = sum_of(at_inner.digits, uvec3(0u, 0u, 1u), sizes);
}

void main() {
  receive();
  const uint groups = n[1], slices = n[16], rows = rows_of(), inner = inner_of(), columns = columns_of();
  const uint across = (columns + kBlockColumns - 1u) / kBlockColumns, down = (rows + kBlockRows - 1u) / kBlockRows;
  const uint run = run_of(), next_run = next_run_of(run), length = ((inner + slices - 1u) / slices + 1u) / 2u * 2u;
  const uvec2 inner_sizes = inner_sizes_of(), column_sizes = column_sizes_of();
  const uint lane = gl_SubgroupInvocationID, blocks = across * down * groups * slices;

  for (uint i = first_block(); i < blocks; i += all_subgroups()) {
    const uint column = (i % across * kLanes + lane) * kAcross, row = i / across % down * kBlockRows;
    const uint group = i / (across * down) % groups, slice = i / (across * down * groups);
    const uint begin = slice * length, end = min(begin + length, inner);
    uint left_row[kDown];  // beyond the edge the last row is taken again
    for (uint a = 0u; a < kDown; ++a)
      left_row[a] = group_start_of(group, run) + min(row + a * kLanes + lane, rows - 1u) * run;
    uvec3 at_column[kAcross];
    for (uint b = 0u; b < kAcross; ++b) at_column[b] = digits(min(column + b, columns - 1u), column_sizes);
    Inner at_inner = Inner(begin / run, begin % run, digits(begin, inner_sizes));
    clear_sums();
    for (uint k = begin; k < end; k += 2u) {
      T left[kDown], left_next[kDown], right[kAcross], right_next[kAcross];
      const uint left_at = at_inner.next_run * next_run + at_inner.in_run;
      for (uint b = 0u; b < kAcross; ++b)
        right[b] = kFunction == kOfKernels ? shown(at_column[b], at_inner.digits, group)
                                           : shown(at_inner.digits, at_column[b], group);
      advance(at_inner, run, inner_sizes);
      const bool lone = k + 1u == end;
      const uint left_next_at = lone ? left_at : at_inner.next_run * next_run + at_inner.in_run;
      for (uint b = 0u; b < kAcross; ++b) {
        right_next[b] = T(0);
        if (!lone)
          right_next[b] = kFunction == kOfKernels ? shown(at_column[b], at_inner.digits, group)
                                                  : shown(at_inner.digits, at_column[b], group);
      }
      advance(at_inner, run, inner_sizes);
      for (uint a = 0u; a < kDown; ++a) {
        if (kLeftPairs) {
          load_pair(element(at[1], int(left_row[a] + left_at), kIn), left[a], left_next[a]);
        } else {
          left[a] = LOAD(element(at[1], int(left_row[a] + left_at), kIn), kIn);
          left_next[a] = LOAD(element(at[1], int(left_row[a] + left_next_at), kIn), kIn);
        }
        if (lone) left_next[a] = T(0);
      }
      add_product(left, right);
      add_product(left_next, right_next);
    }
    for (uint b = 0u; b < kAcross; ++b) {
      uint target = target_of(row, column + b, at_column[b], group, slice);
      for (uint a = 0u; a < kDown; ++a)
        for (uint l = 0u; l < kLanes; ++l) {
          if (row + a * kLanes + l < rows && column + b < columns)
            store(element(at[0], int(target), kOut), kOut, sums[a][l][b]);
          target += target_step();
        }
    }
  }
}
