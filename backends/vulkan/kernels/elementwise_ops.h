/* The elementwise ops of Vulkan but copy, a line each: the op, how many operands it reads, and its formula over floats
 * x and y. C++ and the shader read it; the formulas are GLSL. */
#ifndef BACKPLANE_VULKAN_ELEMENTWISE
// A product would be taken for a pointer.
// clang-format off
#define BACKPLANE_VULKAN_ELEMENTWISE(ROW) \
  ROW(add, 2, x + y)                      \
  ROW(subtract, 2, x - y)                 \
  ROW(multiply, 2, x * y)
// clang-format on

#endif
