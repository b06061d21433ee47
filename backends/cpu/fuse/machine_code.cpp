#include "fuse/machine_code.hpp"

#ifdef BACKPLANE_XBYAK
#include <xbyak/xbyak.h>
#include <xbyak/xbyak_util.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#endif

namespace backplane::cpu::fuse {

#ifdef BACKPLANE_XBYAK
namespace {

constexpr int kVectorRegisters = 16;
constexpr uint32_t kNone = 0xffffffff;

bool may_swap(Link link) { return link == Link::kAdd || link == Link::kMultiply; }

// Which register each step's result is in. A step reuses the register of a value that it reads for the last time; a
// stored value is kept to the end.
struct Registers {
  std::vector<int> of_step;
  int used = 0;  // more than there are: it does not fit

  explicit Registers(const Arithmetic& arithmetic) {
    const auto& steps = arithmetic.steps;
    std::vector<size_t> last(steps.size(), 0);
    for (size_t j = 0; j < steps.size(); ++j)
      for (const Arithmetic::Value& read : {steps[j].a, steps[j].b})
        if (read.step) last[read.at] = j;
    for (const uint32_t stored : arithmetic.results) last[stored] = steps.size();
    std::vector<int> free;
    const auto give_back = [&](const Arithmetic::Value& read, size_t j) {
      if (!read.step || last[read.at] != j) return;
      free.push_back(of_step[read.at]);
      last[read.at] = steps.size();  // once, if it is read twice
    };
    for (size_t j = 0; j < steps.size(); ++j) {
      const bool loads_first = !steps[j].a.step && !(may_swap(steps[j].link) && steps[j].b.step);
      if (!loads_first) give_back(steps[j].b, j);  // else b is read behind the load into the result's register
      give_back(steps[j].a, j);
      if (free.empty()) free.push_back(used++);
      of_step.push_back(free.back());
      free.pop_back();
      if (loads_first) give_back(steps[j].b, j);
    }
  }
};

// Which operands have a pointer, or a place among the repeated ones.
struct Places {
  std::vector<uint32_t> of_operand;
  uint32_t pointers = 0, repeated = 0;
  explicit Places(const Arithmetic& arithmetic) {
    for (const bool each : arithmetic.repeated) of_operand.push_back(each ? repeated++ : pointers++);
  }
};

class Assembler : public MachineCode, private Xbyak::CodeGenerator {
 public:
  explicit Assembler(const Arithmetic& arithmetic)
      : CodeGenerator(bytes_for(arithmetic), Xbyak::DontSetProtectRWE),
        arithmetic_(arithmetic),
        registers_(arithmetic),
        places_(arithmetic),
        in_register_(places_.repeated, kNone) {
    write();
    setProtectModeRE();
    code_ = getCode<Code>();
  }
  void run(CodeRows& rows) const override { code_(&rows); }

 private:
  using Code = void (*)(CodeRows*);
  static size_t bytes_for(const Arithmetic& a) {
    return 4096 + 64 * (a.steps.size() + a.repeated.size() + a.results.size());
  }

  // The call is in rsi, the place in a row in rcx, its end in rdx, repeated vectors on the stack.
  const Xbyak::Reg64& pointer(uint32_t i) const {
    const Xbyak::Reg64* const all[kMostPointers] = {&rax, &r8,  &r9,  &r10, &r11, &rdi,
                                                    &rbx, &r12, &r13, &r14, &r15, &rbp};
    return *all[i];
  }
  static constexpr uint32_t kFirstSaved = 6;  // rbx and those behind it are the caller's
  template <class Member>
  Xbyak::Address member(Member CodeRows::*which, size_t bytes = 0) {
    static const CodeRows rows{};
    const auto at = reinterpret_cast<const char*>(&(rows.*which)) - reinterpret_cast<const char*>(&rows);
    return qword[rsi + static_cast<int>(at + static_cast<ptrdiff_t>(bytes))];
  }
  static constexpr size_t kAt = sizeof(CodeRows::At), kRow = offsetof(CodeRows::At, row);

  void write() {
    const auto n = places_.pointers + static_cast<uint32_t>(arithmetic_.results.size());
    for (uint32_t i = kFirstSaved; i < n; ++i) push(pointer(i));
    mov(rsi, rdi);
    mov(rdx, rsp);  // the stack in whole vectors, with its old end above them
    const auto stack = static_cast<int>(kVectorBytes * (places_.repeated + 1));
    sub(rsp, stack);
    and_(rsp, -static_cast<int>(kVectorBytes));
    mov(qword[rsp + static_cast<int>(kVectorBytes * places_.repeated)], rdx);
    // Repeated operands stay in what registers are left.
    for (uint32_t k = 0; k < places_.repeated && registers_.used + static_cast<int>(k) < kVectorRegisters; ++k)
      in_register_[k] = static_cast<uint32_t>(registers_.used) + k;
    for (uint32_t i = 0; i < n; ++i) mov(pointer(i), member(&CodeRows::p, kAt * i));
    mov(rdx, member(&CodeRows::bytes));
    Xbyak::Label next_row, next;
    L(next_row);
    for (uint32_t k = 0; k < places_.repeated; ++k) repeat(k);
    xor_(ecx, ecx);
    align(16);
    L(next);
    for (size_t j = 0; j < arithmetic_.steps.size(); ++j) step(j);
    for (uint32_t k = 0; k < arithmetic_.results.size(); ++k)
      vmovups(ptr[pointer(places_.pointers + k) + rcx], result(arithmetic_.results[k]));
    add(rcx, static_cast<int>(kVectorBytes));
    cmp(rcx, rdx);
    jl(next, T_NEAR);
    for (uint32_t i = 0; i < n; ++i) add(pointer(i), member(&CodeRows::p, kAt * i + kRow));
    sub(member(&CodeRows::rows), 1);
    jg(next_row, T_NEAR);
    vzeroupper();
    mov(rsp, qword[rsp + static_cast<int>(kVectorBytes * places_.repeated)]);
    for (uint32_t i = n; i-- > kFirstSaved;) pop(pointer(i));
    ret();
  }

