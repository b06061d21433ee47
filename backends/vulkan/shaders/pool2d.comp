// Windows over images (planes, height, width): the largest element of each and its place in the plane (kFunction 0; the
// first NaN where there is one), or the mean, padding counted as 0 (1).
//
// at: result, images, places (int64; 0: not wanted). n: elements of the result; heights and widths of the images, of the
// results, of the windows; strides, paddings; multipliers and shifts of the result's width and height.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "class.glsl"

void main() {
  receive();
  const uvec2 image = uvec2(n[1], n[2]), result = uvec2(n[3], n[4]), window = uvec2(n[5], n[6]);
  const uvec2 stride = uvec2(n[7], n[8]), padding = uvec2(n[9], n[10]);
  for (uint i = gl_GlobalInvocationID.x; i < n[0]; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    const uint row = divided(i, n[11], n[12]), plane = divided(row, n[13], n[14]);
    const uvec2 first = uvec2(row - plane * result.x, i - row * result.y) * stride;
    // In the padded image; what the window shows of the image itself.
    const uvec2 begin = max(first, padding) - padding, end = min(max(first + window, padding) - padding, image);
    T total = T(0);
    uint place = 0u;
    bool any = false;
    for (uint y = begin.x; y < end.x; ++y)
      for (uint x = begin.y; x < end.y; ++x) {
        const uint there = y * image.y + x;
        const T value = LOAD(element(at[1], int(plane * image.x * image.y + there), kIn), kIn);
        if (kFunction == 1u) {
          total += value;
        } else if (!any || (!is_nan(total) && (is_nan(value) || below(total, value)))) {
          total = value;
          place = there;
        }
        any = true;
      }
    if (kFunction == 1u) total /= T(window.x * window.y);
    if (at[0] != 0ul) store(element(at[0], int(i), kOut), kOut, total);
    if (kFunction == 0u && at[2] != 0ul) store(element(at[2], int(i), kInt64), kInt64, int64_t(place));
  }
}
