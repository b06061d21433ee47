// A stand-in for NCCL: collectives between the emulated devices of one process, whose ranks are threads. A call runs
// once all ranks have made it and their streams have come to it. What the library's manual forbids is refused by name.
#include "nccl.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "elements.hpp"

using namespace backplane;
using namespace backplane::nccl;

namespace {

enum Kind { kAllReduce, kReduce, kReduceScatter, kAllGather, kBroadcast, kExchange };

// A send or a receive of an exchange.
struct Transfer {
  bool sends = false;
  int peer = 0;
  const void* in = nullptr;
  void* out = nullptr;
  size_t bytes = 0;
};

// A call as one rank makes it.
struct Part {
  Kind kind{};
  const void* in = nullptr;
  void* out = nullptr;
  size_t count = 0;
  Type type{};
  Op op{};
  int root = 0;
  std::vector<Transfer> transfers;
};

// A call of all ranks.
struct Round {
  std::shared_ptr<void> joint;
  std::vector<Part> parts;
  int made = 0;
};

struct Clique {
  int size = 0, joined = 0;
  std::map<uint64_t, std::shared_ptr<Round>> rounds;  // that some rank has not made yet
};

}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  uint64_t calls = 0;
  std::string error;
};

namespace {

std::mutex mutex;  // guards what follows, and all cliques
std::condition_variable joined;
std::map<std::string, std::shared_ptr<Clique>> cliques;
uint64_t ids = 0;

struct Open {  // a group of calls that is open on this thread
  int depth = 0;
  Comm comm = nullptr;
  Stream stream = nullptr;
  std::vector<Transfer> transfers;
};
thread_local Open open_group;

Result refuse(Comm comm, Result result, const std::string& what) {
  std::fprintf(stderr, "emulated NCCL: %s\n", what.c_str());
  if (comm) comm->error = what;
  return result;
}

size_t bytes_of(Type type) {
  static constexpr size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kBytes[type];
}

template <class T>
void reduce_as(const std::vector<Part>& parts, const Part& own, size_t first) {
  for (size_t i = 0; i < own.count; ++i) {
    const auto at = [&](const Part& part) {
      return static_cast<typename emulator::Element<T>::Sum>(
          emulator::load<T>(static_cast<const char*>(part.in) + (first + i) * sizeof(T)));
    };
    auto sum = at(parts[0]);
    for (size_t rank = 1; rank < parts.size(); ++rank) {
      const auto other = at(parts[rank]);
      switch (own.op) {
        case kProd:
          sum = sum * other;
          break;
        case kMax:
          sum = other > sum ? other : sum;
          break;
        case kMin:
          sum = other < sum ? other : sum;
          break;
        default:
          sum = sum + other;
      }
    }
    if (own.op == kAvg) sum = sum / static_cast<typename emulator::Element<T>::Sum>(parts.size());
    emulator::store<T>(static_cast<char*>(own.out) + i * sizeof(T), sum);
  }
}

void reduce_one(const std::vector<Part>& parts, const Part& own, size_t first) {
  switch (own.type) {
    case kInt8:
      return reduce_as<int8_t>(parts, own, first);
    case kUint8:
      return reduce_as<uint8_t>(parts, own, first);
    case kInt32:
      return reduce_as<int32_t>(parts, own, first);
    case kUint32:
      return reduce_as<uint32_t>(parts, own, first);
    case kInt64:
      return reduce_as<int64_t>(parts, own, first);
    case kUint64:
      return reduce_as<uint64_t>(parts, own, first);
    case kFloat16:
      return reduce_as<emulator::Half>(parts, own, first);
    case kFloat32:
      return reduce_as<float>(parts, own, first);
    case kFloat64:
      return reduce_as<double>(parts, own, first);
    case kBfloat16:
      return reduce_as<emulator::Brain>(parts, own, first);
  }
}

void copy(void* to, const void* from, size_t bytes) {
  std::memmove(emulator::writable(to, bytes), emulator::readable(from, bytes), bytes);
}

void exchange(const std::vector<Part>& parts) {
  for (size_t to = 0; to < parts.size(); ++to)
    for (const Transfer& receive : parts[to].transfers) {
      if (receive.sends) continue;
      const Transfer* found = nullptr;
      for (const Transfer& send : parts[static_cast<size_t>(receive.peer)].transfers)
        if (send.sends && static_cast<size_t>(send.peer) == to) found = &send;
      if (!found || found->bytes != receive.bytes)
        emulator::end_with_fault("emulated NCCL: a receive has no send of its size");
      copy(receive.out, found->in, receive.bytes);
    }
}

// All ranks' parts, on the device.
void run(const std::vector<Part>& parts) {
  const Part& first = parts[0];
  for (const Part& part : parts)
    if (part.kind != first.kind || part.count != first.count || part.type != first.type || part.op != first.op ||
        part.root != first.root)
      emulator::end_with_fault("emulated NCCL: the ranks' calls differ");
  const size_t bytes = first.count * bytes_of(first.type);
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    const Part& part = parts[rank];
    const bool is_root = rank == static_cast<size_t>(part.root);
    char* out = static_cast<char*>(part.out);
    if (part.kind == kAllReduce || (part.kind == kReduce && is_root)) reduce_one(parts, part, 0);
    if (part.kind == kReduceScatter) reduce_one(parts, part, rank * part.count);
    if (part.kind == kBroadcast) copy(out, parts[static_cast<size_t>(part.root)].in, bytes);
    if (part.kind == kAllGather)
      for (size_t from = 0; from < parts.size(); ++from) copy(out + from * bytes, parts[from].in, bytes);
  }
  if (first.kind == kExchange) exchange(parts);
}

