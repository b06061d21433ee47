// See journal.hpp.
#include "journal.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "backplane/op.hpp"
#include "outcome_json.hpp"
#include "shared_cases.hpp"

namespace backplane::conformance {
namespace {

using Json = nlohmann::json;

std::string line_of(const Json& row) {
  return row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// The op, or the law as it is announced.
std::string name_of(const Outcome& outcome) {
  return outcome.op.starts_with('(') ? outcome.op + " " + outcome.check : outcome.op;
}

std::string header_of(const Options& options, const std::string& device) {
  return line_of({{"device", device},
                  {"mode", options.mode},
                  {"short", options.brief},
                  {"partial", options.partial},
                  {"plugins", options.plugins}});
}

void check_header(const std::string& path, const std::string& expected) {
  std::ifstream file(path);
  BP_CHECK(file, VALUE, "conformance: --resume: found no ", path,
           "; a run with the same --json that was stopped leaves it");
  std::string line;
  std::getline(file, line);
  BP_CHECK(line + "\n" == expected, VALUE, "conformance: --resume: ", path, " belongs to another run: found ", line,
           ", expected ", expected.substr(0, expected.size() - 1));
}

}  // namespace

Kept read_kept(const std::string& path) {
  std::ifstream file(path);
  Kept kept;
  std::vector<Outcome> pending;
  // A line is cut off where a process ended within it. Outcomes count when their op is done.
  for (std::string line; std::getline(file, line);) {
    const Json row = Json::parse(line, nullptr, false);
    if (row.is_discarded()) continue;
    if (row.contains("device")) {
      kept.device = row["device"].get<std::string>();
      continue;
    }
    if (!row.contains("done")) {
      pending.push_back(outcome_of(row));
      continue;
    }
    kept.done.insert(row["done"].get<std::string>());
    std::move(pending.begin(), pending.end(), std::back_inserter(kept.outcomes));
    pending.clear();
  }
  return kept;
}

void append_last(const std::string& path, const Outcome& outcome) {
  std::ofstream file(path, std::ios::app);
  file << "\n" << line_of(json_of(outcome)) << line_of({{"done", name_of(outcome)}});
}

Journal::Journal(const std::string& path, const Options& options, const std::string& device) {
  const std::string expected = header_of(options, device);
  if (options.resume) {
    check_header(path, expected);
    Kept kept = read_kept(path);
    restored_ = std::move(kept.outcomes);
    done_ = std::move(kept.done);
  }
  file_.open(path, options.resume ? std::ios::app : std::ios::trunc);
  BP_CHECK(file_, VALUE, "conformance: ", options.json, ": cannot be written: ", std::strerror(errno));
  if (!options.resume) file_ << expected << std::flush;
  found_ = restored_;
  written_ = found_.size();
}

void Journal::begin(const std::string& name, const std::vector<Outcome>& outcomes) {
  note(outcomes);
  std::lock_guard lock(mutex_);
  write_new();
  if (any_of_current_) file_ << line_of({{"done", current_}}) << std::flush;
  any_of_current_ = false;
  current_ = name;
}

void Journal::note(const std::vector<Outcome>& outcomes) {
  std::lock_guard lock(mutex_);
  found_.insert(found_.end(), outcomes.begin() + static_cast<std::ptrdiff_t>(found_.size()), outcomes.end());
}

std::vector<Outcome> Journal::found() const {
  std::lock_guard lock(mutex_);
  return found_;
}

void Journal::write_found() {
  std::lock_guard lock(mutex_);
  write_new();
  file_ << std::flush;
}

// Outcomes that belong to neither are tried again, as the one about a tensor that is too large.
void Journal::write_new() {
  for (; written_ < found_.size(); ++written_) {
    const Outcome& outcome = found_[written_];
    if (outcome.op != current_ && name_of(outcome) != current_) continue;
    any_of_current_ = true;
    file_ << line_of(json_of(outcome));
  }
}

StopSignals::StopSignals() {
  sigemptyset(&watched_);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) sigaddset(&watched_, signal);
  pthread_sigmask(SIG_BLOCK, &watched_, &before_);
  thread_ = std::thread([this] {
    int signal = 0;
    if (sigwait(&watched_, &signal) != 0 || signal == SIGUSR2) return;
    std::lock_guard lock(mutex_);
    if (stop_) stop_(signal);
    std::fflush(stdout);
    shared_cases::set_over();
    _exit(128 + signal);
  });
}

StopSignals::~StopSignals() {
  pthread_kill(thread_.native_handle(), SIGUSR2);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

StopSignals::Watch::Watch(StopSignals& signals, std::function<void(int signal)> stop) : signals_(signals) {
  std::lock_guard lock(signals_.mutex_);
  signals_.stop_ = std::move(stop);
}

StopSignals::Watch::~Watch() {
  std::lock_guard lock(signals_.mutex_);
  signals_.stop_ = nullptr;
}

}  // namespace backplane::conformance
