#include "fuse/schedule.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "fuse/arithmetic_runs.hpp"

namespace backplane::cpu::fuse {
namespace {

class Schedule {
 public:
  Schedule(Program& program, std::vector<Instruction> code) : program_(program), code_(std::move(code)) {}
  void run() {
    for (uint32_t i = 0; i < program_.slots.size(); ++i)
      if (slot(i).tensor()) program_.tensors.push_back(i);
    const size_t parts = order_by_parts();
    join_arithmetic(program_, code_);
    join_chains();
    assign_buffers();
    make_parts(parts);
  }

 private:
  Slot& slot(uint32_t i) { return program_.slots[i]; }

  // A chain that only another one reads becomes its beginning.
  void join_chains() {
    std::vector<uint32_t> reads(program_.slots.size(), 0);
    std::vector<size_t> maker(program_.slots.size(), code_.size());
    for (size_t t = 0; t < code_.size(); ++t) {
      if (code_[t].kind == Instruction::Kind::kChain) maker[code_[t].slots[0]] = t;
      for (int k = code_[t].n_results; k < code_[t].n_slots; ++k) ++reads[code_[t].slots[k]];
    }
    std::vector<bool> joined(code_.size(), false);
    for (Instruction& later : code_) {
      if (later.kind != Instruction::Kind::kChain) continue;
      const auto length = [&](int side) {
        const uint32_t read = later.slots[1 + side];
        const bool alone = slot(read).kind == Slot::Kind::kBuffer && reads[read] == 1 && maker[read] < code_.size();
        return alone ? code_[maker[read]].n_slots - 2 : 0;
      };
      const int lengths[2] = {length(0), length(1)};
      const auto usable = [&](int side) { return lengths[side] > 0 && lengths[side] < kLongestChain; };
      if (!usable(0) && !usable(1)) continue;
      const int side = usable(0) && (!usable(1) || lengths[0] >= lengths[1]) ? 0 : 1;
      const size_t earlier = maker[later.slots[1 + side]];
      join(code_[earlier], later, side);
      joined[earlier] = true;
    }
    std::vector<Instruction> kept;
    for (size_t t = 0; t < code_.size(); ++t)
      if (!joined[t]) kept.push_back(std::move(code_[t]));
    code_ = std::move(kept);
    for (Instruction& each : code_)
      if (each.kind == Instruction::Kind::kChain) {
        const auto item = static_cast<uint32_t>(slot(each.slots[0]).item());
        program_.spill_bytes = std::max(program_.spill_bytes, each.n_slots * item);
        each.chain = find_chain(slot(each.slots[0]).dtype, each.links);
      }
  }
  // `later` has one link, whose operand `side` is the result of `earlier`.
  static void join(const Instruction& earlier, Instruction& later, int side) {
    const Link link = later.links[0];
    const Link swapped = link == Link::kSubtract ? Link::kSubtractSwapped
                         : link == Link::kDivide ? Link::kDivideSwapped
                                                 : link;
    const uint32_t other = later.slots[2 - side];
    const int links = earlier.n_slots - 2;
    later.weight += earlier.weight;
    std::copy_n(earlier.links, links, later.links);
    std::copy_n(earlier.slots + 1, links + 1, later.slots + 1);
    later.links[links] = side == 0 ? link : swapped;
    later.slots[links + 2] = other;
    later.n_slots = static_cast<uint8_t>(links + 3);
  }

  // ---- parts

  // Puts the instructions of each part together, uniform ones first; returns how many parts the others make.
  size_t order_by_parts() {
    // Slots lead to their part's first one; all reductions over tiles are of one.
    std::vector<uint32_t> leader(program_.slots.size() + 1);
    std::iota(leader.begin(), leader.end(), 0);
    const auto find = [&](uint32_t i) {
      while (leader[i] != i) i = leader[i] = leader[leader[i]];
      return i;
    };
    std::map<std::pair<Slot::Kind, uint32_t>, uint32_t> same_tensor;
    for (const Instruction& each : code_) {
      if (each.extent == Extent::kUniform) continue;
      if (program_.reduces_tiles()) leader[find(each.slots[0])] = find(static_cast<uint32_t>(leader.size() - 1));
      for (int k = 0; k < each.n_slots; ++k) {
        const Slot& used = slot(each.slots[k]);
        if (used.extent == Extent::kUniform && k > 0) continue;
        leader[find(each.slots[k])] = find(each.slots[0]);
        if (used.tensor())
          leader[find(same_tensor.try_emplace({used.kind, used.at}, each.slots[k]).first->second)] =
              find(each.slots[k]);
      }
    }
    std::map<uint32_t, size_t> number;
    const auto part_of = [&](const Instruction& each) {
      return each.extent == Extent::kUniform ? 0
                                             : number.try_emplace(find(each.slots[0]), number.size() + 1).first->second;
    };
    for (Instruction& each : code_) each.part = part_of(each);
    std::stable_sort(code_.begin(), code_.end(),
                     [](const Instruction& a, const Instruction& b) { return a.part < b.part; });
    return number.size();
  }