  // The element of this row as a vector; the pointer goes on to the next.
  void repeat(uint32_t k) {
    const bool kept = in_register_[k] != kNone;
    const Xbyak::Ymm to(kept ? static_cast<int>(in_register_[k]) : 0);  // the steps make 0 anew
    mov(rcx, member(&CodeRows::element, kAt * k));
    if (is_double())
      vbroadcastsd(to, qword[rcx]);
    else
      vbroadcastss(to, dword[rcx]);
    if (!kept) vmovaps(repeated_at(k), to);
    add(rcx, member(&CodeRows::element, kAt * k + kRow));
    mov(member(&CodeRows::element, kAt * k), rcx);
  }

  Xbyak::Ymm result(uint32_t j) const { return Xbyak::Ymm(registers_.of_step[j]); }
  Xbyak::Address repeated_at(uint32_t k) { return ptr[rsp + static_cast<int>(k * kVectorBytes)]; }

  bool is_in_memory(const Arithmetic::Value& value) const {
    if (value.step) return false;
    return !arithmetic_.repeated[value.at] || in_register_[places_.of_operand[value.at]] == kNone;
  }
  Xbyak::Ymm in_register(const Arithmetic::Value& value) const {
    return value.step ? result(value.at) : Xbyak::Ymm(static_cast<int>(in_register_[places_.of_operand[value.at]]));
  }
  Xbyak::Address in_memory(const Arithmetic::Value& value) {
    const uint32_t place = places_.of_operand[value.at];
    return arithmetic_.repeated[value.at] ? repeated_at(place) : ptr[pointer(place) + rcx];
  }

  void step(size_t j) {
    const Arithmetic::Step& each = arithmetic_.steps[j];
    const Xbyak::Ymm to = result(static_cast<uint32_t>(j));
    Arithmetic::Value a = each.a, b = each.b;
    if (each.link == Link::kSquareRoot) {
      if (is_in_memory(a))
        square_root(to, in_memory(a));
      else
        square_root(to, in_register(a));
      return;
    }
    if (is_in_memory(a) && !is_in_memory(b) && may_swap(each.link)) std::swap(a, b);
    if (is_in_memory(a)) vmovups(to, in_memory(a));
    const Xbyak::Ymm first = is_in_memory(a) ? to : in_register(a);
    if (is_in_memory(b))
      calculate(each.link, to, first, in_memory(b));
    else
      calculate(each.link, to, first, in_register(b));
  }

  bool is_double() const { return arithmetic_.dtype == BP_FLOAT64; }
  void square_root(const Xbyak::Ymm& to, const Xbyak::Operand& of) {
    if (is_double())
      vsqrtpd(to, of);
    else
      vsqrtps(to, of);
  }
  void calculate(Link link, const Xbyak::Ymm& to, const Xbyak::Ymm& a, const Xbyak::Operand& b) {
    switch (link) {
      case Link::kAdd:
        return is_double() ? vaddpd(to, a, b) : vaddps(to, a, b);
      case Link::kSubtract:
        return is_double() ? vsubpd(to, a, b) : vsubps(to, a, b);
      case Link::kMultiply:
        return is_double() ? vmulpd(to, a, b) : vmulps(to, a, b);
      default:
        return is_double() ? vdivpd(to, a, b) : vdivps(to, a, b);
    }
  }

  const Arithmetic arithmetic_;
  const Registers registers_;
  const Places places_;
  std::vector<uint32_t> in_register_;  // per repeated operand; kNone: in memory
  Code code_ = nullptr;
};

}  // namespace

bool MachineCode::available() {
  static const bool found = [] {
    const char* wanted = std::getenv("BACKPLANE_CPU_MACHINE_CODE");
    return (wanted == nullptr || std::string_view(wanted) != "0") && Xbyak::util::Cpu().has(Xbyak::util::Cpu::tAVX);
  }();
  return found;
}

bool MachineCode::fits(const Arithmetic& arithmetic) {
  const Places places(arithmetic);
  return places.pointers + arithmetic.results.size() <= kMostPointers && places.repeated <= kMostRepeated &&
         Registers(arithmetic).used <= kVectorRegisters;
}

std::unique_ptr<MachineCode> MachineCode::make(const Arithmetic& arithmetic) {
  try {
    return std::make_unique<Assembler>(arithmetic);
  } catch (const Xbyak::Error&) {  // memory that may be executed is refused
    return nullptr;
  }
}

#else

bool MachineCode::available() { return false; }
bool MachineCode::fits(const Arithmetic&) { return false; }
std::unique_ptr<MachineCode> MachineCode::make(const Arithmetic&) { return nullptr; }

#endif

}  // namespace backplane::cpu::fuse
