// full, iota and random_bits.
#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <optional>
#include <span>

#include "backplane/plugin/element.hpp"
#include "backplane/scalar.hpp"
#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

// full's number in the dtype of its result, as the registry's casts convert it.
template <class T>
T converted(const bp_value& number) {
  if (number.tag == BP_TAG_FLOAT) return plugin::convert<T>(number.u.f);
  if (number.tag == BP_TAG_COMPLEX) return plugin::convert<T>(plugin::as_complex(number));
  if ((number.flags & BP_VALUE_UINT64) != 0) return plugin::convert<T>(static_cast<uint64_t>(number.u.i));
  return plugin::convert<T>(number.u.i);
}

// The 32 bits that elements of these bytes repeat in memory, where they do.
std::optional<uint32_t> repeated_word(std::span<const std::byte> element) {
  std::array<uint32_t, 4> words;
  const size_t size = std::max(element.size(), sizeof(uint32_t));
  for (size_t at = 0; at < size; at += element.size())
    std::memcpy(reinterpret_cast<std::byte*>(&words) + at, element.data(), element.size());
  for (size_t k = 1; k < size / sizeof(uint32_t); ++k)
    if (words[k] != words[0]) return std::nullopt;
  return words[0];
}

// vkCmdFillBuffer takes whole words alone.
void fill(const Call& call, const Operand& out, std::span<const std::byte> element) {
  const uint64_t bytes = static_cast<uint64_t>(out.count()) * element.size();
  const auto word = repeated_word(element);
  if (word && out.data % sizeof(uint32_t) == 0 && bytes % sizeof(uint32_t) == 0)
    return call.stream().fill(call.stream().device().place(out.data, bytes), *word, bytes);
  Push push = call.push();
  push.at = {out.data, call.stage(element)};
  push.n = {static_cast<uint32_t>(out.count()), 0, 1u << 1};
  const Shader shader{Module::move, {0, static_cast<uint8_t>(out.dtype), 0, 0}};
  call.dispatch(shader, push, groups_for(out.count()), {out.range()}, {});
}

void full(const Call& call) {
  const Operand out = call.output(0);
  if (out.count() == 0) return;
  plugin::dispatch_dtype<BP_MASK_ANY>(out.dtype, [&]<class T>() {
    const T element = converted<T>(call.value(1));
    fill(call, out, std::as_bytes(std::span(&element, 1)));
  });
}

bool is_whole(const bp_value& number) { return number.tag == BP_TAG_INT || number.tag == BP_TAG_BOOL; }

// A device without float64 gets the values from the host, which computes them in double as devices that have it.
void upload_steps(const Call& call, const Operand& out) {
  const double start = plugin::as_double(call.value(1)), step = plugin::as_double(call.value(2));
  plugin::dispatch_dtype<BP_MASK_ANY>(out.dtype, [&]<class T>() {
    if constexpr (!plugin::kIsComplex<T>) {
      const auto size = static_cast<size_t>(out.count());
      const auto values = std::make_unique<T[]>(size);
      for (size_t i = 0; i < size; ++i) {
        const double value = start + static_cast<double>(i) * step;
        values[i] = T(scalar::cast::of(value, plugin::Compute<T>{}));
      }
      const uint64_t bytes = size * sizeof(T);
      Stream& stream = call.stream();
      stream.upload(stream.device().place(out.data, bytes), reinterpret_cast<const char*>(values.get()), bytes);
    } else {
      BP_CHECK(false, DTYPE, call.op_name(), ": found complex steps, expected real ones on a device without float64");
    }
  });
}

// Integers count exactly, and wrap; with a float among start and step the values are computed in double and rounded
// once.
void iota(const Call& call) {
  const Operand out = call.output(0);
  if (out.count() == 0) return;
  const bp_value &start = call.value(1), &step = call.value(2);
  const bool exact = is_whole(start) && is_whole(step);
  if (!exact && !call.stream().device().has_float64()) return upload_steps(call, out);
  const bp_dtype counted = exact ? BP_INT64 : BP_COMPLEX128;
  Push push = call.push();
  push.at = {out.data, call.stage_number(start, counted), call.stage_number(step, counted)};
  push.n[0] = static_cast<uint32_t>(out.count());
  const bool doubles = !exact || class_of(out.dtype) == Class::kFloat64 || class_of(out.dtype) == Class::kComplex128;
  const Shader shader{doubles ? Module::iota_float64 : Module::iota,
                      {static_cast<uint8_t>(exact ? 0 : 1), 0, static_cast<uint8_t>(out.dtype), 0}};
  call.dispatch(shader, push, groups_for(out.count()), {out.range()}, {});
}

void random_bits(const Call& call) {
  const Operand out = call.output(0);
  if (out.count() == 0) return;
  const bp_generator_state state = *call.value(3).u.g;
  const int64_t words = out.count() * (out.dtype == BP_UINT64 ? 2 : 1);  // the low word first
  Push push = call.push();
  push.at = {out.data, state.key, state.counter};
  push.n[0] = static_cast<uint32_t>(words);
  const auto aligned = static_cast<uint8_t>(out.data % sizeof(uint64_t) == 0 ? 1 : 0);
  call.dispatch({Module::random, {0, 0, 0, aligned}}, push, groups_for((words + 3) / 4), {out.range()}, {});
}

constexpr Row kRows[] = {
    {"bp::full", kernel<full>, BP_MASK_ANY, 0},
    {"bp::iota", kernel<iota>, BP_MASK_ANY, 0},
    {"bp::random_bits", kernel<random_bits>, BP_MASK_ANY, 0},
};

}  // namespace

void register_creation(const plugin::Registrar& registrar, Backend&) { register_rows(registrar, kRows, __FILE__); }

}  // namespace backplane::vulkan