  void make_parts(size_t count) {
    program_.tiled.resize(count);
    std::vector<size_t> noted(program_.slots.size(), SIZE_MAX);  // the latest part that has it
    for (Instruction& each : code_) {
      Part& part = each.part == 0 ? program_.uniform : program_.tiled[each.part - 1];
      for (int k = 0; k < each.n_slots; ++k) {
        const uint32_t used = each.slots[k];
        if (std::exchange(noted[used], each.part) == each.part) continue;
        const auto tensor = std::lower_bound(program_.tensors.begin(), program_.tensors.end(), used);
        if (slot(used).tensor()) part.tensors.push_back(static_cast<uint32_t>(tensor - program_.tensors.begin()));
        if (slot(used).kind == Slot::Kind::kBuffer) part.buffers.push_back(used);
      }
      part.weight += each.weight;
      part.code.push_back(std::move(each));
    }
  }

  // ---- buffers

  void assign_buffers() {
    std::vector<size_t> last(program_.slots.size(), 0);
    for (size_t t = 0; t < code_.size(); ++t)
      for (int k = 0; k < code_[t].n_slots; ++k) last[code_[t].slots[k]] = t;
    // Free ones by extent and size; the latest used is taken first, since it is in the nearest cache.
    std::map<std::pair<Extent, int64_t>, std::vector<uint32_t>> free;
    for (size_t t = 0; t < code_.size(); ++t) {
      const Instruction& code = code_[t];
      const auto give_back = [&] {
        for (int k = code.n_results; k < code.n_slots; ++k) {
          Slot& used = slot(code.slots[k]);
          if (used.kind != Slot::Kind::kBuffer || last[code.slots[k]] != t) continue;
          free[{used.extent, used.item()}].push_back(used.at);
          last[code.slots[k]] = code_.size();  // given back once, if it is read twice
        }
      };
      if (code.in_place) give_back();
      for (int k = 0; k < code.n_results; ++k) {
        Slot& made = slot(code.slots[k]);
        if (made.kind != Slot::Kind::kBuffer) continue;
        auto& fitting = free[{made.extent, made.item()}];
        if (fitting.empty()) {
          uint32_t& bytes = made.extent == Extent::kFull ? program_.full_bytes : program_.row_bytes;
          made.at = bytes;
          bytes += static_cast<uint32_t>(made.item());
        } else {
          made.at = fitting.back();
          fitting.pop_back();
        }
      }
      for (int k = 0; k < code.n_results; ++k) {
        const Slot& made = slot(code.slots[k]);
        if (made.kind == Slot::Kind::kBuffer && last[code.slots[k]] == t)
          free[{made.extent, made.item()}].push_back(made.at);
      }
      if (!code.in_place) give_back();
    }
  }

  Program& program_;
  std::vector<Instruction> code_;
};

}  // namespace

void schedule(Program& program, std::vector<Instruction> code) { Schedule(program, std::move(code)).run(); }

bool may_share(const Program& program, uint32_t out, uint32_t in) {
  size_t written = 0, read = 0, t = 0;
  bool both = false, written_once = false, same_axes = true;
  const Slot* to = nullptr;
  for (const Slot& slot : program.slots)
    if (slot.kind == Slot::Kind::kOutput && slot.at == out) to = &slot;
  if (to == nullptr) return false;
  const auto look = [&](const std::vector<Instruction>& code) {
    for (const Instruction& each : code) {
      ++t;
      for (int k = 0; k < each.n_slots; ++k) {
        const Slot& slot = program.slots[each.slots[k]];
        if (slot.kind == Slot::Kind::kInput && slot.at == in) {
          read = t;
          same_axes = same_axes && slot.axes == to->axes && slot.dtype == to->dtype && slot.extent == to->extent;
        }
        if (&slot == to && k < each.n_results) {
          written = t;
          written_once = true;
          both = each.in_place;
        }
      }
    }
  };
  look(program.uniform.code);
  for (const Part& part : program.tiled) look(part.code);
  return written_once && same_axes && (read < written || (read == written && both));
}

}  // namespace backplane::cpu::fuse
