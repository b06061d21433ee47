// Runs a program: finds its tensors, walks the space tile by tile on the host's threads, and hands every instruction to
// the loop that it names.
#include <cstring>

#include "fuse/columns.hpp"
#include "fuse/walk.hpp"
#include "loops/cast_row.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu::fuse {
namespace {

constexpr int64_t kLine = 64;
// Weighted elements from which a second thread pays: in the cache an instruction takes a tenth of a kernel's time.
constexpr int64_t kGrain = 10 * kCheapGrain;
constexpr int64_t kPartElements = 65536;  // of the rows that are reduced one by one
int64_t padded(int64_t n) { return (n + kLine - 1) / kLine * kLine; }

// A worker's view of the slots, and the memory of its buffers.
class Tile {
 public:
  Tile(const bp_frame* frame, const Program& program, const std::vector<uint32_t>& tensors, char* uniform)
      : frame_(frame), program_(program), tensors_(tensors), places_(program.slots.size()) {
    for (size_t i = 0; i < places_.size(); ++i) {
      const Slot& slot = program.slots[i];
      if (slot.kind == Slot::Kind::kNumber) places_[i].p = const_cast<char*>(program.numbers[slot.at].bytes);
      if (slot.kind == Slot::Kind::kUniform) places_[i].p = uniform + slot.at * sizeof(Number);
    }
  }
  static int64_t memory_for(const Program& program, int64_t elements, int64_t rows) {
    return (program.full_bytes + program.spill_bytes) * padded(elements) + program.row_bytes * padded(rows) + kLine;
  }
  void set_buffers(char* memory, int64_t elements, int64_t rows) {
    memory += (kLine - reinterpret_cast<intptr_t>(memory) % kLine) % kLine;
    char* row_memory = memory + program_.full_bytes * padded(elements);
    spill_ = row_memory + program_.row_bytes * padded(rows);
    for (size_t i = 0; i < places_.size(); ++i) {
      const Slot& slot = program_.slots[i];
      if (slot.kind != Slot::Kind::kBuffer) continue;
      if (slot.extent == Extent::kFull)
        places_[i] = {memory + slot.at * padded(elements), 0, slot.item()};
      else
        places_[i] = {row_memory + slot.at * padded(rows), slot.item(), 0};
    }
  }

  void set_tensors(const Place* places) {
    for (size_t k = 0; k < tensors_.size(); ++k) places_[tensors_[k]] = places[k];
  }
  void set_columns(int64_t columns) {
    if (columns == columns_) return;
    columns_ = columns;
    for (size_t i = 0; i < places_.size(); ++i)
      if (program_.slots[i].kind == Slot::Kind::kBuffer && program_.slots[i].extent == Extent::kFull)
        places_[i].row = columns * places_[i].column;
  }

  // Where reductions over the rows add up, of the tiles that are run from now on.
  void set_parts(std::vector<ColumnPart>* parts) { parts_ = parts; }

  void run(const std::vector<Instruction>& code, int64_t rows, int64_t columns) {
    for (const Instruction& each : code) switch (each.kind) {
        case Instruction::Kind::kMap:
          map(each, rows, columns);
          break;
        case Instruction::Kind::kChain:
          chain(each, rows, columns);
          break;
        case Instruction::Kind::kCast:
          cast(each, rows, columns);
          break;
        case Instruction::Kind::kReduce:
          reduce(each, rows, columns);
          break;
        case Instruction::Kind::kColumns: {
          const Place from = as_rows(each, rows, columns);
          (*parts_)[slot(each, 0).at].add(from.p, from.row, rows);
          break;
        }
      }
  }

 private:
  const Place& place(const Instruction& each, int k) const { return places_[each.slots[k]]; }
  const Slot& slot(const Instruction& each, int k) const { return program_.slots[each.slots[k]]; }

