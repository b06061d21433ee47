// The kernels, X(name, number): for C++ and for the device's language alike.
#ifndef MINIMAL_KERNEL_LIST_H
#define MINIMAL_KERNEL_LIST_H

// Once per dtype that is computed in.
#define MINIMAL_TYPED_KERNELS(X) \
  X(unary, 0)                    \
  X(real_of, 1)                  \
  X(binary, 2)                   \
  X(compare, 3)                  \
  X(complex_of, 4)               \
  X(convert, 5)                  \
  X(count, 6)                    \
  X(fold, 7)                     \
  X(running, 8)                  \
  X(arg_extreme, 9)              \
  X(merge, 10)                   \
  X(product, 11)                 \
  X(add_positions, 12)           \
  X(add_selected, 13)
// Elements by their width only.
#define MINIMAL_MOVING_KERNELS(X) \
  X(move, 14)                     \
  X(choose, 15)                   \
  X(fill, 16)                     \
  X(gather, 17)                   \
  X(put_selected, 18)             \
  X(draw, 19)

#endif
