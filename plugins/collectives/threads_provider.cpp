// The provider whose ranks are threads of one process: for tests, and for several devices of one process. Each rank
// reads the others' operands where they lie.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "results.hpp"
#include "world.hpp"

namespace backplane::collectives {
namespace {

struct ThreadGroup {
  explicit ThreadGroup(size_t n) : calls(n), mail(n * n) {}
  std::vector<const bp_collective_call*> calls;  // of the round that is running, by place
  std::atomic<uint64_t> arrived{0}, done{0};     // over all rounds
  std::mutex mail_lock;
  std::vector<std::deque<std::vector<char>>> mail;  // from × n + to
  std::unique_ptr<char[], decltype(&std::free)> memory{nullptr, &std::free};
};

struct ThreadWorld {
  std::mutex lock;
  std::map<std::vector<int32_t>, std::shared_ptr<ThreadGroup>> groups;
};

// A group as one rank has it.
struct Member {
  std::shared_ptr<ThreadGroup> group;
  size_t place, size;
  uint64_t rounds = 0;
};

struct Connection {
  std::shared_ptr<ThreadWorld> world;
  int32_t rank;
  std::vector<std::unique_ptr<Member>> members;
};

struct Work {
  bp_collective_call call;
  uint64_t end;  // how many have arrived, and are done, when this round has
  bool copied = false;
};

std::mutex g_worlds_lock;
std::map<std::string, std::weak_ptr<ThreadWorld>> g_worlds;
thread_local struct Place {
  std::string world;
  int32_t rank = 0, size = 1;
} t_place;
thread_local std::string t_thread_error;

bp_status compute(const Member& member, const bp_collective_call& call) {
  std::vector<const void*> operands(member.size);
  for (size_t i = 0; i < member.size; ++i) operands[i] = member.group->calls[i]->in;
  const bp_status status = compute_result(call, member.place, operands);
  if (status != BP_OK) t_thread_error = "a dtype that does not reduce";
  return status;
}

bp_status BP_CALL join_threads(int32_t* rank, int32_t* size, void** connection) {
  *rank = t_place.rank;
  *size = t_place.size;
  std::lock_guard guard(g_worlds_lock);
  auto& known = g_worlds[t_place.world];
  std::shared_ptr<ThreadWorld> world = known.lock();
  if (!world) known = world = std::make_shared<ThreadWorld>();
  *connection = new Connection{std::move(world), t_place.rank, {}};
  return BP_OK;
}

bp_status BP_CALL make_thread_group(void* connection, const int32_t* ranks, int32_t n_ranks, void** group) {
  Connection& own = *static_cast<Connection*>(connection);
  const std::vector<int32_t> key(ranks, ranks + n_ranks);
  auto member = std::make_unique<Member>();
  member->size = key.size();
  for (size_t i = 0; i < key.size(); ++i)
    if (key[i] == own.rank) member->place = i;
  std::lock_guard guard(own.world->lock);
  auto& known = own.world->groups[key];
  if (!known) known = std::make_shared<ThreadGroup>(key.size());
  member->group = known;
  *group = member.get();
  own.members.push_back(std::move(member));
  return BP_OK;
}

bp_status BP_CALL share_between_threads(void* group, uint64_t bytes, void** memory) {
  ThreadGroup& shared = *static_cast<Member*>(group)->group;
  std::lock_guard guard(shared.mail_lock);
  if (!shared.memory) shared.memory.reset(static_cast<char*>(std::calloc(bytes, 1)));
  *memory = shared.memory.get();
  return *memory ? BP_OK : BP_ERROR_MEMORY;
}

bp_status BP_CALL start_in_thread(void* group, const bp_collective_call* call, void** work) {
  Member& member = *static_cast<Member*>(group);
  *work = nullptr;
  if (call->kind == BP_COLLECTIVE_SEND) {
    const char* in = static_cast<const char*>(call->in);
    std::lock_guard guard(member.group->mail_lock);
    member.group->mail[member.place * member.size + static_cast<size_t>(call->peer)].emplace_back(in, in + call->count);
    return BP_OK;
  }
  if (call->kind == BP_COLLECTIVE_RECV) {
    *work = new Work{*call, 0};
    return BP_OK;
  }
  const uint64_t end = ++member.rounds * member.size;
  Work* own = new Work{*call, end};
  member.group->calls[member.place] = &own->call;
  member.group->arrived.fetch_add(1, std::memory_order_release);
  *work = own;
  return BP_OK;
}

bp_status receive(Member& member, Work& work, int32_t* done) {
  std::lock_guard guard(member.group->mail_lock);
  auto& mail = member.group->mail[static_cast<size_t>(work.call.peer) * member.size + member.place];
  if (mail.empty()) return BP_OK;
  std::memcpy(work.call.out, mail.front().data(), mail.front().size());
  mail.pop_front();
  *done = 1;
  return BP_OK;
}

bp_status BP_CALL test_in_thread(void* group, void* handle, int32_t* done) {
  Member& member = *static_cast<Member*>(group);
  Work& work = *static_cast<Work*>(handle);
  *done = 0;
  bp_status status = BP_OK;
  if (work.call.kind == BP_COLLECTIVE_RECV) {
    status = receive(member, work, done);
  } else {
    if (!work.copied && member.group->arrived.load(std::memory_order_acquire) >= work.end) {
      status = compute(member, work.call);
      work.copied = true;
      member.group->done.fetch_add(1, std::memory_order_acq_rel);
    }
    // The others may still read this rank's operand.
    *done = work.copied && member.group->done.load(std::memory_order_acquire) >= work.end;
  }
  if (*done) delete &work;
  return status;
}

bp_status BP_CALL leave_threads(void* connection) {
  delete static_cast<Connection*>(connection);
  return BP_OK;
}

void BP_CALL abort_threads(void*, int32_t) {}
const char* BP_CALL thread_error() { return t_thread_error.c_str(); }

}  // namespace

const bp_collective_provider& thread_provider() {
  static constexpr bp_collective_provider kProvider{{sizeof(bp_collective_provider), BP_COLLECTIVES_VERSION},
                                                    "threads",
                                                    join_threads,
                                                    make_thread_group,
                                                    share_between_threads,
                                                    start_in_thread,
                                                    test_in_thread,
                                                    leave_threads,
                                                    abort_threads,
                                                    thread_error};
  return kProvider;
}

void place_thread(const std::string& world, int32_t rank, int32_t size) { t_place = {world, rank, size}; }

}  // namespace backplane::collectives