Result add(Comm comm, Stream stream, Part part) {
  if (open_group.depth > 0) return refuse(comm, kInvalidUsage, "only sends and receives are emulated within a group");
  std::lock_guard lock(mutex);
  Clique& clique = *comm->clique;
  std::shared_ptr<Round>& round = clique.rounds[comm->calls];
  if (!round) round = std::make_shared<Round>(Round{nullptr, std::vector<Part>(static_cast<size_t>(clique.size)), 0});
  round->parts[static_cast<size_t>(comm->rank)] = std::move(part);
  const std::shared_ptr<Round> held = round;
  if (++round->made == clique.size) clique.rounds.erase(comm->calls);
  ++comm->calls;
  if (!emulator::record_joint_work(stream, clique.size, held->joint, [held] { run(held->parts); }))
    return refuse(comm, kInvalidArgument,
                  "the stream is of another device than the current one, or the device is lost");
  return kSuccess;
}

Result transfer(Comm comm, Stream stream, const Transfer& one) {
  if (open_group.depth == 0) return refuse(comm, kInvalidUsage, "sends and receives are emulated within a group alone");
  if (open_group.comm && (open_group.comm != comm || open_group.stream != stream))
    return refuse(comm, kInvalidUsage, "a group on several communicators or streams is not emulated");
  if (one.peer < 0 || one.peer >= comm->clique->size) return refuse(comm, kInvalidArgument, "a peer that is not there");
  open_group.comm = comm;
  open_group.stream = stream;
  open_group.transfers.push_back(one);
  return kSuccess;
}

}  // namespace

extern "C" {

#define BP_EXPORTED __attribute__((visibility("default")))

BP_EXPORTED Result ncclGetVersion(int* version) {
  *version = 22700;
  return kSuccess;
}
BP_EXPORTED const char* ncclGetErrorString(Result result) {
  return result == kInvalidArgument ? "invalid argument" : result == kInvalidUsage ? "invalid usage" : "system error";
}
BP_EXPORTED const char* ncclGetLastError(Comm comm) { return comm ? comm->error.c_str() : ""; }
BP_EXPORTED Result ncclGetUniqueId(UniqueId* id) {
  std::lock_guard lock(mutex);
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "emulated %llu", static_cast<unsigned long long>(++ids));
  return kSuccess;
}
BP_EXPORTED Result ncclCommInitRank(Comm* comm, int size, UniqueId id, int rank) {
  std::unique_lock lock(mutex);
  std::shared_ptr<Clique>& known = cliques[std::string(id.internal)];
  if (!known) known = std::make_shared<Clique>();
  const std::shared_ptr<Clique> clique = known;
  clique->size = size;
  ++clique->joined;
  joined.notify_all();
  if (!joined.wait_for(lock, std::chrono::seconds(20), [&] { return clique->joined == clique->size; }))
    return refuse(nullptr, 2, "a rank has not joined; the ranks have to be threads of one process");
  cliques.erase(id.internal);
  *comm = new ncclComm{clique, rank, 0, {}};
  return kSuccess;
}
BP_EXPORTED Result ncclCommDestroy(Comm comm) {
  delete comm;
  return kSuccess;
}
BP_EXPORTED Result ncclCommGetAsyncError(Comm, Result* error) {
  *error = kSuccess;
  return kSuccess;
}
BP_EXPORTED Result ncclGroupStart() {
  ++open_group.depth;
  return kSuccess;
}
BP_EXPORTED Result ncclGroupEnd() {
  if (open_group.depth == 0) return refuse(nullptr, kInvalidUsage, "no group is open");
  if (--open_group.depth > 0 || open_group.transfers.empty()) return kSuccess;
  Part part;
  part.kind = kExchange;
  part.type = kUint8;
  part.transfers = std::move(open_group.transfers);
  const Open ended = open_group;
  open_group = {};
  return add(ended.comm, ended.stream, std::move(part));
}
BP_EXPORTED Result ncclAllReduce(const void* in, void* out, size_t count, Type type, Op op, Comm comm, Stream stream) {
  return add(comm, stream, {kAllReduce, in, out, count, type, op, 0, {}});
}
BP_EXPORTED Result ncclReduce(const void* in, void* out, size_t count, Type type, Op op, int root, Comm comm,
                              Stream stream) {
  return add(comm, stream, {kReduce, in, out, count, type, op, root, {}});
}
BP_EXPORTED Result ncclReduceScatter(const void* in, void* out, size_t count, Type type, Op op, Comm comm,
                                     Stream stream) {
  return add(comm, stream, {kReduceScatter, in, out, count, type, op, 0, {}});
}
BP_EXPORTED Result ncclAllGather(const void* in, void* out, size_t count, Type type, Comm comm, Stream stream) {
  return add(comm, stream, {kAllGather, in, out, count, type, {}, 0, {}});
}
BP_EXPORTED Result ncclBroadcast(const void* in, void* out, size_t count, Type type, int root, Comm comm,
                                 Stream stream) {
  return add(comm, stream, {kBroadcast, in, out, count, type, {}, root, {}});
}
BP_EXPORTED Result ncclSend(const void* in, size_t count, Type type, int peer, Comm comm, Stream stream) {
  return transfer(comm, stream, {true, peer, in, nullptr, count * bytes_of(type)});
}
BP_EXPORTED Result ncclRecv(void* out, size_t count, Type type, int peer, Comm comm, Stream stream) {
  return transfer(comm, stream, {false, peer, nullptr, out, count * bytes_of(type)});
}

}  // extern "C"
