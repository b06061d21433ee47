// The provider of collectives over MPI.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>

#include "calls.hpp"

namespace backplane::collectives_mpi {
namespace {

thread_local std::string t_error;

std::mutex g_one_at_a_time;
bool g_is_serialized = false;  // MPI takes calls of one thread at a time

template <class F>
bp_status guarded(F f) noexcept {
  try {
    std::unique_lock lock(g_one_at_a_time, std::defer_lock);
    if (g_is_serialized) lock.lock();
    f();
    return BP_OK;
  } catch (const MpiError& error) {
    t_error = error.what();
    return BP_ERROR_DEVICE;
  } catch (const std::bad_alloc&) {
    t_error = "out of host memory";
    return BP_ERROR_MEMORY;
  }
}

struct Connection {
  bool started_mpi = false;
  bool one_machine = true;
  std::deque<MpiGroup> groups;  // which stay where they are
};

Connection g_connection;

bool lie_on_one_machine() {
  if (const char* text = std::getenv("BACKPLANE_MPI_SHARED_MEMORY"); text && std::strcmp(text, "0") == 0) return false;
  MPI_Comm near = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near), "MPI_Comm_split_type");
  int all = 0, here = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  MPI_Comm_size(near, &here);
  MPI_Comm_free(&near);
  return all == here;
}

bp_status BP_CALL join(int32_t* rank, int32_t* size, void** connection) {
  return guarded([&] {
    // Open MPI opens components of its own, which look for its symbols in the whole process.
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &info))
      dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    int is_running = 0, has_ended = 0, level = 0;
    MPI_Initialized(&is_running);
    MPI_Finalized(&has_ended);
    if (has_ended) throw MpiError("MPI_Finalize was called before; MPI starts once in a process");
    if (is_running) {
      MPI_Query_thread(&level);
    } else {
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
      g_connection.started_mpi = true;
    }
    if (level < MPI_THREAD_SERIALIZED)
      throw MpiError("this MPI serves one thread alone (MPI_THREAD_SERIALIZED is needed)");
    g_is_serialized = level == MPI_THREAD_SERIALIZED;
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    if (const char* text = std::getenv("BACKPLANE_MPI_LARGEST_COUNT"))
      g_largest_count = std::max(1LL, std::atoll(text));
    int own = 0, all = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    *rank = own;
    *size = all;
    g_connection.one_machine = lie_on_one_machine();
    *connection = &g_connection;
  });
}

bp_status BP_CALL make_group(void*, const int32_t* ranks, int32_t n_ranks, void** group) {
  return guarded([&] {
    MPI_Group all = MPI_GROUP_NULL, part = MPI_GROUP_NULL;
    MpiGroup made;
    check(MPI_Comm_group(MPI_COMM_WORLD, &all), "MPI_Comm_group");
    check(MPI_Group_incl(all, n_ranks, ranks, &part), "MPI_Group_incl");
    check(MPI_Comm_create_group(MPI_COMM_WORLD, part, 0, &made.comm), "MPI_Comm_create_group");
    MPI_Group_free(&part);
    MPI_Group_free(&all);
    check(MPI_Comm_set_errhandler(made.comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    MPI_Comm_rank(made.comm, &made.rank);
    MPI_Comm_size(made.comm, &made.size);
    *group = &g_connection.groups.emplace_back(made);
  });
}

bp_status BP_CALL share(void* handle, uint64_t bytes, void** memory) {
  MpiGroup& group = *static_cast<MpiGroup*>(handle);
  *memory = nullptr;
  if (!g_connection.one_machine) return BP_OK;
  return guarded([&] {
    void* own = nullptr;
    const bool is_first = group.rank == 0;
    check(MPI_Win_allocate_shared(is_first ? static_cast<MPI_Aint>(bytes) : 0, 1, MPI_INFO_NULL, group.comm, &own,
                                  &group.window),
          "MPI_Win_allocate_shared");
    MPI_Aint size = 0;
    int unit = 0;
    check(MPI_Win_shared_query(group.window, 0, &size, &unit, memory), "MPI_Win_shared_query");
    if (is_first) std::memset(*memory, 0, bytes);
    check(MPI_Barrier(group.comm), "MPI_Barrier");
  });
}

bp_status BP_CALL start_call(void* group, const bp_collective_call* call, void** work) {
  *work = nullptr;
  return guarded([&] {
    auto requests = std::make_unique<Requests>();
    start(*static_cast<MpiGroup*>(group), *call, *requests);
    if (requests->all.empty()) return;
    int done = 0;
    check(MPI_Testall(static_cast<int>(requests->all.size()), requests->all.data(), &done, MPI_STATUSES_IGNORE),
          "MPI_Testall");
    if (!done) *work = requests.release();
  });
}

bp_status BP_CALL test_call(void*, void* work, int32_t* done) {
  *done = 0;
  return guarded([&] {
    Requests& requests = *static_cast<Requests*>(work);
    int ended = 0;
    check(MPI_Testall(static_cast<int>(requests.all.size()), requests.all.data(), &ended, MPI_STATUSES_IGNORE),
          "MPI_Testall");
    if (!ended) return;
    delete &requests;
    *done = 1;
  });
}

// A window outlives its communicator: first the windows, then the communicators.
bp_status BP_CALL leave(void*) {
  return guarded([&] {
    int has_ended = 0;
    MPI_Finalized(&has_ended);
    if (has_ended) return;
    for (MpiGroup& group : g_connection.groups) {
      if (g_connection.started_mpi) continue;  // MPI_Finalize frees them, without waiting for each
      if (group.window != MPI_WIN_NULL) MPI_Win_free(&group.window);
      MPI_Comm_free(&group.comm);
    }
    g_connection.groups.clear();
    if (g_connection.started_mpi) check(MPI_Finalize(), "MPI_Finalize");
  });
}

void BP_CALL abort_all(void*, int32_t code) {
  int has_ended = 0;
  MPI_Finalized(&has_ended);
  if (!has_ended) MPI_Abort(MPI_COMM_WORLD, code);
}

const char* BP_CALL last_error() { return t_error.c_str(); }

}  // namespace
}  // namespace backplane::collectives_mpi

extern "C" BP_EXPORT bp_status BP_CALL bp_collective_provider_query(uint32_t version, bp_collective_provider* out) {
  using namespace backplane::collectives_mpi;
  if (version < BP_COLLECTIVES_VERSION || out->header.struct_size < sizeof(bp_collective_provider))
    return BP_ERROR_VERSION;
  *out = {{sizeof(bp_collective_provider), BP_COLLECTIVES_VERSION},
          "MPI",
          join,
          make_group,
          share,
          start_call,
          test_call,
          leave,
          abort_all,
          last_error};
  return BP_OK;
}
