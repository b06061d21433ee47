// See dnn_matmul.hpp. A plan is one compiled product; each thread keeps those that it has used, by shape and strides.
#ifdef BACKPLANE_ONEDNN

#include "kernels/linalg/dnn_matmul.hpp"

#include <array>
#include <dnnl.hpp>
#include <optional>
#include <string>

#include "kernels/linalg/plan_cache.hpp"
#include "runtime/dnn.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

using dnnl::memory;

// Multiply-adds from which a plan is worth making: below, a product takes microseconds in any way. The first product of
// a shape is made by its plan as well, though that takes milliseconds: its bits are those of later ones.
constexpr int64_t kLeastWork = int64_t{1} << 17;

struct Product {
  dnnl::matmul primitive;
  memory::desc a, b, c, scratchpad;
};

using Key = std::array<int64_t, 9>;
Key key_of(const Matrix& a, const Matrix& b, const Matrix& c) {
  return {c.rows, c.cols, a.cols, a.row_stride, a.col_stride, b.row_stride, b.col_stride, c.row_stride, c.col_stride};
}

// A stride that no element needs is given as in a matrix without gaps, because oneDNN compares strides.
memory::desc desc_of(const Matrix& m) {
  const bool by_columns = m.row_stride == 1 && m.rows > 1 && m.cols > 1;
  const int64_t row = m.rows > 1 ? m.row_stride : m.cols, column = m.cols > 1 ? m.col_stride : 1;
  return {{m.rows, m.cols}, memory::data_type::bf16, {by_columns ? 1 : row, column}};
}

std::optional<Product> make_product(const Matrix& a, const Matrix& b, const Matrix& c) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  try {
    const memory::desc of_a = desc_of(a), of_b = desc_of(b), of_c = desc_of(c);
    const dnnl::matmul::primitive_desc found({of_a, of_b, of_c}, attributes, dnn_engine());
    if (std::string(found.impl_info_str()).find("ref") != std::string::npos) return {};
    return Product{dnnl::matmul(found), of_a, of_b, of_c, found.scratchpad_desc()};
  } catch (const dnnl::error& error) {
    // No kernel: the caller has other ways.
    if (error.status != dnnl_unimplemented && error.status != dnnl_invalid_arguments) throw;
    return {};
  }
}

// NULL where oneDNN has no kernel.
const Product* product_of(const Matrix& a, const Matrix& b, const Matrix& c) {
  thread_local PlanCache<Key, std::optional<Product>, 64> kept;
  const std::optional<Product>& product = kept.find(key_of(a, b, c), [&] { return make_product(a, b, c); });
  return product ? &*product : nullptr;
}

const bool kHasBfloat16 = [] {
  const auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
}();

Matrix transposed(const Matrix& m) { return {m.data, m.cols, m.rows, m.col_stride, m.row_stride}; }

}  // namespace

bool dnn_has_bfloat16() { return kHasBfloat16; }

bool dnn_matmul(const Matrix& a, const Matrix& b, const Matrix& c) {
  // A vector as a row: as a column it took four times as long.
  if (c.cols == 1 && c.rows > 1 && c.row_stride == 1) return dnn_matmul(transposed(b), transposed(a), transposed(c));
  if (!dnn_has_bfloat16() || c.rows * c.cols * a.cols < kLeastWork) return false;
  const DnnCall call;
  const Product* product = product_of(a, b, c);
  if (!product) return false;
  const auto memory_at = [](const memory::desc& desc, char* data) { return memory(desc, dnn_engine(), data); };
  const Scratch<char> scratchpad(static_cast<int64_t>(product->scratchpad.get_size()));
  dnnl::stream stream(dnn_engine());
  product->primitive.execute(stream, {{DNNL_ARG_SRC, memory_at(product->a, a.data)},
                                      {DNNL_ARG_WEIGHTS, memory_at(product->b, b.data)},
                                      {DNNL_ARG_DST, memory_at(product->c, c.data)},
                                      {DNNL_ARG_SCRATCHPAD, memory_at(product->scratchpad, scratchpad.get())}});
  stream.wait();
  return true;
}

}  // namespace backplane::cpu

#endif
