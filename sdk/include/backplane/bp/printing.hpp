// std::cout << tensor: as Python shows it, with aligned columns, and long axes cut in the middle.
#pragma once

#include <cmath>
#include <cstdio>
#include <ostream>
#include <sstream>

#include "backplane/bp/indexing.hpp"
#include "backplane/bp/operators.hpp"

namespace bp {

namespace detail {

inline constexpr int64_t kShownWhole = 1000, kShownEdge = 3;
inline constexpr int kShownDigits = 4, kShownWidth = 80;

inline std::string format(const char* pattern, int digits, double number) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, digits, number);
  return text;
}

inline std::vector<std::string> format_floats(const std::vector<double>& numbers) {
  double least = INFINITY, greatest = 0;
  for (const double number : numbers) {
    if (!std::isfinite(number) || number == 0) continue;
    least = std::min(least, std::abs(number));
    greatest = std::max(greatest, std::abs(number));
  }
  std::vector<std::string> texts;
  if (greatest > 0 && (greatest >= 1e8 || least < 1e-4 || greatest / least > 1e6)) {
    for (const double number : numbers) texts.push_back(format("%.*e", kShownDigits, number));
    return texts;
  }
  int decimals = 0;  // as many as the longest needs
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    const std::string text = format("%.*f", kShownDigits, number);
    const size_t last = text.find_last_not_of('0');
    decimals = std::max(decimals, static_cast<int>(last - text.find('.')));
  }
  for (const double number : numbers)
    texts.push_back(format("%.*f", decimals, number) + (decimals || !std::isfinite(number) ? "" : "."));
  return texts;
}

inline std::vector<std::string> format_elements(const Tensor& x) {
  if (x.is_complex()) {
    const std::vector<std::string> reals = format_floats(x.real().to_vector<double>());
    std::vector<std::string> texts = format_floats(x.imag().to_vector<double>());
    for (size_t i = 0; i < texts.size(); ++i) texts[i] = reals[i] + (texts[i][0] == '-' ? "" : "+") + texts[i] + "j";
    return texts;
  }
  if (x.is_floating_point()) return format_floats(x.to_vector<double>());
  std::vector<std::string> texts;
  if (x.dtype() == kUInt64)
    for (const uint64_t number : x.to_vector<uint64_t>()) texts.push_back(std::to_string(number));
  else
    for (const int64_t number : x.to_vector<int64_t>())
      texts.push_back(x.dtype() == kBool ? (number ? "true" : "false") : std::to_string(number));
  return texts;
}

inline Tensor cut_for_printing(Tensor x) {
  for (int64_t axis = 0; axis < x.dim(); ++axis)
    if (x.size(axis) > 2 * kShownEdge)
      x = concat({x.narrow(axis, 0, kShownEdge), x.narrow(axis, x.size(axis) - kShownEdge, kShownEdge)}, axis);
  return x;
}

// The rows of an axis and all below it; takes the texts in order.
class Layout {
 public:
  Layout(const Tensor& x, std::vector<std::string> texts, bool cut) : x_(x), texts_(std::move(texts)), cut_(cut) {
    size_t width = 0;
    for (const std::string& text : texts_) width = std::max(width, text.size());
    if (x.dim())
      for (std::string& text : texts_) text.insert(0, width - text.size(), ' ');
  }

  std::string rows(int64_t axis, size_t indent) {
    if (axis == x_.dim()) return texts_[next_++];
    const bool cut = cut_ && x_.size(axis) > 2 * kShownEdge;
    const int64_t count = cut ? 2 * kShownEdge : x_.size(axis);
    const bool last = axis + 1 == x_.dim();
    const std::string margin = "\n" + std::string(indent + 1, ' ');
    std::string text = "[";
    size_t column = indent + 1;
    for (int64_t i = 0; i < count; ++i) {
      const std::string dots = cut && i == kShownEdge ? "..., " : "";
      const std::string item = rows(axis + 1, indent + 1);
      if (i) text += last ? ", " : "," + std::string(static_cast<size_t>(x_.dim() - axis - 2), '\n') + margin;
      if (last && i && column + item.size() + dots.size() + 2 > kShownWidth) {
        text.back() = '\n';
        text += margin.substr(1);
        column = indent + 1;
      }
      text += last ? dots + item : (dots.empty() ? item : "...," + margin + item);
      column += item.size() + dots.size() + 2;
    }
    return text + "]";
  }

 private:
  const Tensor& x_;
  std::vector<std::string> texts_;
  bool cut_;
  size_t next_ = 0;
};

inline std::string shown_suffix(const Tensor& x) {
  std::string text;
  if (x.dtype() != kBool && x.dtype() != kInt64 && x.dtype() != kFloat32)
    text += std::string(", dtype=") + backplane::dtype_name(x.dtype());
  if (!(x.device() == Device("cpu"))) text += ", device='" + x.device().name() + "'";
  if (const char* op = backplane::node_name(x); *op)
    text += std::string(", grad_op=") + op;
  else if (x.requires_grad())
    text += ", requires_grad=true";
  return text;
}

inline std::string shown_shape(const Tensor& x) {
  std::ostringstream text;
  for (const int64_t size : x.sizes()) text << (text.tellp() > 0 ? ", " : "") << size;
  return "{" + text.str() + "}";
}

}  // namespace detail

inline std::string to_string(const Tensor& x) {
  if (!x.defined()) return "tensor(undefined)";
  if (backplane::is_transformed(x)) {
    std::string names;
    for (const char* name : backplane::transforms_of(x)) names += (names.empty() ? "" : " in ") + std::string(name);
    return "tensor(<no value inside " + names + ">, shape=" + detail::shown_shape(x) +
           ", dtype=" + backplane::dtype_name(x.dtype()) + ")";
  }
  if (backplane::every_call_taken()) return "tensor(<outside of what is traced>, shape=" + detail::shown_shape(x) + ")";
  const Tensor value = x.detach();
  if (x.numel() == 0) return "tensor([], shape=" + detail::shown_shape(x) + detail::shown_suffix(x) + ")";
  const bool cut = x.numel() > detail::kShownWhole;
  detail::Layout layout(x, detail::format_elements(cut ? detail::cut_for_printing(value) : value), cut);
  return "tensor(" + layout.rows(0, 7) + detail::shown_suffix(x) + ")";
}

inline std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << to_string(x); }

}  // namespace bp
