// Arguments and results of transformed functions: tensors, and vectors, arrays, maps, pairs and tuples of them. Every
// other value has no tensors and passes through.
#pragma once

#include <array>
#include <map>
#include <tuple>

#include "backplane/bp/indexing.hpp"
#include "backplane/bp/operators.hpp"

namespace bp::detail {

using PlainTensors = std::vector<backplane::Tensor>;

template <class T>
struct Leaves {
  static void collect(const T&, PlainTensors&) {}
  static void replace(T&, const backplane::Tensor*&) {}
};
template <class T>
void collect_leaves(const T& value, PlainTensors& leaves) {
  Leaves<T>::collect(value, leaves);
}
template <class T>
void replace_leaves(T& value, const backplane::Tensor*& next) {
  Leaves<T>::replace(value, next);
}

template <>
struct Leaves<Tensor> {
  static void collect(const Tensor& x, PlainTensors& leaves) { leaves.push_back(x.plain()); }
  static void replace(Tensor& x, const backplane::Tensor*& next) { x = Tensor(*next++); }
};
template <>
struct Leaves<backplane::Tensor> {
  static void collect(const backplane::Tensor& x, PlainTensors& leaves) { leaves.push_back(x); }
  static void replace(backplane::Tensor& x, const backplane::Tensor*& next) { x = *next++; }
};
template <class Range>
struct LeavesOfRange {
  static void collect(const Range& range, PlainTensors& leaves) {
    for (const auto& value : range) collect_leaves(value, leaves);
  }
  static void replace(Range& range, const backplane::Tensor*& next) {
    for (auto& value : range) replace_leaves(value, next);
  }
};
template <class T>
requires(!std::is_arithmetic_v<T>) struct Leaves<std::vector<T>> : LeavesOfRange<std::vector<T>> {
};
template <class T, size_t N>
struct Leaves<std::array<T, N>> : LeavesOfRange<std::array<T, N>> {};
template <class K, class T>
struct Leaves<std::map<K, T>> {
  static void collect(const std::map<K, T>& map, PlainTensors& leaves) {
    for (const auto& [key, value] : map) collect_leaves(value, leaves);
  }
  static void replace(std::map<K, T>& map, const backplane::Tensor*& next) {
    for (auto& [key, value] : map) replace_leaves(value, next);
  }
};
template <class A, class B>
struct Leaves<std::pair<A, B>> {
  static void collect(const std::pair<A, B>& pair, PlainTensors& leaves) {
    collect_leaves(pair.first, leaves);
    collect_leaves(pair.second, leaves);
  }
  static void replace(std::pair<A, B>& pair, const backplane::Tensor*& next) {
    replace_leaves(pair.first, next);
    replace_leaves(pair.second, next);
  }
};
template <class... T>
struct Leaves<std::tuple<T...>> {
  static void collect(const std::tuple<T...>& tuple, PlainTensors& leaves) {
    std::apply([&](const T&... values) { (collect_leaves(values, leaves), ...); }, tuple);
  }
  static void replace(std::tuple<T...>& tuple, const backplane::Tensor*& next) {
    std::apply([&](T&... values) { (replace_leaves(values, next), ...); }, tuple);
  }
};

// What a function keeps of an argument or a result: a[0] is a Tensor.
template <class T>
using Kept = std::conditional_t<std::is_base_of_v<Tensor, std::decay_t<T>>, Tensor, std::decay_t<T>>;

template <class T>
PlainTensors leaves_of(const T& value) {
  PlainTensors leaves;
  collect_leaves(value, leaves);
  return leaves;
}
template <class T>
T with_leaves(T value, const PlainTensors& leaves) {
  const backplane::Tensor* next = leaves.data();
  replace_leaves(value, next);
  return value;
}

// Calls a function that takes so many tensors, or one vector of them.
template <size_t N, class F>
auto call_with_first(F& f, const std::vector<Tensor>& args) {
  return [&]<size_t... I>(std::index_sequence<I...>) { return Kept<decltype(f(args[I]...))>(f(args[I]...)); }
  (std::make_index_sequence<N>());
}
template <class F, size_t N>
concept TakesTensors = []<size_t... I>(std::index_sequence<I...>) {
  return std::is_invocable_v<F&, std::conditional_t<I != SIZE_MAX, const Tensor&, void>...>;
}
(std::make_index_sequence<N>());

template <class F>
auto call_with_list(F& f, const std::vector<Tensor>& args) {
  if constexpr (std::is_invocable_v<F&, const std::vector<Tensor>&>) {
    return Kept<decltype(f(args))>(f(args));
  } else {
    constexpr size_t kCount = TakesTensors<F, 1> ? 1 : TakesTensors<F, 2> ? 2 : TakesTensors<F, 3> ? 3 : 4;
    static_assert(TakesTensors<F, kCount>, "the function takes one to four tensors, or a std::vector<Tensor>");
    BP_CHECK(args.size() == kCount, TYPE, "found ", args.size(), " tensors, expected ", kCount,
             ", as many as the function takes");
    return call_with_first<kCount>(f, args);
  }
}

}  // namespace bp::detail
