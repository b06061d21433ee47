#include "program.hpp"

#include <random>

namespace fuzz {
namespace {

struct Weight {
  Op op;
  int weight;
};
constexpr Weight kWeights[] = {{Op::kMake, 8},       {Op::kFull, 4},       {Op::kAdd, 20},      {Op::kScale, 12},
                               {Op::kInto, 12},      {Op::kInplace, 12},   {Op::kCopy, 8},      {Op::kDrop, 8},
                               {Op::kRead, 4},       {Op::kRecord, 4},     {Op::kWaitEvent, 4}, {Op::kSyncEvent, 1},
                               {Op::kQueryEvent, 1}, {Op::kWaitStream, 4}, {Op::kSync, 1},      {Op::kNewStream, 3},
                               {Op::kEmptyCache, 1}, {Op::kCallback, 3},   {Op::kPinned, 4},    {Op::kPinnedBack, 2},
                               {Op::kCapture, 2},    {Op::kReplay, 4},     {Op::kCompiled, 4}};

Op draw_op(std::mt19937_64& random) {
  int all = 0;
  for (const Weight& each : kWeights) all += each.weight;
  int at = static_cast<int>(random() % static_cast<uint64_t>(all));
  for (const Weight& each : kWeights)
    if ((at -= each.weight) < 0) return each.op;
  return Op::kAdd;
}

std::string draw_plan(std::mt19937_64& random) {
  std::string plan = "seed=" + std::to_string(random() % 1000000);
  if (random() % 8 == 0) plan += ",pace=eager";
  switch (random() % 10) {
    case 0:
      return plan + ",oom=" + std::to_string(random() % 6);
    case 1:
      return plan + ",oom_every=" + std::to_string(2 + random() % 4);
    case 2:
      return plan + ",lose=" + std::to_string(random() % 60);
    case 3:
      return plan + ",fail=" + std::to_string(random() % 60);
    case 4:  // waits take the time that a device has, so fewer
      return random() % 4 ? plan : plan + ",hang=" + std::to_string(random() % 60);
    default:
      return plan;
  }
}

constexpr const char* kNames[] = {"make",        "full",      "add",         "scale",  "into",        "inplace",
                                  "copy",        "drop",      "read",        "record", "wait_event",  "sync_event",
                                  "query_event", "wait",      "synchronize", "stream", "empty_cache", "callback",
                                  "pinned",      "to_pinned", "capture",     "replay", "compiled"};
static_assert(std::size(kNames) == static_cast<size_t>(Op::kCount));

}  // namespace

std::string Step::text() const {
  const auto number_of = [](auto x) { return std::to_string(static_cast<int>(x)); };
  return std::string(kNames[static_cast<size_t>(op)]) + " r" + number_of(r) + " a" + number_of(a) + " b" +
         number_of(b) + " on " + number_of(device) + "." + number_of(stream) + " other " + number_of(other_device) +
         "." + number_of(other_stream) + " slot " + number_of(slot) + " number " + std::to_string(number) +
         (lane ? " lane " + number_of(lane) : "");
}

Program make_program(uint64_t seed) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15u + 1);
  Program made;
  made.seed = seed;
  made.lanes = random() % 4 == 0 ? 2 + static_cast<int>(random() % 2) : 1;
  constexpr int64_t kSizes[] = {1, 3, 64, 1000, 5000};
  made.size = kSizes[random() % std::size(kSizes)];
  made.backend = random() % 3 == 0 ? "unkindh" : "unkind";
  made.plan = draw_plan(random);
  const auto below = [&](int limit) { return static_cast<uint8_t>(random() % static_cast<uint64_t>(limit)); };
  const size_t length = 10 + random() % 60;
  for (size_t i = 0; i < length; ++i)
    made.steps.push_back({i < 3 ? Op::kMake : draw_op(random), below(made.lanes), below(kRegisters), below(kRegisters),
                          below(kRegisters), static_cast<uint8_t>(random() % 4 == 0), below(kStreams), below(kDevices),
                          below(kStreams), below(kEvents), static_cast<int32_t>(random() % 100)});
  return made;
}

}  // namespace fuzz