  void map(const Instruction& each, int64_t rows, int64_t columns) {
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
  // A chain takes neighbours, and what is the same in a row; anything else it finds in a buffer.
  void chain(const Instruction& each, int64_t rows, int64_t columns) {
    const bp_dtype dtype = slot(each, 0).dtype;
    const int64_t item = slot(each, 0).item();
    ChainRows call;
    bool flat = true;
    for (int k = 0; k < each.n_slots; ++k) {
      Place at = place(each, k);
      call.same[k] = k > 0 && at.column == 0;
      if (!call.same[k] && at.column != item && columns > 1) {
        const Place buffer{spill_ + k * rows * columns * item, columns * item, item};
        for (int64_t i = 0; i < rows && k > 0; ++i)
          cast_row(dtype, at.p + i * at.row, at.column, dtype, buffer.p + i * buffer.row, item, columns);
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
    for (int64_t i = 0; i < rows; ++i)
      cast_row(dtype, call.p[0] + i * call.row[0], item, dtype, to.p + i * to.row, to.column, columns);
  }

  void check(const Instruction& each, const char* fault) const {
    BP_CHECK(fault == nullptr, DATA, each.op, ": ", fault);
  }

  void cast(const Instruction& each, int64_t rows, int64_t columns) {
    const Place &to = place(each, 0), &from = place(each, 1);
    const bp_dtype into = slot(each, 0).dtype, of = slot(each, 1).dtype;
    if (each.extent == Extent::kRow) return cast_row(of, from.p, from.row, into, to.p, to.row, rows);
    if (rows == 1 || (to.row == columns * to.column && from.row == columns * from.column))
      return cast_row(of, from.p, from.column, into, to.p, to.column, rows * columns);
    for (int64_t i = 0; i < rows; ++i)
      cast_row(of, from.p + i * from.row, from.column, into, to.p + i * to.row, to.column, columns);
  }

  // The operand of a reduction, its columns neighbours.
  Place as_rows(const Instruction& each, int64_t rows, int64_t columns) {
    const Place& from = place(each, 1);
    const bp_dtype dtype = slot(each, 1).dtype;
    const int64_t item = slot(each, 1).item();
    if (from.column == item || columns <= 1) return from;
    for (int64_t i = 0; i < rows; ++i)
      cast_row(dtype, from.p + i * from.row, from.column, dtype, spill_ + i * columns * item, item, columns);
    return {spill_, columns * item, item};
  }

  void reduce(const Instruction& each, int64_t rows, int64_t columns) {
    const Place& to = place(each, 0);
    const Place from = as_rows(each, rows, columns);
    const bp_dtype dtype = slot(each, 1).dtype;
    each.reduction->run(
        {frame_, from.p, to.p, rows, columns, from.row, to.row, dtype, slot(each, 0).dtype, each.numbers.data()});
  }

  const bp_frame* frame_;
  const Program& program_;
  const std::vector<uint32_t>& tensors_;
  std::vector<Place> places_;
  std::vector<ColumnPart>* parts_ = nullptr;
  char* spill_ = nullptr;
  int64_t columns_ = -1;
};

// The tensors of one execution: their slots, where they lie, and the contiguous stand-ins of those whose columns lie
// unevenly, or that nobody wants.
class Tensors {
 public:
  Tensors(const Program& program, const bp_value* inputs, const bp_value* outs) : program_(program) {
    for (uint32_t i = 0; i < program.slots.size(); ++i)
      if (program.slots[i].tensor()) slots.push_back(i);
    const size_t rank = program.space.dims.size();
    sizes = program.space.dims;
    for (const uint32_t i : slots)
      for (size_t d = 0; d < rank; ++d)
        if (const bp_tensor* t = tensor(i, inputs, outs); t != nullptr && program.slots[i].axes[d] >= 0)
          sizes[d] = t->dl.shape[program.slots[i].axes[d]];
    strides.resize(slots.size() * rank, 0);
    for (size_t k = 0; k < slots.size(); ++k) {
      const Slot& slot = program.slots[slots[k]];
      const bp_tensor* t = tensor(slots[k], inputs, outs);
      int64_t* own = strides.data() + k * rank;
      bases.push_back(t == nullptr ? nullptr : data_of(t));
      for (size_t d = 0; t != nullptr && d < rank; ++d)
        if (slot.axes[d] >= 0) own[d] = t->dl.strides[slot.axes[d]] * slot.item();
      if (t == nullptr || !columns_even(own)) stage(k, slot, own, t != nullptr);
    }
  }
  int64_t count() const {
    int64_t product = 1;
    for (const int64_t size : sizes) product *= size;
    return product;
  }
  void write_back() const {
    for (const Staged& each : staged_)
      if (each.result) copy(each.slot->dtype, each.memory->get(), each.stand_in, each.original, each.strides);
  }

  std::vector<uint32_t> slots;
  std::vector<int64_t> sizes, strides;
  std::vector<char*> bases;

 private:
  struct Staged {
    const Slot* slot;
    std::unique_ptr<Scratch<char>> memory;
    char* original;
    std::vector<int64_t> strides, stand_in;
    bool result;
  };

  // NULL: an output that is not wanted.
  const bp_tensor* tensor(uint32_t i, const bp_value* inputs, const bp_value* outs) const {
    const Slot& slot = program_.slots[i];
    if (slot.kind == Slot::Kind::kInput) return inputs[slot.at].u.t;
    if (slot.kind == Slot::Kind::kConstant) return program_.constants[slot.at];
    return outs[slot.at].tag == BP_TAG_TENSOR ? outs[slot.at].u.t : nullptr;
  }
  bool columns_even(const int64_t* own) const {
    int64_t step = 0, run = 0;
    for (size_t d = sizes.size(); d-- > program_.space.outer();) {
      if (sizes[d] == 1) continue;
      if (run != 0 && own[d] != step * run) return false;
      if (run == 0) step = own[d], run = 1;
      run *= sizes[d];
    }
    return true;
  }
  void stage(size_t k, const Slot& slot, int64_t* own, bool wanted) {
    Staged each{&slot, nullptr, bases[k], {own, own + sizes.size()}, std::vector<int64_t>(sizes.size(), 0), false};
    // What repeats along some of the columns' dims alone gets an element for each, or its columns stay uneven.
    const size_t outer = program_.space.outer();
    const bool by_column = std::any_of(slot.axes.begin() + static_cast<std::ptrdiff_t>(outer), slot.axes.end(),
                                       [](int32_t axis) { return axis >= 0; });
    int64_t bytes = slot.item();
    for (size_t d = sizes.size(); d-- > 0;) {
      if (slot.axes[d] < 0 && (d < outer || !by_column)) continue;
      each.stand_in[d] = bytes;
      bytes *= sizes[d];
    }
    each.memory = std::make_unique<Scratch<char>>(bytes);
    each.result = wanted && slot.kind == Slot::Kind::kOutput;
    if (slot.kind != Slot::Kind::kOutput)
      copy(slot.dtype, each.original, each.strides, each.memory->get(), each.stand_in);
    std::copy(each.stand_in.begin(), each.stand_in.end(), own);
    bases[k] = each.memory->get();
    staged_.push_back(std::move(each));
  }
  // Over the dims along which `to` has elements of its own.
  void copy(bp_dtype dtype, const char* from, const std::vector<int64_t>& from_strides, char* to,
            const std::vector<int64_t>& to_strides, size_t d = 0) const {
    while (d < sizes.size() && from_strides[d] == 0 && to_strides[d] == 0) ++d;
    if (d == sizes.size()) return cast_row(dtype, from, 0, dtype, to, 0, 1);
    if (d + 1 == sizes.size()) return cast_row(dtype, from, from_strides[d], dtype, to, to_strides[d], sizes[d]);
    for (int64_t i = 0; i < sizes[d]; ++i)
      copy(dtype, from + i * from_strides[d], from_strides, to + i * to_strides[d], to_strides, d + 1);
  }

  const Program& program_;
  std::vector<Staged> staged_;
};

}  // namespace

void execute(const bp_frame* frame, const Program& program, const bp_value* inputs, int32_t n_inputs, bp_value* outs,
             int32_t n_outs) {
  BP_CHECK(n_inputs == static_cast<int32_t>(program.n_inputs) && n_outs == static_cast<int32_t>(program.n_outputs),
           VALUE, frame->op->name, ": a region of ", program.n_inputs, " inputs and ", program.n_outputs,
           " outputs was given ", n_inputs, " and ", n_outs);
  const Tensors tensors(program, inputs, outs);
  if (tensors.count() == 0) return;
  std::vector<Number> uniform(program.n_uniform);
  char* const shared = reinterpret_cast<char*>(uniform.data());
  if (!program.uniform.empty()) {
    Tile once(frame, program, tensors.slots, shared);
    std::vector<Place> places;
    for (char* base : tensors.bases) places.push_back({base, 0, 0});
    once.set_tensors(places.data());
    once.run(program.uniform, 1, 1);
  }
  if (program.tiled.empty()) return tensors.write_back();
  const Walk walk(program, tensors.sizes, tensors.bases, tensors.strides);
  // A unit of work: a tile, or a part of the rows where some are reduced.
  const int64_t unit = program.columns.empty() ? 1 : walk.tiles_of_part(kPartElements / walk.columns(), kLeafRows);
  const int64_t units = (walk.tiles() + unit - 1) / unit;
  ColumnResults results(program, walk.columns(), walk.all_rows(), std::min(unit * walk.rows(), walk.all_rows()), units);
  const auto range = [&](int64_t begin, int64_t end) {
    const Scratch<char> memory(Tile::memory_for(program, walk.elements(), walk.rows()));
    Tile tile(frame, program, tensors.slots, shared);
    tile.set_buffers(memory.get(), walk.elements(), walk.rows());
    std::vector<Place> places(tensors.slots.size());
    const auto run = [&](int64_t rows, int64_t columns) {
      tile.set_tensors(places.data());
      tile.set_columns(columns);
      tile.run(program.tiled, rows, columns);
    };
    if (program.columns.empty()) return walk.for_each_tile(begin, end, places.data(), run);
    for (int64_t i = begin; i < end; ++i) {
      std::vector<ColumnPart> parts = results.part();
      tile.set_parts(&parts);
      walk.for_each_tile(i * unit, std::min((i + 1) * unit, walk.tiles()), places.data(), run);
      results.finish(parts, i);
    }
  };
  const int64_t cost = std::max<int64_t>(unit * walk.elements() * program.weight, 1);
  const int64_t grain = std::max<int64_t>(kGrain / cost, 1);
  if (units <= grain)
    range(0, units);
  else
    plugin::parallel_for(frame, 0, units, grain, range);
  results.store(outs);
  tensors.write_back();
}

}  // namespace backplane::cpu::fuse
