// The thread pool. A job lies on its caller's stack and in the pool's list while it may be joined; threads claim its
// pieces by one counter. Idle workers spin for some microseconds, then sleep on `wake`; a caller whose pieces are all
// claimed waits for the threads that joined it in the same way, on `left`.
//
// The pool is never destroyed: its threads sleep through process exit. A forked child gets a new one.
#include "memory/process/parallel.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "backplane/error.hpp"
#include "backplane/threads.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/foreign_call.hpp"
#include "memory/process/interrupt.hpp"
#include "memory/process/lock.hpp"

namespace backplane::core {
namespace {

constexpr int32_t kMaxThreads = 1024;
// Enough to balance pieces of unequal cost, few enough that claiming them costs nothing beside the work.
constexpr uint64_t kPiecesPerThread = 4;
// Work of this many grains takes long, so it must be interruptible.
constexpr uint64_t kManyGrains = 4096;
constexpr uint64_t kPiecesOfMany = 64;
// Pieces that take longer are cut again.
constexpr auto kLongPiece = std::chrono::milliseconds(100);
constexpr int kSpins = 2000;

thread_local constinit bool inside_body __attribute__((tls_model("initial-exec"))) = false;

inline void pause_processor() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// True as soon as `done()` is; false after a few microseconds without.
template <class Done>
bool spin(Done done) noexcept {
  for (int i = 0; i < kSpins; ++i) {
    if (done()) return true;
    pause_processor();
  }
  return false;
}

bp_status run_body(bp_parallel_body body, void* context, int64_t begin, int64_t end, int32_t worker) noexcept {
  return call_foreign("the body of a parallel_for", [&] { return body(context, begin, end, worker); });
}

// If a body fails without a message, an earlier message must not be reported for it.
void clear_error() {
  cold().error.clear();
  cold().error_code = BP_OK;
  cold().error_is_new = false;
}

// Guards the pool's list of jobs, and what workers write to one.
StaticLock pool_lock{LockRank::kPool};

struct Job {
  const bp_parallel_body body;
  void* const context;
  const int64_t begin;
  const uint64_t size;
  const uint64_t grain;
  const uint64_t pieces;
  const int32_t max_threads;

  std::atomic<uint64_t> next_piece{0};
  std::atomic<uint64_t> cuts{1};    // into how many parts a piece is cut
  std::atomic<int32_t> helpers{0};  // workers that have joined and not left
  int32_t joined = 1;               // guarded by pool_lock, as what follows; the caller is worker 0

  std::atomic<bool> failing{false};
  uint64_t failed_piece = ~uint64_t{0};
  bp_status failure = BP_OK;
  std::string message{};

  // Where part k begins of `length` from `first` on, cut into `parts` that differ by one at most.
  static int64_t cut(int64_t first, uint64_t length, uint64_t parts, uint64_t k) {
    return static_cast<int64_t>(static_cast<uint64_t>(first) + length / parts * k + std::min(length % parts, k));
  }
  int64_t start_of(uint64_t piece) const { return cut(begin, size, pieces, piece); }
  bool has_work() const { return next_piece.load(std::memory_order_relaxed) < pieces; }

  // The earliest failing piece wins. Pieces are claimed in order, so whether one fails does not depend on timing.
  void fail(uint64_t piece, bp_status status) {
    next_piece.store(pieces, std::memory_order_relaxed);
    failing.store(true, std::memory_order_relaxed);
    std::lock_guard lock(pool_lock);
    if (piece > failed_piece) return;
    failed_piece = piece;
    failure = status;
    message = cold().error;
  }

  // Between parts the caller's thread asks for interrupts; others see that it was asked to stop.
  bp_status run_piece(uint64_t piece, int32_t worker) {
    const int64_t first = start_of(piece), last = start_of(piece + 1);
    const uint64_t length = static_cast<uint64_t>(last) - static_cast<uint64_t>(first);
    const uint64_t parts = std::clamp<uint64_t>(length / grain, 1, cuts.load(std::memory_order_relaxed));
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t part = 0; part < parts; ++part) {
      if (part > 0 && worker > 0 && failing.load(std::memory_order_relaxed)) return BP_OK;
      if (const bp_status status = worker == 0 && (piece | part) > 0 ? interrupt_status() : BP_OK) return status;
      const auto at = [&](uint64_t k) { return cut(first, length, parts, k); };
      inside_body = true;
      const bp_status status = run_body(body, context, at(part), at(part + 1), worker);
      inside_body = false;
      if (status != BP_OK) return status;
    }
    const auto took = std::chrono::steady_clock::now() - start;
    if (took > kLongPiece) cuts.store(parts * static_cast<uint64_t>(took / kLongPiece + 1), std::memory_order_relaxed);
    return BP_OK;
  }

  void work(int32_t worker) {
    CallGuard guard;
    clear_error();
    for (uint64_t piece; (piece = next_piece.fetch_add(1, std::memory_order_relaxed)) < pieces;)
      if (const bp_status status = run_piece(piece, worker)) {
        fail(piece, status);
        break;
      }
  }
};

struct ThreadPool {
  std::vector<Job*> jobs;  // that may be joined; a handful: one per thread that calls
  int32_t threads_started = 0;
  std::atomic<uint32_t> wake{0};  // grows with every job
  std::atomic<uint32_t> left{0};  // grows when a job loses its last helper

