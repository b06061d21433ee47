#include "world.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <thread>

#include "backplane/plugin/dtype.hpp"
#include "interpreter.hpp"

namespace backplane::collectives {
namespace {

constexpr auto kStable = std::chrono::seconds(2);  // of ranks that wait for each other

std::mutex g_world_lock;
std::shared_ptr<World> g_process_world;  // NOLINT: lives until the program leaves it
thread_local std::shared_ptr<World> t_thread_world;

// Never closed: a provider's library may have threads of its own.
template <class Query>
Query query_of(const std::string& file, const char* argument, const char* symbol) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) ::backplane::detail::fail(BP_ERROR_VALUE, "init: ", argument, ": ", dlerror());
  const auto query = reinterpret_cast<Query>(dlsym(library, symbol));
  BP_CHECK(query, VALUE, "init: ", argument, ": ", file, " exports no ", symbol);
  return query;
}

bp_collective_provider opened(const std::string& file) {
  const auto query = query_of<bp_collective_provider_query_fn>(file, "provider", BP_COLLECTIVE_PROVIDER_SYMBOL);
  bp_collective_provider provider{};
  provider.header = BP_HEADER(bp_collective_provider);
  BP_CHECK(query(BP_COLLECTIVES_VERSION, &provider) == BP_OK, VERSION, "init: provider: ", file,
           " does not offer version ", BP_COLLECTIVES_VERSION, " of the contract of collectives");
  BP_CHECK(provider.header.struct_size >= sizeof(bp_collective_provider) && provider.join && provider.make_group &&
               provider.share && provider.start && provider.test && provider.leave && provider.abort && provider.error,
           VERSION, "init: provider: ", file, " leaves functions of the contract out");
  return provider;
}

bp_collective_device_provider opened_for_devices(const std::string& file) {
  const auto query =
      query_of<bp_collective_device_provider_query_fn>(file, "devices", BP_COLLECTIVE_DEVICE_PROVIDER_SYMBOL);
  bp_collective_device_provider devices{};
  devices.header = BP_HEADER(bp_collective_device_provider);
  BP_CHECK(query(BP_COLLECTIVE_DEVICES_VERSION, &devices) == BP_OK, VERSION, "init: devices: ", file,
           " does not offer version ", BP_COLLECTIVE_DEVICES_VERSION, " of the contract of device providers");
  BP_CHECK(devices.header.struct_size >= sizeof(bp_collective_device_provider) && devices.is_available &&
               devices.make_id && devices.open && devices.supports && devices.start && devices.check && devices.close &&
               devices.error && devices.device_kind && devices.stream_kind,
           VERSION, "init: devices: ", file, " leaves functions of the contract out");
  BP_CHECK(devices.is_available() == BP_OK, DEVICE, "init: argument devices: ", devices.name, ": ", devices.error());
  return devices;
}

std::vector<int32_t> parsed(const std::string& name, int32_t size) {
  std::vector<int32_t> ranks;
  const char *at = name.data(), *end = at + name.size();
  while (true) {
    int32_t rank = -1;
    const auto [next, error] = std::from_chars(at, end, rank);
    BP_CHECK(error == std::errc() && rank >= 0 && rank < size && std::count(ranks.begin(), ranks.end(), rank) == 0,
             VALUE, "group: found '", name, "', expected 'world', or different ranks below ", size, " as in '0,2'");
    ranks.push_back(rank);
    if (next == end) return ranks;
    BP_CHECK(*next == ',', VALUE, "group: found '", name, "', expected ranks with commas between them");
    at = next + 1;
  }
}

}  // namespace

std::string described(const Notice& notice) {
  std::ostringstream text;
  text << notice.op;
  if (notice.ndim >= 0) {
    text << " of " << plugin::dtype_name(static_cast<bp_dtype>(notice.dtype)) << " (";
    for (int32_t i = 0; i < notice.ndim; ++i) text << (i ? ", " : "") << (i < kMostDims ? notice.shape[i] : -1);
    text << (notice.ndim == 1 ? ",)" : ")");
  }
  static constexpr const char* kReductions[] = {"", "sum", "max", "min", "prod", "mean"};
  if (notice.reduce > 0 && notice.reduce < 6) text << " with op " << kReductions[notice.reduce];
  if (notice.kind == BP_COLLECTIVE_BROADCAST || notice.kind == BP_COLLECTIVE_REDUCE ||
      notice.kind == BP_COLLECTIVE_SCATTER || notice.kind == BP_COLLECTIVE_GATHER)
    text << " with root " << notice.peer;
  if (notice.on_device) text << " on the device";
  if (notice.site[0]) text << " at " << notice.site;
  return text.str();
}

