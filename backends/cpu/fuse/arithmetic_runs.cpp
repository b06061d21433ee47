#include "fuse/arithmetic_runs.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace backplane::cpu::fuse {
namespace {

bool is_arithmetic(const Instruction& each) {
  return each.extent == Extent::kFull && each.links[0] != Link::kNone &&
         (each.kind == Instruction::Kind::kChain || each.kind == Instruction::Kind::kMap);
}

// A run of instructions, as long as it grows.
struct Arithmetics {
  std::vector<const Instruction*> from;
  std::vector<uint32_t> operands;              // slots
  std::map<uint32_t, Arithmetic::Value> made;  // by slot
  Arithmetic code;

  size_t n_slots() const { return operands.size() + code.results.size(); }
};

class Joining {
 public:
  Joining(Program& program, std::vector<Instruction>& code)
      : program_(program), code_(code), reads_(program.slots.size()) {
    for (const Instruction& each : code)
      for (int k = each.n_results; k < each.n_slots; ++k) ++reads_[each.slots[k]];
  }

  void run() {
    for (const Instruction& each : code_) {
      if (!is_arithmetic(each)) {
        flush();
        joined_.push_back(each);
        continue;
      }
      const bool follows = !run_.from.empty() && run_.from[0]->part == each.part &&
                           run_.code.dtype == program_.slots[each.slots[0]].dtype;
      std::optional<Arithmetics> longer = follows ? with(run_, each) : std::nullopt;
      if (!longer) {
        flush();
        longer = with({}, each);
      }
      if (longer)
        run_ = std::move(*longer);
      else
        joined_.push_back(each);
    }
    flush();
    code_ = std::move(joined_);
  }

 private:
  // nullopt: that is more than fits.
  std::optional<Arithmetics> with(Arithmetics run, const Instruction& each) const {
    run.code.dtype = program_.slots[each.slots[0]].dtype;
    const auto value = [&](uint32_t slot) {
      if (const auto found = run.made.find(slot); found != run.made.end()) return found->second;
      const auto place = std::find(run.operands.begin(), run.operands.end(), slot);
      const auto at = static_cast<uint32_t>(place - run.operands.begin());
      if (place == run.operands.end()) {
        run.operands.push_back(slot);
        run.code.repeated.push_back(program_.slots[slot].extent != Extent::kFull);
      }
      return Arithmetic::Value{false, at};
    };
    const Arithmetic::Value a = value(each.slots[1]);
    const Arithmetic::Value b = each.links[0] == Link::kSquareRoot ? a : value(each.slots[2]);
    run.made[each.slots[0]] = {true, static_cast<uint32_t>(run.code.steps.size())};
    run.code.steps.push_back({each.links[0], a, b});
    run.from.push_back(&each);
    run.code.results = results_of(run);
    if (run.n_slots() > kMostSlots || !MachineCode::fits(run.code)) return std::nullopt;
    return run;
  }

  // What others read, or nobody does inside.
  std::vector<uint32_t> results_of(const Arithmetics& run) const {
    std::vector<uint32_t> inside(run.from.size(), 0);
    for (const Arithmetic::Step& step : run.code.steps) {
      if (step.a.step) ++inside[step.a.at];
      if (step.b.step && step.link != Link::kSquareRoot) ++inside[step.b.at];
    }
    std::vector<uint32_t> results;
    for (uint32_t j = 0; j < run.from.size(); ++j) {
      const uint32_t slot = run.from[j]->slots[0];
      if (program_.slots[slot].kind != Slot::Kind::kBuffer || reads_[slot] > inside[j]) results.push_back(j);
    }
    return results;
  }

  const MachineCode* code_for(const Arithmetic& arithmetic) {
    for (const auto& [known, code] : program_.machine_code)
      if (known == arithmetic) return code.get();
    std::unique_ptr<MachineCode> made = MachineCode::make(arithmetic);
    if (!made) return nullptr;
    program_.machine_code.emplace_back(arithmetic, std::move(made));
    return program_.machine_code.back().second.get();
  }

  void flush() {
    const MachineCode* code = run_.from.size() > 1 ? code_for(run_.code) : nullptr;
    if (code == nullptr) {
      for (const Instruction* each : run_.from) joined_.push_back(*each);
    } else {
      Instruction& made = joined_.emplace_back();
      made.kind = Instruction::Kind::kCode;
      made.extent = Extent::kFull;
      made.part = run_.from[0]->part;
      made.in_place = true;
      made.code = code;
      made.n_results = static_cast<uint8_t>(run_.code.results.size());
      for (const uint32_t j : run_.code.results) made.slots[made.n_slots++] = run_.from[j]->slots[0];
      for (const uint32_t operand : run_.operands) made.slots[made.n_slots++] = operand;
      for (const Instruction* each : run_.from) made.weight += each->weight;
      const auto item = static_cast<uint32_t>(program_.slots[made.slots[0]].item());
      program_.spill_bytes = std::max(program_.spill_bytes, made.n_slots * item);
    }
    run_ = {};
  }

  Program& program_;
  std::vector<Instruction>& code_;
  std::vector<uint32_t> reads_;  // per slot
  std::vector<Instruction> joined_;
  Arithmetics run_;
};

}  // namespace

void join_arithmetic(Program& program, std::vector<Instruction>& code) {
  if (MachineCode::available()) Joining(program, code).run();
}

}  // namespace backplane::cpu::fuse
