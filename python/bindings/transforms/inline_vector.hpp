// A list whose first N elements need no heap: arguments and leaves of a call are few.
//
// T is cheap to make empty (a reference or a number). Elements are owned; not thread-safe; not copyable or movable.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace backplane::python {

template <class T, size_t N>
class InlineVector {
 public:
  InlineVector() = default;
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;

  void push_back(T element) {
    if (size_ == capacity_) [[unlikely]]
      grow();
    data_[size_++] = std::move(element);
  }
  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T& operator[](size_t i) noexcept { return data_[i]; }
  const T& operator[](size_t i) const noexcept { return data_[i]; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }

 private:
  void grow() {
    auto larger = std::make_unique<T[]>(2 * capacity_);
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move(data_[i]);
    heap_ = std::move(larger);
    data_ = heap_.get();
    capacity_ *= 2;
  }

  T inline_[N] = {};
  std::unique_ptr<T[]> heap_;
  T* data_ = inline_;
  size_t size_ = 0;
  size_t capacity_ = N;
};

}  // namespace backplane::python
