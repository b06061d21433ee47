// What test_gdb.py prints: one variable per type that debugger/gdb_printers.py knows.
#include "backplane/tensor.hpp"
#include "graph/dim.hpp"
#include "registry/registry.hpp"

int main() {
  float elements[] = {1.5f, 2, -3};
  int64_t sizes[] = {1, 3}, strides[] = {3, 1};
  bp_tensor row{}, wide{};
  row.dl.data = elements;
  row.dl.device = {kDLCPU, 0};
  row.dl.ndim = 2;
  row.dl.dtype = {kDLFloat, 32, 1};
  row.dl.shape = sizes;
  row.dl.strides = strides;
  row.flags = BP_TENSOR_CONTIGUOUS;
  wide = row;
  wide.flags = 0;
  wide.dl.dtype = {kDLBfloat, 16, 1};
  backplane::Tensor tensor, empty;
  *reinterpret_cast<bp_tensor**>(&tensor) = &row;
  const backplane::core::graph::Dim number(7), expression = backplane::core::graph::Dim::expression(4);
  alignas(backplane::core::OpEntry) static unsigned char memory[sizeof(backplane::core::OpEntry)] = {};
  alignas(backplane::core::OpRecord) static unsigned char record[sizeof(backplane::core::OpRecord)] = {};
  auto& entry = *reinterpret_cast<backplane::core::OpEntry*>(memory);
  auto* const known = reinterpret_cast<backplane::core::OpRecord*>(record);
  known->name = "bp::add";
  entry.n_args = 2;
  entry.n_results = 1;
  entry.fast_path = backplane::core::FastPath::kLikeOperands;
  *reinterpret_cast<backplane::core::OpRecord**>(&entry.record) = known;
  __builtin_trap();
}
