// The arguments of a call as a program takes them.
#include "call_arguments.hpp"

#include <cmath>
#include <cstring>

namespace backplane_torch {

namespace {

// Words of the key that begin an argument.
enum Word : int64_t { kAbsent = -1000, kNumberWord, kTensorWord, kListWord, kTextWord, kIntWord, kBoolWord };

// Rows branch on whether a number is 0, 1 and so on; another number of its sign and type gives the same program.
int64_t class_of(const c10::Scalar& number) {
  if (number.isBoolean()) return number.toBool();
  if (number.isComplex()) return 900;
  const double value = number.toDouble();
  const int64_t type = number.isFloatingPoint() ? 100 : 200;
  if (!std::isfinite(value)) return type + (value > 0 ? 1 : value < 0 ? 2 : 3);
  for (const double exact : {0.0, 1.0, -1.0, 2.0, 0.5, 3.0, -2.0, -0.5})
    if (value == exact) return type + 20 + static_cast<int64_t>(exact * 2);
  return type + (std::fabs(value) < 1 ? 40 : 50) + (value < 0);
}

class Reader {
 public:
  Reader(CallArguments& into, bp_device device, bool any_size) : into_(into), device_(device), any_size_(any_size) {}

  void read(const c10::IValue& value, char kind, size_t place) {
    if (kind == 'n' || value.isDevice() || value.isGenerator()) return;
    if (value.isNone()) return word(kAbsent);
    if (kind == 'd') return words({kIntWord, value.toInt()});
    if (value.isTensor()) return read_tensor(value.toTensor(), place);
    if (kind == 's' && (value.isScalar() || value.isDouble())) return number(value.toScalar(), place);
    if (value.isBool()) return words({kBoolWord, value.toBool()});
    if (value.isInt()) return words({kIntWord, value.toInt()});
    if (value.isDouble()) return double_word(value.toDouble());
    if (value.isString()) return text(value.toStringRef());
    if (value.isList()) return list(value.toListRef(), place);
    into_.is_plain = false;
  }

 private:
  void word(int64_t next) { into_.key.push_back(next); }
  void words(std::initializer_list<int64_t> next) { into_.key.insert(into_.key.end(), next); }

  void double_word(double value) {
    int64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    words({kNumberWord, bits});
  }

  void text(const std::string& text) {
    words({kTextWord, static_cast<int64_t>(text.size())});
    for (char letter : text) word(letter);
  }

  void number(const c10::Scalar& number, size_t place) {
    words({kNumberWord, class_of(number)});
    into_.numbers.push_back(number);
    into_.number_places.push_back(place);
  }

  void list(c10::ArrayRef<c10::IValue> elements, size_t place) {
    words({kListWord, static_cast<int64_t>(elements.size())});
    for (const c10::IValue& element : elements) {
      if (element.isTensor() && element.toTensor().defined() &&
          (!is_here(element.toTensor()) || element.toTensor().unsafeGetTensorImpl()->is_wrapped_number()))
        into_.is_plain = false;
      else
        read(element, 't', place);
    }
  }

  static bool is_here(const at::Tensor& x) { return x.device().type() == kDevice; }

  void read_tensor(const at::Tensor& x, size_t place) {
    if (!x.defined()) return word(kAbsent);
    if (!is_here(x)) {
      if (x.unsafeGetTensorImpl()->is_wrapped_number()) return number(x.item(), place);
      into_.is_plain = false;
      return;
    }
    words({kTensorWord, static_cast<int64_t>(x.scalar_type()), x.dim()});
    for (int64_t size : x.sizes()) word(size <= 1 ? size - 2 : any_size_ ? place_of(size) : size);
    into_.tensors.push_back(operand_of(x, device_));
  }

  int64_t place_of(int64_t size) {
    for (size_t i = 0; i < sizes_.size(); ++i)
      if (sizes_[i] == size) return static_cast<int64_t>(i);
    sizes_.push_back(size);
    return static_cast<int64_t>(sizes_.size()) - 1;
  }

  CallArguments& into_;
  bp_device device_;
  bool any_size_;
  std::vector<int64_t> sizes_;
};

}  // namespace

CallArguments arguments_of(const torch::jit::Stack& stack, size_t first, const std::string& kinds, bp_device device,
                           bool any_size) {
  CallArguments found;
  Reader reader(found, device, any_size);
  for (size_t i = 0; i < kinds.size() && found.is_plain; ++i)
    if (kinds[i] == 'o')
      found.key.push_back(static_cast<int64_t>(stack[first + i].toTensor().scalar_type()));
    else
      reader.read(stack[first + i], kinds[i], i);
  if (found.tensors.empty()) found.is_plain = false;
  return found;
}

}  // namespace backplane_torch
