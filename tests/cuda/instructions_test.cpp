// Each instruction against values that follow from its definition in the PTX manual.
#include <bit>
#include <cmath>
#include <limits>

#include "kernel.hpp"

namespace emulator {
namespace {

struct Case {
  const char* opcode;
  const char* out;                 // the type that is stored
  std::vector<const char*> types;  // that are loaded
  std::vector<uint64_t> in;
  uint64_t expected;
};

uint64_t f(float x) { return std::bit_cast<uint32_t>(x); }
uint64_t d(double x) { return std::bit_cast<uint64_t>(x); }
constexpr uint64_t kNan = 0x7fffffff, kNan64 = 0x7ff8000000000000;
const float kInf = std::numeric_limits<float>::infinity();
constexpr uint64_t kAll32 = 0xffffffff;

uint64_t result_of(const Case& one) {
  std::string body, operands;
  for (size_t k = 0; k < one.types.size(); ++k) {
    const std::string reg = "%d" + std::to_string(k + 1);
    body += "ld.global." + std::string(one.types[k]) + " " + reg + ", [%i+" + std::to_string(8 * k) + "];\n";
    operands += ", " + reg;
  }
  if (std::string(one.opcode).substr(0, 4) == "setp")
    body += std::string(one.opcode) + " %p1" + operands + ";\nselp.u32 %d0, 1, 0, %p1;\n";
  else
    body += std::string(one.opcode) + " %d0" + operands + ";\n";
  body += "st.global." + std::string(one.out) + " [%o], %d0;";
  const DeviceBlock in(one.in), out(std::vector<uint64_t>{0});
  run_kernel(kernel_text(body), out.address, in.address);
  return out.at(0);
}

class Instruction : public ::testing::TestWithParam<Case> {};
TEST_P(Instruction, GivesTheManualsValue) {
  EXPECT_EQ(result_of(GetParam()), GetParam().expected)
      << GetParam().opcode << std::hex << ": expected 0x" << GetParam().expected;
}

INSTANTIATE_TEST_SUITE_P(
    Integers, Instruction,
    ::testing::Values(
        Case{"add.s32", "u32", {"s32", "s32"}, {0x7fffffff, 1}, 0x80000000},
        Case{"sub.s16", "u16", {"s16", "s16"}, {0, 1}, 0xffff},
        Case{"mul.lo.s32", "u32", {"s32", "s32"}, {0x10001, 0x10001}, 0x20001},
        Case{"mul.hi.u32", "u32", {"u32", "u32"}, {kAll32, kAll32}, 0xfffffffe},
        Case{"mul.hi.s32", "u32", {"s32", "s32"}, {kAll32, 2}, kAll32},
        Case{"mul.hi.u64", "u64", {"u64", "u64"}, {~0ull, ~0ull}, ~0ull - 1},
        Case{"mul.wide.s32", "u64", {"s32", "s32"}, {kAll32, 5}, static_cast<uint64_t>(-5)},
        Case{"mul.wide.u32", "u64", {"u32", "u32"}, {kAll32, 2}, 0x1fffffffe},
        Case{"mad.lo.s32", "u32", {"s32", "s32", "s32"}, {3, 4, 5}, 17},
        Case{"mad.wide.u32", "u64", {"u32", "u32", "u64"}, {kAll32, 2, 1}, 0x1ffffffff},
        Case{"div.s32", "u32", {"s32", "s32"}, {static_cast<uint32_t>(-7), 2}, static_cast<uint32_t>(-3)},
        Case{"rem.s32", "u32", {"s32", "s32"}, {static_cast<uint32_t>(-7), 2}, kAll32},
        Case{"div.s32", "u32", {"s32", "s32"}, {0x80000000, kAll32}, 0x80000000},
        Case{"div.u64", "u64", {"u64", "u64"}, {~0ull, 10}, ~0ull / 10},
        Case{"min.s32", "u32", {"s32", "s32"}, {kAll32, 1}, kAll32},
        Case{"min.u32", "u32", {"u32", "u32"}, {kAll32, 1}, 1}, Case{"max.s64", "u64", {"s64", "s64"}, {~0ull, 1}, 1},
        Case{"neg.s32", "u32", {"s32"}, {0x80000000}, 0x80000000}, Case{"abs.s16", "u16", {"s16"}, {0xfffe}, 2},
        Case{"and.b32", "u32", {"b32", "b32"}, {0xff00ff, 0x0ff0f0}, 0x0f00f0},
        Case{"or.b64", "u64", {"b64", "b64"}, {1ull << 63, 1}, (1ull << 63) | 1},
        Case{"xor.b16", "u16", {"b16", "b16"}, {0xffff, 0xf0f0}, 0x0f0f},
        Case{"not.b32", "u32", {"b32"}, {1}, 0xfffffffe}, Case{"shl.b32", "u32", {"b32", "u32"}, {1, 31}, 0x80000000},
        Case{"shl.b32", "u32", {"b32", "u32"}, {1, 32}, 0}, Case{"shr.u32", "u32", {"u32", "u32"}, {0x80000000, 31}, 1},
        Case{"shr.s32", "u32", {"s32", "u32"}, {0x80000000, 40}, kAll32},
        Case{"shr.u64", "u64", {"u64", "u32"}, {~0ull, 64}, 0}, Case{"clz.b32", "u32", {"b32"}, {1}, 31},
        Case{"clz.b64", "u32", {"b64"}, {0}, 64}, Case{"popc.b32", "u32", {"b32"}, {0xf0f0}, 8},
        Case{"brev.b32", "u32", {"b32"}, {1}, 0x80000000},
        Case{"bfe.u32", "u32", {"u32", "u32", "u32"}, {0xabcd1234, 8, 8}, 0x12},
        Case{"bfe.s32", "u32", {"s32", "u32", "u32"}, {0xf00, 8, 4}, kAll32},
        Case{"bfi.b32", "u32", {"b32", "b32", "u32", "u32"}, {0xff, 0, 4, 4}, 0xf0},
        Case{"bfi.b64", "u64", {"b64", "b64", "u32", "u32"}, {1, 0, 63, 1}, 1ull << 63},
        Case{"prmt.b32", "u32", {"b32", "b32", "b32"}, {0x03020100, 0x07060504, 0x7531}, 0x07050301},
        Case{"prmt.b32", "u32", {"b32", "b32", "b32"}, {0x80, 0, 0x8888}, kAll32},
        Case{"shf.l.wrap.b32", "u32", {"b32", "b32", "b32"}, {0x80000000, 1, 1}, 3},
        Case{"shf.r.wrap.b32", "u32", {"b32", "b32", "b32"}, {0, 1, 1}, 0x80000000},
        Case{"setp.lt.s32", "u32", {"s32", "s32"}, {kAll32, 0}, 1},
        Case{"setp.lt.u32", "u32", {"u32", "u32"}, {kAll32, 0}, 0}));

INSTANTIATE_TEST_SUITE_P(
    Floats, Instruction,
    ::testing::Values(
        Case{"add.rn.f32", "u32", {"f32", "f32"}, {f(1), f(0x1p-24f)}, f(1)},
        Case{"add.rz.f32", "u32", {"f32", "f32"}, {f(1), f(-0x1p-30f)}, f(std::nextafter(1.0f, 0.0f))},
        Case{"mul.rn.f32", "u32", {"f32", "f32"}, {f(3), f(0.5f)}, f(1.5f)},
        Case{"add.rn.f32", "u32", {"f32", "f32"}, {f(kInf), f(-kInf)}, kNan},
        Case{"fma.rn.f32", "u32", {"f32", "f32", "f32"}, {f(1 + 0x1p-12f), f(1 - 0x1p-12f), f(-1)}, f(-0x1p-24f)},
        Case{"fma.rm.f32", "u32", {"f32", "f32", "f32"}, {f(1), f(1), f(-0x1p-40f)}, f(std::nextafter(1.0f, 0.0f))},
        Case{"fma.rn.f64", "u64", {"f64", "f64", "f64"}, {d(2), d(3), d(4)}, d(10)},
        Case{"div.rn.f32", "u32", {"f32", "f32"}, {f(1), f(3)}, f(1.0f / 3.0f)},
        Case{"sqrt.rn.f64", "u64", {"f64"}, {d(2)}, d(std::sqrt(2.0))},
        Case{"sqrt.rn.f32", "u32", {"f32"}, {f(-1)}, kNan}, Case{"rcp.rn.f64", "u64", {"f64"}, {d(3)}, d(1.0 / 3.0)},
        Case{"min.f32", "u32", {"f32", "f32"}, {kNan, f(1)}, f(1)},
        Case{"max.f64", "u64", {"f64", "f64"}, {d(1), kNan64}, d(1)},
        Case{"min.f32", "u32", {"f32", "f32"}, {f(0), f(-0.0f)}, f(-0.0f)},
        Case{"neg.f32", "u32", {"f32"}, {f(0)}, f(-0.0f)}, Case{"abs.f64", "u64", {"f64"}, {d(-2)}, d(2)},
        Case{"copysign.f32", "u32", {"f32", "f32"}, {f(-1), f(2)}, f(-2)},
        Case{"ex2.approx.f32", "u32", {"f32"}, {f(3)}, f(8)}, Case{"ex2.approx.ftz.f32", "u32", {"f32"}, {f(-140)}, 0},
        Case{"setp.lt.f32", "u32", {"f32", "f32"}, {kNan, f(1)}, 0},
        Case{"setp.ltu.f32", "u32", {"f32", "f32"}, {kNan, f(1)}, 1},
        Case{"setp.ne.f32", "u32", {"f32", "f32"}, {kNan, kNan}, 0},
        Case{"setp.neu.f64", "u32", {"f64", "f64"}, {kNan64, kNan64}, 1},
        Case{"setp.num.f32", "u32", {"f32", "f32"}, {f(1), f(2)}, 1},
        Case{"setp.nan.f64", "u32", {"f64", "f64"}, {d(1), kNan64}, 1}));

INSTANTIATE_TEST_SUITE_P(
    Conversions, Instruction,
    ::testing::Values(
        Case{"cvt.rzi.s32.f32", "u32", {"f32"}, {f(-2.7f)}, static_cast<uint32_t>(-2)},
        Case{"cvt.rni.s32.f32", "u32", {"f32"}, {f(2.5f)}, 2},
        Case{"cvt.rzi.s32.f32", "u32", {"f32"}, {f(1e20f)}, 0x7fffffff},
        Case{"cvt.rzi.s32.f32", "u32", {"f32"}, {kNan}, 0},
        Case{"cvt.rzi.s64.f64", "u64", {"f64"}, {kNan64}, 1ull << 63},
        Case{"cvt.rzi.u32.f32", "u32", {"f32"}, {f(-1)}, 0}, Case{"cvt.rmi.f32.f32", "u32", {"f32"}, {f(-1.5f)}, f(-2)},
        Case{"cvt.rpi.f64.f64", "u64", {"f64"}, {d(1.25)}, d(2)},
        Case{"cvt.rni.f32.f32", "u32", {"f32"}, {f(0.5f)}, f(0)}, Case{"cvt.sat.f32.f32", "u32", {"f32"}, {kNan}, f(0)},
        Case{"cvt.sat.f32.f32", "u32", {"f32"}, {f(7)}, f(1)}, Case{"cvt.rn.f32.s32", "u32", {"s32"}, {kAll32}, f(-1)},
        Case{"cvt.rn.f32.u64", "u32", {"u64"}, {~0ull}, f(0x1p64f)},
        Case{"cvt.rz.f32.u32", "u32", {"u32"}, {kAll32}, f(4294967040.0f)},
        Case{"cvt.rn.f32.f64", "u32", {"f64"}, {d(0.1)}, f(0.1f)},
        Case{"cvt.f64.f32", "u64", {"f32"}, {f(0.5f)}, d(0.5)}, Case{"cvt.f32.f16", "u32", {"b16"}, {0x3c00}, f(1)},
        Case{"cvt.rn.f16.f32", "u16", {"f32"}, {f(65520)}, 0x7c00},
        Case{"cvt.rn.f16.f32", "u16", {"f32"}, {f(1 + 0x1p-11f)}, 0x3c00},
        Case{"cvt.rn.f16x2.f32", "u32", {"f32", "f32"}, {f(1), f(-2)}, 0x3c00c000},
        Case{"cvt.rn.f16x2.f32", "u32", {"f32", "f32"}, {kNan, f(65520)}, 0x7fff7c00},
        Case{"cvt.rn.bf16x2.f32", "u32", {"f32", "f32"}, {f(1), f(-2)}, 0x3f80c000},
        Case{"cvt.rn.bf16x2.f32", "u32", {"f32", "f32"}, {kNan, f(1 + 0x1p-8f)}, 0x7fff3f80},
        Case{"cvt.rn.bf16x2.f32", "u32", {"f32", "f32"}, {f(kInf), f(1 + 0x3p-8f)}, 0x7f803f82},
        Case{"cvt.s64.s32", "u64", {"s32"}, {kAll32}, ~0ull}, Case{"cvt.u64.u32", "u64", {"u32"}, {kAll32}, kAll32},
        Case{"cvt.s16.s8", "u16", {"s8"}, {0x80}, 0xff80}, Case{"cvt.u16.u32", "u16", {"u32"}, {0x12345}, 0x2345},
        Case{"mov.b64", "u64", {"b64"}, {42}, 42}));

// What several instructions do together.
uint64_t computed(const std::string& body, std::vector<uint64_t> in = {0}, Extent block = {}) {
  const DeviceBlock from(in), to(std::vector<uint64_t>(64, 0));
  run_kernel(kernel_text(body), to.address, from.address, block);
  return to.at(0);
}

TEST(Instructions, CarriesGoFromOneSumToTheNext) {
  EXPECT_EQ(computed("mov.u32 %r1, -1; add.cc.u32 %r2, %r1, 1; addc.u32 %r3, 5, 0; mov.b64 %d1, {%r2, %r3}; "
                     "st.global.u64 [%o], %d1;"),
            6ull << 32);
}
TEST(Instructions, RegistersComeApartAndTogether) {
  EXPECT_EQ(computed("mov.u64 %d1, 0x1122334455667788; mov.b64 {%r1, %r2}, %d1; mov.b64 %d2, {%r2, %r1}; st.global.u64 "
                     "[%o], %d2;"),
            0x5566778811223344u);
}
TEST(Instructions, LanesThatPartMeetAgain) {
  // Each thread counts to its own number; then all of the warp shuffle.
  EXPECT_EQ(
      computed("mov.u32 %r1, 0;\n$L: setp.ge.u32 %p1, %r1, %t; @%p1 bra $M; add.u32 %r1, %r1, 1; bra $L;\n$M:"
               "shfl.sync.down.b32 %r2|%p2, %r1, 31, 31, -1; setp.ne.u32 %p3, %t, 0; @%p3 bra $E; cvt.u64.u32 %d1, %r2;"
               "st.global.u64 [%o], %d1;\n$E:",
               {0}, {32, 1, 1}),
      31u);
}
TEST(Instructions, AtomicsOfAllLanesCount) {
  EXPECT_EQ(computed("atom.global.add.u64 %d1, [%o], 3;", {0}, {96, 1, 1}), 288u);
  EXPECT_EQ(computed("cvt.u64.u32 %d2, %t; atom.global.max.u64 %d1, [%o], %d2;", {0}, {96, 1, 1}), 95u);
}
TEST(Instructions, AVoteIsOfTheLanesThatTakePart) {
  EXPECT_EQ(
      computed(
          "setp.lt.u32 %p1, %t, 5; vote.sync.ballot.b32 %r1, %p1, -1; cvt.u64.u32 %d1, %r1; st.global.u64 [%o], %d1;",
          {0}, {32, 1, 1}),
      31u);
}

// What a register of one lane of a warp is in the end.
uint64_t of_lane(int lane, const std::string& reg, const std::string& body) {
  const DeviceBlock from(std::vector<uint64_t>{0}), to(std::vector<uint64_t>{0});
  run_kernel(kernel_text(body + "setp.ne.u32 %p1, %t, " + std::to_string(lane) + "; @%p1 bra $E; st.global.u32 [%o], " +
                             reg + ";\n$E:",
                         ".shared .align 16 .b8 s[512];\n"),
             to.address, from.address, {32, 1, 1});
  return to.at(0);
}
TEST(Instructions, MatricesAreReadByRowsAndByColumns) {
  // Half word i of shared memory is i; lane l gives the address of the l-th row of 8.
  const std::string rows =
      "mul.lo.u32 %r1, %t, 16; mov.u32 %r2, 0;\n$F: mad.lo.u32 %r3, %t, 8, %r2; cvt.u16.u32 %h1, %r3; mad.lo.u32 %r4, "
      "%r2, 2, %r1; st.shared.u16 [%r4], %h1; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 8; @%p1 bra $F; bar.warp.sync "
      "-1;";
  const std::string to = " {%r5, %r6, %r7, %r8}, [%r1];";
  // Lane 6 of the third matrix, whose rows are 16 to 23: row 1, elements 4 and 5; transposed, of rows 4 and 5
  // element 1.
  EXPECT_EQ(of_lane(6, "%r7", rows + "ldmatrix.sync.aligned.m8n8.x4.shared.b16" + to),
            (17u * 8 + 5) << 16 | (17 * 8 + 4));
  EXPECT_EQ(of_lane(6, "%r7", rows + "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" + to),
            (21u * 8 + 1) << 16 | (20 * 8 + 1));
}
// x y + 100 by a warp; the halves of x are in %r1 to %r4, those of y in %r5 and %r6.
std::string product(const std::string& type) {
  return "mov.f32 %f1, 0f42C80000; mma.sync.aligned.m16n8k16.row.col.f32." + type + "." + type +
         ".f32 {%f2, %f3, %f4, %f5}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f1, %f1, %f1};";
}
TEST(Instructions, AWarpMultipliesMatrices) {
  // x by quarters: 1, 2 below, 2 beside and 4; y: 1 above 3.
  const std::string half =
      "mov.u32 %r1, 0x3c003c00; mov.u32 %r2, 0x40004000; mov.u32 %r3, %r2; mov.u32 %r4, 0x44004400;"
      "mov.u32 %r5, %r1; mov.u32 %r6, 0x42004200;";
  const std::string brain =
      "mov.u32 %r1, 0x3f803f80; mov.u32 %r2, 0x40004000; mov.u32 %r3, %r2; mov.u32 %r4, 0x40804080;"
      "mov.u32 %r5, %r1; mov.u32 %r6, 0x40404040;";
  EXPECT_EQ(of_lane(6, "%f2", half + product("f16")), f(100 + 8 + 48));
  EXPECT_EQ(of_lane(6, "%f5", half + product("f16")), f(100 + 16 + 96));
  EXPECT_EQ(of_lane(6, "%f2", brain + product("bf16")), f(100 + 8 + 48));
  EXPECT_EQ(of_lane(6, "%f5", brain + product("bf16")), f(100 + 16 + 96));
}
TEST(Instructions, LanesHaveElementsOfMatricesInOrder) {
  // Element (1, 5) of x, which lane 6 has, is 2, and (5, 3) of y, which lane 14 has, 3: then (1, 3) of x y, of lane 5.
  const std::string body =
      "setp.eq.u32 %p1, %t, 6; selp.u32 %r1, 0x40000000, 0, %p1; setp.eq.u32 %p2, %t, 14; selp.u32 %r5, 0x42000000, 0, "
      "%p2; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r6, 0;" +
      product("f16");
  EXPECT_EQ(of_lane(5, "%f3", body), f(106));
  EXPECT_EQ(of_lane(5, "%f2", body), f(100));
  EXPECT_EQ(of_lane(4, "%f3", body), f(100));
}
TEST(Instructions, CopiesIntoSharedMemoryArriveAtTheWait) {
  const std::string copy = "mul.lo.u32 %r1, %t, 16; cp.async.cg.shared.global [%r1], [%i], 16, ",
                    wait = "; cp.async.wait_all; ld.shared.u32 %r3, [%r1+4];";
  const auto read = [&](const std::string& taken) {
    const DeviceBlock from(std::vector<uint64_t>{7ull << 32, 0}), to(std::vector<uint64_t>{0});
    run_kernel(kernel_text(copy + taken + wait + "st.global.u32 [%o], %r3;", ".shared .align 16 .b8 s[512];\n"),
               to.address, from.address);
    return to.at(0);
  };
  EXPECT_EQ(read("16"), 7u);
  EXPECT_EQ(read("0"), 0u);
}

}  // namespace
}  // namespace emulator
