// Reductions, positions of extremes, and running sums.
#include <algorithm>
#include <limits>

#include "convert.hpp"
#include "kernels.hpp"
#include "loops.hpp"
#include "walk.hpp"

namespace sim {
namespace {

// Elements that are summed by themselves before they join a total: a float32 counts to 2^24 alone, by ones.
constexpr int64_t kSegment = 4096;

// Op::start is the value of no elements, Op::join takes an accumulated value and the next element.
template <class Op, class Out, class In>
void join_run(char* out, int64_t out_step, const char* in, int64_t in_step, int64_t n) {
  Out* totals = reinterpret_cast<Out*>(out);
  const In* x = reinterpret_cast<const In*>(in);
  if (out_step == 0) {  // the run folds into one element: keep it in a register
    Out total = *totals;
    for (int64_t begin = 0; begin < n; begin += kSegment) {
      Out part = Op::template start<Out>();
      for (int64_t i = begin; i < std::min(begin + kSegment, n); ++i)
        part = Op::join(part, *reinterpret_cast<const In*>(in + i * in_step));
      total = Op::join(total, part);
    }
    *totals = total;
  } else if (out_step == sizeof(Out) && in_step == sizeof(In)) {
    for (int64_t i = 0; i < n; ++i) totals[i] = Op::join(totals[i], x[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      Out& total = *reinterpret_cast<Out*>(out + i * out_step);
      total = Op::join(total, *reinterpret_cast<const In*>(in + i * in_step));
    }
  }
}

// A reduction's output has stride 0 along reduced dimensions, so that one loop accumulates for every layout.
template <class Op, class Out, class In>
void record_reduction(const Call& call) {
  call.record([out = call.output(0), loop = call.loop()] {
    fill(out, Op::template start<Out>());
    for_each_run<2>(loop, [](const auto& at, const auto& step, int64_t n) {
      join_run<Op, Out, In>(at[0], step[0], at[1], step[1], n);
    });
  });
}

// Where totals of a type Total are kept while they grow: in the output itself, or for half floats, whose sums would
// lose their digits on the way, beside it with as many elements between two as there.
template <class Out, class Total>
class Totals {
 public:
  Totals(const Operand& out, Total start) : out_(out) {
    if constexpr (std::is_same_v<Out, Total>) {
      fill(out, start);
    } else {
      int64_t high = 0;
      for (size_t d = 0; d < out.shape.size(); ++d)
        (out.strides[d] < 0 ? low_ : high) += (std::max<int64_t>(out.shape[d], 1) - 1) * out.strides[d];
      beside_.assign(static_cast<size_t>(high - low_ + 1), start);
    }
  }
  char* at(char* place) {
    if constexpr (std::is_same_v<Out, Total>)
      return place;
    else
      return reinterpret_cast<char*>(beside_.data() + ((place - out_.data) / int64_t{sizeof(Out)} - low_));
  }
  static int64_t step(int64_t bytes) { return bytes / int64_t{sizeof(Out)} * int64_t{sizeof(Total)}; }
  void finish() {
    if constexpr (!std::is_same_v<Out, Total>) {
      Out* data = reinterpret_cast<Out*>(out_.data);
      walk<1>(out_.shape, {out_.strides},
              [&](const auto& at) { data[at[0]] = Out(beside_[static_cast<size_t>(at[0] - low_)]); });
    }
  }

 private:
  const Operand& out_;
  int64_t low_ = 0;
  std::vector<Total> beside_;
};

// The same for totals of another type than the input's: it is converted piece by piece.
template <class Op, class Out>
void record_converting_reduction(const Call& call) {
  using Total = Compute<Out>;
  const auto convert = convert_run(backplane::plugin::kDtypeOf<Total>, call.compute());
  call.record([out = call.output(0), loop = call.loop(), convert] {
    Totals<Out, Total> totals(out, Op::template start<Total>());
    for_each_run<2>(loop, [&](const auto& at, const auto& step, int64_t n) {
      constexpr int64_t kPiece = 512;
      Total piece[kPiece];
      const int64_t total_step = totals.step(step[0]);
      for (int64_t i = 0; i < n; i += kPiece) {
        const int64_t length = std::min(kPiece, n - i);
        convert(reinterpret_cast<char*>(piece), sizeof(Total), at[1] + i * step[1], step[1], length);
        join_run<Op, Total, Total>(totals.at(at[0]) + i * total_step, total_step, reinterpret_cast<const char*>(piece),
                                   sizeof(Total), length);
      }
    });
    totals.finish();
  });
}

// std::numeric_limits knows nothing of half floats.
template <class T>
T lowest() {
  using Limits = std::numeric_limits<Compute<T>>;
  return static_cast<T>(Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
}
template <class T>
T highest() {
  using Limits = std::numeric_limits<Compute<T>>;
  return static_cast<T>(Limits::has_infinity ? Limits::infinity() : Limits::max());
}

struct Sum {
  template <class Out>
  static Out start() {
    return Out{0};
  }
  template <class T>
  static T join(T total, T x) {
    return wrapping_add(total, x);
  }
};
struct Prod {
  template <class Out>
  static Out start() {
    return Out{1};
  }
  template <class T>
  static T join(T total, T x) {
    return wrapping_multiply(total, x);
  }
};
struct Max {
  template <class Out>
  static Out start() {
    return lowest<Out>();
  }
  template <class T>
  static T join(T best, T x) {
    return x > best || x != x ? x : best;  // a NaN, once taken, stays: nothing compares with it
  }
};
struct Min {
  template <class Out>
  static Out start() {
    return highest<Out>();
  }
  template <class T>
  static T join(T best, T x) {
    return x < best || x != x ? x : best;
  }
};
struct Any {
  template <class Out>
  static Out start() {
    return false;
  }
  template <class Out, class In>
  static Out join(Out found, In x) {
    return found || x != In{0};
  }
};
struct All {
  template <class Out>
  static Out start() {
    return true;
  }
  template <class Out, class In>
  static Out join(Out held, In x) {
    return held && x != In{0};
  }
};

// sum, prod: the result's dtype is wider, or stated.
template <class Op>
void reduce_into(const Call& call) {
  dispatch_dtype<kAll>(call.output(0).dtype, [&]<class Out>() {
    if constexpr (!kIsHalf<Out>)
      if (call.compute() == call.output(0).dtype) return record_reduction<Op, Out, Out>(call);
    record_converting_reduction<Op, Out>(call);
  });
}

void check_not_empty(const Call& call, int64_t elements) {
  BP_CHECK(call.output(0).count() == 0 || elements > 0, VALUE, call.op_name(),
           ": found no elements to choose from; expected at least one along the reduced axes");
}

template <class Op>
void extreme(const Call& call) {
  check_not_empty(call, call.input(0).count());
  dispatch_dtype<kOrdered>(call.compute(), [&]<class T>() { record_reduction<Op, T, T>(call); });
}

template <class Op>
void test(const Call& call) {
  dispatch_dtype<kAll>(call.compute(), [&]<class T>() { record_reduction<Op, bool, T>(call); });
}

// The axis of an optional Axis argument: x flattened where it is absent, so x must be contiguous.
struct Lines {
  int64_t outer, length, inner;
};
Lines lines_along(const Call& call, size_t axis_arg) {
  const Operand x = call.input(0);
  if (!call.has(axis_arg) || x.ndim() == 0) return {1, x.count(), 1};
  const auto axis = static_cast<size_t>(call.integer(axis_arg));
  Lines lines{1, x.shape[axis], 1};
  for (size_t d = 0; d < x.shape.size(); ++d) (d < axis ? lines.outer : lines.inner) *= d == axis ? 1 : x.shape[d];
  return lines;
}

// body(x, out) at the start of each line; lines of one group lie next to each other.
template <class T, class Out, class Body>
void for_each_line(const Lines& lines, int64_t out_length, const T* x, Out* out, Body body) {
  for (int64_t o = 0; o < lines.outer; ++o)
    for (int64_t i = 0; i < lines.inner; ++i)
      body(x + o * lines.length * lines.inner + i, out + o * out_length * lines.inner + i);
}

template <class Op>
void arg_extreme(const Call& call) {
  const Lines lines = lines_along(call, 1);
  check_not_empty(call, lines.length);
  dispatch_dtype<kOrdered>(call.compute(), [&]<class T>() {
    call.record([lines, x = reinterpret_cast<const T*>(call.input(0).data),
                 out = reinterpret_cast<int64_t*>(call.output(0).data)] {
      for_each_line(lines, 1, x, out, [&lines](const T* line, int64_t* found) {
        int64_t best = 0;
        for (int64_t k = 1; k < lines.length; ++k) {
          const T held = line[best * lines.inner], next = line[k * lines.inner];
          if (held == held && Op::join(held, next) != held) best = k;  // strictly better, or the first NaN
        }
        *found = best;
      });
    });
  });
}

void cumsum(const Call& call) {
  const Lines lines = lines_along(call, 1);
  const auto convert = convert_run(call.output(0).dtype, call.compute());
  dispatch_dtype<kAll>(call.output(0).dtype, [&]<class T>() {
    call.record([lines, convert, n = call.input(0).count(), item = int64_t{kItemSize[call.compute()]},
                 x = call.input(0).data, out = call.output(0).data] {
      convert(out, sizeof(T), x, item, n);
      T* totals = reinterpret_cast<T*>(out);
      for_each_line(lines, lines.length, totals, totals, [&lines](const T*, T* line) {
        Compute<T> before{}, part{}, total{};
        for (int64_t k = 0; k < lines.length; ++k) {
          const auto element = static_cast<Compute<T>>(line[k * lines.inner]);
          if (k % kSegment == 0) before = total;
          part = k % kSegment == 0 ? element : wrapping_add(part, element);
          total = k < kSegment ? part : wrapping_add(before, part);
          line[k * lines.inner] = static_cast<T>(total);
        }
      });
    });
  });
}

constexpr Row kRows[] = {
    {"bp::sum", kernel<reduce_into<Sum>>, kAll, BP_KERNEL_LOOP},
    {"bp::prod", kernel<reduce_into<Prod>>, kAll, BP_KERNEL_LOOP},
    {"bp::max", kernel<extreme<Max>>, kOrdered, BP_KERNEL_LOOP},
    {"bp::min", kernel<extreme<Min>>, kOrdered, BP_KERNEL_LOOP},
    {"bp::any", kernel<test<Any>>, kAll, BP_KERNEL_LOOP},
    {"bp::all", kernel<test<All>>, kAll, BP_KERNEL_LOOP},
    {"bp::argmax", kernel<arg_extreme<Max>>, kOrdered, 0},
    {"bp::argmin", kernel<arg_extreme<Min>>, kOrdered, 0},
    {"bp::cumsum", kernel<cumsum>, kAll, 0},
};

}  // namespace

Table reduction_kernels() { return {__FILE__, kRows}; }

}  // namespace sim
