#include "fuse/tile.hpp"

#include <algorithm>
#include <cstring>

#include "loops/cast_row.hpp"

namespace backplane::cpu::fuse {
namespace {

constexpr int64_t kLine = 64;
int64_t padded(int64_t n) { return (n + kLine - 1) / kLine * kLine; }

// Row by row from one place to another.
void cast_rows(bp_dtype of, const Place& from, bp_dtype into, const Place& to, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    cast_row(of, from.p + i * from.row, from.column, into, to.p + i * to.row, to.column, columns);
}

}  // namespace

Tile::Tile(const bp_frame* frame, const Program& program, char* uniform)
    : frame_(frame), program_(program), places_(program.slots.size()) {
  for (size_t i = 0; i < places_.size(); ++i) {
    const Slot& slot = program.slots[i];
    if (slot.kind == Slot::Kind::kNumber) places_[i].p = const_cast<char*>(program.numbers[slot.at].bytes);
    if (slot.kind == Slot::Kind::kUniform) places_[i].p = uniform + slot.at * sizeof(Number);
  }
}

int64_t Tile::memory_for(const Program& program, int64_t elements, int64_t rows) {
  return (program.full_bytes + program.spill_bytes) * padded(elements) + program.row_bytes * padded(rows) + kLine;
}

void Tile::begin(const Part& part, char* memory, int64_t elements, int64_t rows) {
  part_ = &part;
  columns_ = -1;
  if (memory == nullptr) return;  // uniform values need no buffers
  memory += (kLine - reinterpret_cast<intptr_t>(memory) % kLine) % kLine;
  char* row_memory = memory + program_.full_bytes * padded(elements);
  spill_ = row_memory + program_.row_bytes * padded(rows);
  for (const uint32_t i : part.buffers) {
    const Slot& slot = program_.slots[i];
    if (slot.extent == Extent::kFull)
      places_[i] = {memory + slot.at * padded(elements), 0, slot.item()};
    else
      places_[i] = {row_memory + slot.at * padded(rows), slot.item(), 0};
  }
}

void Tile::set_tensors(const Place* places) {
  for (const uint32_t k : part_->tensors) places_[program_.tensors[k]] = *places++;
}

void Tile::set_columns(int64_t columns) {
  if (columns == columns_) return;
  columns_ = columns;
  for (const uint32_t i : part_->buffers)
    if (program_.slots[i].extent == Extent::kFull) places_[i].row = columns * places_[i].column;
}

void Tile::set_results(std::vector<ColumnPart>* columns, std::vector<WholePart>* wholes) {
  column_parts_ = columns;
  whole_parts_ = wholes;
}

void Tile::run(int64_t rows, int64_t columns) {
  for (const Instruction& each : part_->code) switch (each.kind) {
      case Instruction::Kind::kMap:
        map(each, rows, columns);
        break;
      case Instruction::Kind::kChain:
        chain(each, rows, columns);
        break;
      case Instruction::Kind::kCode:
        code(each, rows, columns);
        break;
      case Instruction::Kind::kCast:
        cast(each, rows, columns);
        break;
      case Instruction::Kind::kReduce:
        reduce(each, rows, columns);
        break;
      case Instruction::Kind::kWhole: {
        const Place from = as_rows(each, rows, columns);
        (*whole_parts_)[slot(each, 0).at].add(from.p, from.row, rows, columns);
        break;
      }
      case Instruction::Kind::kColumns: {
        const Place from = as_rows(each, rows, columns);
        (*column_parts_)[slot(each, 0).at].add(from.p, from.row, rows);
        break;
      }
    }
}

void Tile::map(const Instruction& each, int64_t rows, int64_t columns) {
  char* pointers[kMostOperands];
  int64_t strides[kMostOperands];
  const bool by_row = each.extent == Extent::kRow;
  bool flat = true;
  for (int k = 0; k < each.n_slots; ++k) {
    const Place& at = place(each, k);
    pointers[k] = at.p;
    strides[k] = by_row ? at.row : at.column;
    flat = flat && at.row == columns * at.column;
  }
  if (by_row) return check(each, each.loop(pointers, strides, rows));
  if (flat || rows == 1) return check(each, each.loop(pointers, strides, rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    check(each, each.loop(pointers, strides, columns));
    for (int k = 0; k < each.n_slots; ++k) pointers[k] += place(each, k).row;
  }
}

// A chain takes adjacent elements, and values per row; all else it finds in a buffer.
void Tile::chain(const Instruction& each, int64_t rows, int64_t columns) {
  const bp_dtype dtype = slot(each, 0).dtype;
  const int64_t item = slot(each, 0).item();
  ChainRows call;
  bool flat = true;
  for (int k = 0; k < each.n_slots; ++k) {
    Place at = place(each, k);
    call.same[k] = k > 0 && at.column == 0;
    if (!call.same[k] && at.column != item && columns > 1) {
      const Place buffer{spill_ + k * rows * columns * item, columns * item, item};
      if (k > 0) cast_rows(dtype, at, dtype, buffer, rows, columns);
      at = buffer;
    }
    call.p[k] = at.p;
    call.row[k] = at.row;
    flat = flat && at.row == (call.same[k] ? 0 : columns * item);
  }
  call.rows = flat ? 1 : rows;
  call.columns = flat ? rows * columns : columns;
  each.chain(call);
  const Place& to = place(each, 0);
  if (call.p[0] == to.p) return;
  cast_rows(dtype, {call.p[0], call.row[0], item}, dtype, to, rows, columns);
}

namespace {

// The last elements of rows go through the code on copies. `rows` is unchanged since before the whole vectors ran.
void run_tails(const MachineCode& code, CodeRows rows, int n_stepping, int n_pointers, int n_repeated, size_t rest) {
  alignas(kVectorBytes) char copies[kMostPointers][kVectorBytes] = {};
  const int64_t whole = rows.bytes;
  for (int64_t row = 0; row < rows.rows; ++row) {
    CodeRows one{};
    one.rows = 1;
    one.bytes = kVectorBytes;
    for (int k = 0; k < n_pointers; ++k) {
      one.p[k].p = copies[k];
      if (k < n_stepping) std::memcpy(copies[k], rows.p[k].p + row * rows.p[k].row + whole, rest);
    }
    for (int k = 0; k < n_repeated; ++k) one.element[k].p = rows.element[k].p + row * rows.element[k].row;
    code.run(one);
    for (int k = n_stepping; k < n_pointers; ++k)
      std::memcpy(rows.p[k].p + row * rows.p[k].row + whole, copies[k], rest);
  }
}

}  // namespace

// As a chain.
void Tile::code(const Instruction& each, int64_t rows, int64_t columns) {
  const bp_dtype dtype = slot(each, 0).dtype;
  const int64_t item = slot(each, 0).item();
  const int n_operands = each.n_slots - each.n_results;
  Place results[kMostPointers];
  CodeRows call;
  int n_stepping = 0, n_repeated = 0;
  bool flat = true;
  for (int i = 0; i < each.n_slots; ++i) {
    const int k = i < n_operands ? each.n_results + i : i - n_operands;  // operands first
    const bool is_result = k < each.n_results;
    Place at = place(each, k);
    if (!is_result && slot(each, k).extent != Extent::kFull) {
      call.element[n_repeated++] = {at.p, at.row};
      flat = flat && at.row == 0;
      continue;
    }
    if (at.column != item && columns > 1) {
      const Place buffer{spill_ + k * rows * columns * item, columns * item, item};
      if (!is_result) cast_rows(dtype, at, dtype, buffer, rows, columns);
      at = buffer;
    }
    flat = flat && at.row == columns * item;
    if (is_result)
      results[k] = at;
    else
      call.p[n_stepping++] = {at.p, at.row};
  }
  for (int k = 0; k < each.n_results; ++k) call.p[n_stepping + k] = {results[k].p, results[k].row};
  call.rows = flat ? 1 : rows;
  const int64_t bytes = (flat ? rows * columns : columns) * item;
  call.bytes = bytes - bytes % kVectorBytes;
  const CodeRows as_given = call;
  if (call.bytes > 0) each.code->run(call);
  if (call.bytes < bytes)
    run_tails(*each.code, as_given, n_stepping, n_stepping + each.n_results, n_repeated,
              static_cast<size_t>(bytes - call.bytes));
  for (int k = 0; k < each.n_results; ++k) {
    const Place& to = place(each, k);
    if (results[k].p != to.p) cast_rows(dtype, results[k], dtype, to, rows, columns);
  }
}

void Tile::check(const Instruction& each, const char* fault) const {
  BP_CHECK(fault == nullptr, DATA, each.op, ": ", fault);
}

void Tile::cast(const Instruction& each, int64_t rows, int64_t columns) {
  const Place &to = place(each, 0), &from = place(each, 1);
  const bp_dtype into = slot(each, 0).dtype, of = slot(each, 1).dtype;
  if (each.extent == Extent::kRow) return cast_row(of, from.p, from.row, into, to.p, to.row, rows);
  if (rows == 1 || (to.row == columns * to.column && from.row == columns * from.column))
    return cast_row(of, from.p, from.column, into, to.p, to.column, rows * columns);
  cast_rows(of, from, into, to, rows, columns);
}

// The operand of a reduction, its columns neighbours.
Place Tile::as_rows(const Instruction& each, int64_t rows, int64_t columns) {
  const Place& from = place(each, 1);
  const bp_dtype dtype = slot(each, 1).dtype;
  const int64_t item = slot(each, 1).item();
  if (from.column == item || columns <= 1) return from;
  const Place buffer{spill_, columns * item, item};
  cast_rows(dtype, from, dtype, buffer, rows, columns);
  return buffer;
}

void Tile::reduce(const Instruction& each, int64_t rows, int64_t columns) {
  const Place& to = place(each, 0);
  const Place from = as_rows(each, rows, columns);
  const bp_dtype dtype = slot(each, 1).dtype;
  each.reduction->run(
      {frame_, from.p, to.p, rows, columns, from.row, to.row, dtype, slot(each, 0).dtype, each.numbers.data()});
}

}  // namespace backplane::cpu::fuse