std::shared_ptr<World> World::join(const std::string& provider, int32_t rank, int32_t size, const std::string& name,
                                   const std::string& devices) {
  const bool threads = provider == "threads";
  const bp_collective_device_provider device_table =
      devices.empty() ? bp_collective_device_provider{} : opened_for_devices(devices);
  if (threads) place_thread(name, rank, size);
  const bp_collective_provider table = threads ? thread_provider() : opened(provider);
  void* connection = nullptr;
  if (const bp_status status = table.join(&rank, &size, &connection))
    throw Error(status, "init: " + std::string(table.name) + ": " + table.error());
  auto world = std::make_shared<World>(table, connection, rank, size, !threads);
  world->devices_ = device_table;
  // A world of one rank belongs to the process, also if a thread asks for it.
  if (threads && size > 1) {
    t_thread_world = world;
  } else {
    std::lock_guard guard(g_world_lock);
    g_process_world = world;
  }
  return world;
}

std::shared_ptr<World> World::find() noexcept {
  if (t_thread_world) return t_thread_world;
  std::lock_guard guard(g_world_lock);
  return g_process_world;
}

World& World::current() {
  const std::shared_ptr<World> world = find();
  BP_CHECK(world, DEVICE, "this process is not connected to others; call bp.distributed.init() first");
  return *world;  // held by the thread or the process
}

void World::forget(const World& world) {
  if (t_thread_world.get() == &world) t_thread_world.reset();
  std::lock_guard guard(g_world_lock);
  if (g_process_world.get() == &world) g_process_world.reset();
}

World::World(const bp_collective_provider& provider, void* connection, int32_t rank, int32_t size, bool is_process)
    : provider_(provider),
      connection_(connection),
      rank_(rank),
      size_(size),
      is_process_(is_process),
      spins_(is_process && static_cast<unsigned>(size) <= std::thread::hardware_concurrency()),
      judge_(kStable) {
  std::vector<int32_t> ranks(static_cast<size_t>(size));
  for (int32_t i = 0; i < size; ++i) ranks[static_cast<size_t>(i)] = i;
  std::unique_ptr<Group> all = make_group("world", std::move(ranks), nullptr);
  all_ = all.get();
  groups_.emplace("world", std::move(all));
  RankState& state = roll_.state(rank);
  state.process_space.store(process_space(), std::memory_order_relaxed);
  state.process.store(is_process ? getpid() : 0, std::memory_order_relaxed);
  state.state.store(RankState::kThere, std::memory_order_release);
  if (!is_process || size == 1) return;
  watcher_ = std::thread([this] { watch(); });
  if (shares_) return;
  beats_ = std::make_unique<Beats>(
      provider, connection,
      Beats::Rank{rank, size, [this] { return own_view(); },
                  [this]() -> const Failure* { return has_failed() ? &roll_.failure() : nullptr; },
                  [this](int32_t code, const std::string& text) { first_failure(code, text); }});
}

World::~World() {
  stop_moving();
  beats_.reset();
  {
    std::lock_guard guard(end_lock_);
    ends_ = true;
  }
  end_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

void World::check(bp_status status, const char* what) const {
  if (status != BP_OK) throw Error(status, std::string(what) + ": " + provider_.name + ": " + provider_.error());
}

Group& World::group(const std::string& name, const bp_host* host) {
  std::lock_guard guard(groups_lock_);
  if (const auto found = groups_.find(name); found != groups_.end()) return *found->second;
  std::unique_ptr<Group> made = make_group(name, parsed(name, size_), host);
  return *groups_.emplace(name, std::move(made)).first->second;
}

void World::leave() {
  if (left_) return;
  stop_moving();
  left_ = true;
  if (!has_failed()) close_devices();
  roll_.state(rank_).state.store(RankState::kLeft, std::memory_order_release);
  const WithoutInterpreter unlocked;  // while others compute
  if (beats_) beats_->stop();
  check(provider_.leave(connection_), "leave");
}

void World::abort() {
  stop_moving();
  // The others raise the failure, too, before their processes end.
  const auto end = Clock::now() + std::chrono::milliseconds(1500);
  const auto is_done = [&](int32_t rank) {
    const uint32_t state = roll_.state(rank).state.load(std::memory_order_acquire);
    return state != RankState::kThere || rank == rank_ || is_lost(rank);
  };
  for (bool all = false; !all && Clock::now() < end;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    all = !beats_ || beats_->all_know();
    for (int32_t rank = 0; !beats_ && rank < size_; ++rank) all = all && is_done(rank);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // in which they print it
  provider_.abort(connection_, 1);
}

}  // namespace backplane::collectives
