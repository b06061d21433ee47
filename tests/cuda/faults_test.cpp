// Kernels with one fault each, which the emulator names, and the same kernels without it, which it lets pass.
#include "kernel.hpp"

namespace emulator {
namespace {

struct Planted {
  const char* name;
  std::string faulty, sound;
  const char* said;
  Extent block = {64, 1, 1};
  std::string before = "";
};
void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.name; }

// The block's threads read what their neighbours wrote to shared memory.
std::string exchange(const std::string& between) {
  return "mul.lo.u32 %r1, %t, 4; mov.u32 %r2, s; add.u32 %r3, %r2, %r1; st.shared.u32 [%r3], 0; bar.sync 0; "
         "st.shared.u32 [%r3], %t;" +
         between + "xor.b32 %r4, %r1, 252; add.u32 %r5, %r2, %r4; ld.shared.u32 %r6, [%r5];";
}
std::string copy_up_to(const std::string& compare) {  // of 50 elements, by 64 threads
  return compare +
         "@%p1 bra $E; mul.wide.u32 %d1, %t, 4; add.u64 %d2, %i, %d1; ld.global.u32 %r1, [%d2];"
         "add.u64 %d3, %o, %d1; st.global.u32 [%d3], %r1;\n$E:";
}
const std::string kShared = ".shared .align 16 .b8 s[256];\n";

class PlantedFault : public ::testing::TestWithParam<Planted> {
 protected:
  // 50 written words in, 50 words out.
  static void run(const std::string& body, const Planted& planted) {
    const DeviceBlock in(std::vector<uint64_t>(25, 0)), out(200);
    for (uint64_t seed = 1; seed <= 4; ++seed)
      run_kernel(kernel_text(body, planted.before), out.address, in.address, planted.block, {2, 1, 1}, seed);
  }
};

TEST_P(PlantedFault, IsNamed) {
  try {
    run(GetParam().faulty, GetParam());
    FAIL() << "not seen";
  } catch (const Fault& fault) {
    EXPECT_NE(std::string(fault.what()).find(GetParam().said), std::string::npos) << fault.what();
  }
}
TEST_P(PlantedFault, IsAllThatIsWrong) { EXPECT_NO_THROW(run(GetParam().sound, GetParam())); }

const std::string kTail = "setp.ge.u32 %p1, %t, 50;";
INSTANTIATE_TEST_SUITE_P(
    Kernels, PlantedFault,
    ::testing::Values(
        Planted{"missing_barrier", exchange(""), exchange("bar.sync 0;"), "race on shared memory", {64, 1, 1}, kShared},
        Planted{"missing_wait_for_a_copy",
                "mul.lo.u32 %r1, %t, 16; cp.async.cg.shared.global [%r1], [%i], 16; ld.shared.u32 %r3, [%r1];",
                "mul.lo.u32 %r1, %t, 16; cp.async.cg.shared.global [%r1], [%i], 16; cp.async.wait_all; ld.shared.u32 "
                "%r3, [%r1];",
                "shared memory that nothing has written",
                {16, 1, 1},
                kShared},
        Planted{"write_race_on_shared_memory",
                "st.shared.u32 [s], %t;",
                "setp.ne.u32 %p1, %t, 0; @!%p1 st.shared.u32 [s], %t;",
                "race on shared memory",
                {64, 1, 1},
                kShared},
        Planted{"off_by_one_at_the_tail", copy_up_to("setp.gt.u32 %p1, %t, 50;"), copy_up_to(kTail),
                "0 bytes behind the block of 200"},
        Planted{"no_tail_at_all", copy_up_to("setp.gt.u32 %p1, %t, 999;"), copy_up_to(kTail), "out of bounds"},
        Planted{"unaligned_vector_load", "ld.global.v2.u32 {%r1, %r2}, [%i+4];", "ld.global.v2.u32 {%r1, %r2}, [%i+8];",
                "4 more than a multiple"},
        Planted{"uninitialised_accumulator",
                "ld.global.u32 %r1, [%o]; add.u32 %r1, %r1, 1; st.global.u32 [%o], %r1;",
                "mov.u32 %r1, 0; add.u32 %r1, %r1, 1; st.global.u32 [%o], %r1;",
                "memory that nothing has written",
                {1, 1, 1}},
        Planted{"uninitialised_shared_memory",
                "ld.shared.u32 %r1, [s+8];",
                "st.shared.u32 [s+8], %t; ld.shared.u32 %r1, [s+8];",
                "shared memory that nothing has written",
                {1, 1, 1},
                kShared},
        Planted{"shared_memory_out_of_bounds",
                "st.shared.u32 [s+256], %t;",
                "st.shared.u32 [s+252], %t;",
                "shared memory out of bounds",
                {1, 1, 1},
                kShared},
        Planted{"wrong_shuffle_mask",
                "setp.ge.u32 %p1, %t, 16; @%p1 bra $E; shfl.sync.down.b32 %r1|%p2, %t, 1, 31, -1;\n$E:",
                "setp.ge.u32 %p1, %t, 16; @%p1 bra $E; shfl.sync.down.b32 %r1|%p2, %t, 1, 15, 65535;\n$E:",
                "wrong mask of lanes",
                {32, 1, 1}},
        Planted{"divergent_barrier", "setp.ge.u32 %p1, %t, 16; @%p1 bra $E; bar.sync 0;\n$E:", "bar.sync 0;",
                "divergent barrier"},
        Planted{"write_to_a_parameter",
                "mov.b64 %d1, out; cvta.param.u64 %d2, %d1; st.u64 [%d2], %d1;",
                "mov.b64 %d1, out; cvta.param.u64 %d2, %d1; ld.u64 %d3, [%d2];",
                "not an address of the device",
                {1, 1, 1}},
        Planted{"unknown_instruction", "fancy.new.u32 %r1, %t;", "mov.u32 %r1, %t;",
                "unknown instruction: fancy.new.u32"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(PlantedFaults, UseAfterFree) {
  uint64_t gone = 0;
  { gone = DeviceBlock(std::vector<uint64_t>{1, 2}).address; }
  const DeviceBlock out(8);
  try {
    run_kernel(kernel_text("ld.global.u64 %d1, [%i]; st.global.u64 [%o], %d1;"), out.address, gone);
    FAIL() << "not seen";
  } catch (const Fault& fault) {
    EXPECT_NE(std::string(fault.what()).find("memory after its free"), std::string::npos) << fault.what();
  }
}

TEST(PlantedFaults, AFaultSaysWhere) {
  const DeviceBlock in(std::vector<uint64_t>{1}), out(8);
  try {
    run_kernel(kernel_text("setp.ne.u32 %p1, %t, 37; @%p1 bra $E;\nld.global.u64 %d1, [%i+8];\n$E:"), out.address,
               in.address, {64, 1, 1});
    FAIL() << "not seen";
  } catch (const Fault& fault) {
    const std::string what = fault.what();
    for (const char* part : {"kernel k, block (0, 0, 0), thread (37, 0, 0)", "ld.global.u64 %d1, [%i+8]", "8 bytes"})
      EXPECT_NE(what.find(part), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace emulator
