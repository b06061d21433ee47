// Derivatives and batching of functions: grad, value_and_grad, vjp, jvp, jacrev, jacfwd, hessian and vmap, in any
// nesting.
//
// A function takes and returns tensors, or vectors, maps, pairs and tuples of them; other arguments pass through. The
// returned objects are functions of the same arguments. They keep a copy of the function that they transform.
#pragma once

#include <algorithm>

#include "backplane/bp/tree.hpp"

namespace bp {

// While it lives, this thread records nothing for backward().
class NoGrad {
 public:
  NoGrad() : before_(backplane::set_grad_enabled(false)) {}
  ~NoGrad() { backplane::set_grad_enabled(before_); }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};
using NoGradGuard = NoGrad;

// Within a NoGrad: this thread records again.
class EnableGrad {
 public:
  EnableGrad() : before_(backplane::set_grad_enabled(true)) {}
  ~EnableGrad() { backplane::set_grad_enabled(before_); }
  EnableGrad(const EnableGrad&) = delete;
  EnableGrad& operator=(const EnableGrad&) = delete;

 private:
  bool before_;
};

namespace detail {

template <class Scope>
struct Enter {
  Scope& scope;
  template <class T>
  T operator()(T value) const {
    PlainTensors leaves = leaves_of(value);
    for (backplane::Tensor& leaf : leaves) leaf = scope.enter(leaf);
    return with_leaves(std::move(value), leaves);
  }
};

// value_and_grad with respect to the arguments I.
template <class F, size_t... I, class... A>
auto value_and_grads(F& f, const char* transform, std::index_sequence<I...>, A... args) {
  static_assert(((I < sizeof...(A)) && ...), "grad: the function has fewer arguments than the position asks for");
  std::tuple<A...> all(std::move(args)...);
  backplane::GradScope scope(transform);
  const Enter<backplane::GradScope> enter{scope};
  ((std::get<I>(all) = enter(std::get<I>(all))), ...);
  using Result = Kept<decltype(std::apply(f, all))>;
  Result result = std::apply(f, all);
  PlainTensors values = leaves_of(result);
  BP_CHECK(!values.empty(), TYPE, transform, ": the function returned no tensor, expected one without axes first");
  const backplane::Pullback pullback = scope.leave(values, 1);
  result = with_leaves(std::move(result), values);
  const PlainTensors gradients = pullback.of_one();
  const backplane::Tensor* next = gradients.data();
  (replace_leaves(std::get<I>(all), next), ...);
  return std::pair(std::move(result), std::tuple(std::move(std::get<I>(all))...));
}

template <class... T>
auto one_or_all(std::tuple<T...> values) {
  if constexpr (sizeof...(T) == 1)
    return std::get<0>(std::move(values));
  else
    return values;
}

}  // namespace detail

// value_and_grad(f)(x, ...) is the pair of f(x, ...) and the gradient of its first result, which has no axes, with
// respect to the first argument; value_and_grad<0, 2>(f): to these, as a tuple.
template <size_t First = 0, size_t... Rest, class F>
auto value_and_grad(F f) {
  return [f](const auto&... args) mutable {
    auto found = detail::value_and_grads(f, "value_and_grad", std::index_sequence<First, Rest...>(),
                                         detail::Kept<decltype(args)>(args)...);
    return std::pair(std::move(found.first), detail::one_or_all(std::move(found.second)));
  };
}

// The gradient alone.
template <size_t First = 0, size_t... Rest, class F>
auto grad(F f) {
  return [f](const auto&... args) mutable {
    return detail::one_or_all(
        detail::value_and_grads(f, "grad", std::index_sequence<First, Rest...>(), detail::Kept<decltype(args)>(args)...)
            .second);
  };
}

// The gradients of a tensor's history, as backward() would add them to the leaves. Not defined where `output` does not
// depend on an input.
inline std::vector<Tensor> grad(const Tensor& output, TensorList inputs, const Tensor& cotangent = {},
                                bool retain_graph = false, bool create_graph = false) {
  return detail::adopted(backplane::gradients({&output.plain(), 1}, {&cotangent.plain(), 1}, inputs.plain(),
                                              {retain_graph || create_graph, create_graph}));
}

// {f(x...), a function from the cotangent of the result to the cotangents of the arguments, as a vector}.
template <class F, class... A>
auto vjp(F f, const A&... args) {
  std::tuple<detail::Kept<A>...> all(args...);
  backplane::GradScope scope("vjp");
  std::apply([&](auto&... each) { ((each = detail::Enter<backplane::GradScope>{scope}(each)), ...); }, all);
  using Result = detail::Kept<decltype(std::apply(f, all))>;
  Result result = std::apply(f, all);
  detail::PlainTensors values = detail::leaves_of(result);
  const backplane::Pullback pullback = scope.leave(values, values.size());
  result = detail::with_leaves(std::move(result), values);
  return std::pair(std::move(result), [pullback](const Result& cotangents) {
    return detail::adopted(pullback(detail::leaves_of(cotangents)));
  });
}

// {f(primals), its derivative in the direction of the tangents}. Several tensors stand in braces.
template <class F>
auto jvp(F f, const std::vector<Tensor>& primals, const std::vector<Tensor>& tangents) {
  BP_CHECK(primals.size() == tangents.size(), VALUE, "jvp: found ", primals.size(), " primals and ", tangents.size(),
           " tangents, expected as many");
  backplane::JvpScope scope;
  std::vector<Tensor> duals;
  for (size_t i = 0; i < primals.size(); ++i) duals.emplace_back(scope.enter(primals[i], tangents[i]));
  auto result = detail::call_with_list(f, duals);
  detail::PlainTensors values, derivatives;
  for (const backplane::Tensor& value : detail::leaves_of(result)) {
    backplane::JvpScope::Dual dual = scope.leave(value);
    values.push_back(std::move(dual.primal));
    derivatives.push_back(std::move(dual.tangent));
  }
  auto tangent = detail::with_leaves(result, derivatives);
  return std::pair(detail::with_leaves(std::move(result), values), std::move(tangent));
}
template <class F>
auto jvp(F f, const Tensor& primal, const Tensor& tangent) {
  return jvp(std::move(f), std::vector<Tensor>{primal}, std::vector<Tensor>{tangent});
}

// vmap(f)(x, ...) runs f for each row of the arguments at once. `in_axes`: per argument its batched axis, or nullopt
// for one that all rows share; absent: axis 0 of each. The results have the batch at `out_axis`.
using InAxes = std::vector<std::optional<int>>;
template <class F>
auto vmap(F f, InAxes in_axes = {}, int out_axis = 0, Randomness randomness = Randomness::kError) {
  return [=](const auto&... args) mutable {
    std::tuple<detail::Kept<decltype(args)>...> all(args...);
    if (in_axes.empty()) in_axes.assign(sizeof...(args), 0);
    BP_CHECK(in_axes.size() == sizeof...(args), VALUE, "vmap: in_axes has ", in_axes.size(), " entries, expected ",
             sizeof...(args), ", one per argument");
    std::optional<int64_t> size;
    size_t i = 0;
    const auto measure = [&](const auto& arg) {
      const std::optional<int> axis = in_axes[i++];
      if (!axis) return;
      for (const backplane::Tensor& leaf : detail::leaves_of(arg)) {
        const int64_t found = Tensor(leaf).size(*axis);
        if (!size) size = found;
        BP_CHECK(*size == found, SHAPE, "vmap: found batches of ", *size, " and of ", found,
                 " rows, expected one size along the batched axes");
      }
    };
    std::apply([&](const auto&... each) { (measure(each), ...); }, all);
    BP_CHECK(size, VALUE, "vmap: found no batched argument. Fix: give one of them an axis in in_axes");
    backplane::BatchScope scope(*size, randomness);
    i = 0;
    const auto enter = [&](auto& arg) {
      const std::optional<int> axis = in_axes[i++];
      detail::PlainTensors leaves = detail::leaves_of(arg);
      for (backplane::Tensor& leaf : leaves)
        leaf = axis ? scope.enter(leaf, static_cast<int32_t>(detail::checked_axis("vmap", *axis, leaf.ndim())))
                    : scope.enter_shared(leaf);
      arg = detail::with_leaves(std::move(arg), leaves);
    };
    std::apply([&](auto&... each) { (enter(each), ...); }, all);
    detail::Kept<decltype(std::apply(f, all))> result = std::apply(f, all);
    detail::PlainTensors values = detail::leaves_of(result);
    for (backplane::Tensor& value : values) value = scope.leave(value, out_axis);
    return detail::with_leaves(std::move(result), values);
  };
}

// The Jacobian of f at x, of shape (*shape of f(x), *shape of x): row by row backward, or column by column forward.
template <class F>
auto jacrev(F f) {
  return [f](const Tensor& x) mutable -> Tensor {
    auto [value, pullback] = vjp(f, x);
    const int64_t rows = value.numel();
    std::vector<int64_t> shape = value.sizes();
    shape.insert(shape.begin(), rows);
    const Tensor basis = eye(rows, {}, 0, Dtype(value.dtype()), value.device()).reshape(shape);
    const auto pull = [pull = pullback](const Tensor& row) { return pull(row)[0]; };
    shape.assign(value.plain().shape().begin(), value.plain().shape().end());
    shape.insert(shape.end(), x.plain().shape().begin(), x.plain().shape().end());
    return vmap(pull)(basis).reshape(shape);
  };
}
template <class F>
auto jacfwd(F f) {
  return [f](const Tensor& x) mutable -> Tensor {
    const int64_t columns = x.numel();
    std::vector<int64_t> shape = x.sizes();
    shape.insert(shape.begin(), columns);
    const Tensor basis = eye(columns, {}, 0, Dtype(x.dtype()), x.device()).reshape(shape);
    const auto push = [&f, &x](const Tensor& column) { return Tensor(jvp(f, x, column).second); };
    const Tensor found = vmap(push, {}, -1)(basis);
    shape = found.sizes();
    shape.pop_back();
    shape.insert(shape.end(), x.plain().shape().begin(), x.plain().shape().end());
    return found.reshape(shape);
  };
}
// Of a function whose result has no axes.
template <class F>
auto hessian(F f) {
  return jacfwd(jacrev(std::move(f)));
}

}  // namespace bp