  void start_threads(int32_t wanted);
  void work_forever();
  Job* join(int32_t& worker);
  void run(Job& job);
};

// Joins a job that has pieces left; the job stays until `helpers` is given back.
Job* ThreadPool::join(int32_t& worker) {
  std::lock_guard lock(pool_lock);
  for (Job* job : jobs)
    if (job->joined < job->max_threads && job->has_work()) {
      worker = job->joined++;
      job->helpers.fetch_add(1, std::memory_order_relaxed);
      return job;
    }
  return nullptr;
}

void ThreadPool::work_forever() {
  for (;;) {
    const uint32_t seen = wake.load(std::memory_order_acquire);
    int32_t worker;
    if (Job* job = join(worker)) {
      job->work(worker);
      // From here on the job may be gone, so the caller is woken through the pool.
      if (job->helpers.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        left.fetch_add(1, std::memory_order_release);
        left.notify_all();
      }
    } else if (!spin([&] { return wake.load(std::memory_order_acquire) != seen; })) {
      wake.wait(seen, std::memory_order_acquire);
    }
  }
}

// With `pool_lock` held. Signals are left to the program's own threads. Where the system refuses more threads, the
// callers make do with those that run.
void ThreadPool::start_threads(int32_t wanted) {
  if (threads_started >= wanted) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (; threads_started < wanted; ++threads_started) {
      std::thread thread([this] { work_forever(); });
      pthread_setname_np(thread.native_handle(), "backplane");
      thread.detach();
    }
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ThreadPool::run(Job& job) {
  {
    std::lock_guard lock(pool_lock);
    start_threads(job.max_threads - 1);
    jobs.push_back(&job);
  }
  wake.fetch_add(1, std::memory_order_release);
  wake.notify_all();
  job.work(0);
  {
    std::lock_guard lock(pool_lock);
    std::erase(jobs, &job);
  }
  const auto helpers_gone = [&] { return job.helpers.load(std::memory_order_acquire) == 0; };
  if (spin(helpers_gone)) return;
  for (;;) {
    const uint32_t seen = left.load(std::memory_order_acquire);
    if (helpers_gone()) return;
    left.wait(seen, std::memory_order_acquire);
  }
}

ThreadPool* make_pool() {
  auto* pool = new ThreadPool;
  pool->jobs.reserve(64);
  return pool;
}

std::atomic<ThreadPool*>& pool() {
  static std::atomic<ThreadPool*> current{make_pool()};
  return current;
}

int32_t default_threads() {
  if (const char* text = std::getenv("BACKPLANE_NUM_THREADS")) {
    const long count = std::strtol(text, nullptr, 10);
    if (count >= 1) return static_cast<int32_t>(std::min<long>(count, kMaxThreads));
  }
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::clamp(CPU_COUNT(&allowed), 1, kMaxThreads);
  return std::clamp(static_cast<int32_t>(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

// `reported` sizes what kernels allocate per worker, `used` bounds the workers that they then see.
struct ThreadCount {
  std::atomic<int32_t> reported{default_threads()};
  std::atomic<int32_t> used{reported.load()};
  Lock changing;
  ThreadCount() { changing.enlist(LockRank::kAnew); }  // calls end while it is held
};
ThreadCount& thread_count() {
  static ThreadCount& count = *new ThreadCount;
  return count;
}

}  // namespace

int32_t worker_count() noexcept { return thread_count().reported.load(std::memory_order_relaxed); }

bp_status parallel_for(int64_t begin, int64_t end, int64_t grain, bp_parallel_body body, void* context) noexcept {
  if (begin >= end) return BP_OK;
  const uint64_t size = static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
  const uint64_t least = static_cast<uint64_t>(std::max<int64_t>(grain, 1));
  const int32_t threads = thread_count().used.load(std::memory_order_relaxed);
  const bool many = size / least >= kManyGrains;
  if (inside_body || size / least < 2 || (threads == 1 && !many)) {
    clear_error();
    return run_body(body, context, begin, end, 0);
  }
  const uint64_t pieces =
      std::min(size / least, (many ? kPiecesOfMany : kPiecesPerThread) * static_cast<uint64_t>(threads));
  const auto max_threads = static_cast<int32_t>(std::min<uint64_t>(pieces, static_cast<uint64_t>(threads)));
  Job job{body, context, begin, size, least, pieces, max_threads};
  if (max_threads == 1)
    job.work(0);
  else
    pool().load(std::memory_order_acquire)->run(job);
  if (job.failure != BP_OK) {
    cold().error = std::move(job.message);
    cold().error_code = job.failure;
    cold().error_is_new = true;
  }
  return job.failure;
}

void restart_pool_after_fork() {
  // The old one's threads are gone and its list may name jobs of threads that are gone too. Kept, not freed: the
  // forking thread may itself be inside a job of it.
  static std::vector<ThreadPool*>& abandoned = *new std::vector<ThreadPool*>;
  abandoned.push_back(pool().exchange(make_pool()));
}

}  // namespace backplane::core

namespace backplane {

int32_t get_num_threads() noexcept { return core::worker_count(); }

void set_num_threads(int32_t count) {
  BP_CHECK(count >= 1 && count <= core::kMaxThreads, VALUE, "set_num_threads: count is ", count, "; expected 1 to ",
           core::kMaxThreads);
  BP_CHECK(!core::thread_state.inside(), BUSY,
           "set_num_threads: called from inside a running call; call it between calls");
  core::ThreadCount& threads = core::thread_count();
  std::lock_guard lock(threads.changing);
  // A running kernel may have sized its buffers by worker_count(): no worker beyond that appears before it ends.
  if (count > threads.reported.load()) threads.reported.store(count);
  if (count < threads.used.load()) threads.used.store(count);
  core::drain();
  threads.used.store(count);
  threads.reported.store(count);
}

}  // namespace backplane
