// See journal.hpp.
#include "journal.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "backplane/op.hpp"
#include "outcome_json.hpp"
#include "own_process.hpp"

namespace backplane::conformance {
namespace {

using Json = nlohmann::json;

std::string line_of(const Json& row) {
  return row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

Journal::Journal(const Options& options, const std::string& device) {
  BP_CHECK(!options.resume || !options.json.empty(), VALUE,
           "conformance: --resume needs --json FILE; the outcomes so far are in FILE.partial");
  if (options.json.empty()) return;
  path_ = options.json + ".partial";
  const std::string expected = header(options, device);
  if (options.resume) read_parts(expected);
  file_.open(path_, options.resume ? std::ios::app : std::ios::trunc);
  BP_CHECK(file_, VALUE, "conformance: ", options.json, ": cannot be written: ", std::strerror(errno));
  if (!options.resume) file_ << expected << std::flush;
  found_ = restored_;
}

std::string Journal::header(const Options& options, const std::string& device) const {
  return line_of({{"device", device},
                  {"mode", options.mode},
                  {"short", options.brief},
                  {"partial", options.partial},
                  {"plugins", options.plugins}});
}

void Journal::read_parts(const std::string& expected) {
  std::ifstream file(path_);
  BP_CHECK(file, VALUE, "conformance: --resume: found no ", path_,
           "; a run with the same --json that was stopped leaves it");
  std::string line;
  std::getline(file, line);
  BP_CHECK(line + "\n" == expected, VALUE, "conformance: --resume: ", path_, " belongs to another run: found ", line,
           ", expected ", expected.substr(0, expected.size() - 1));
  // The last line may be cut off where the run ended. Outcomes count when their op is done.
  std::vector<Outcome> pending;
  while (std::getline(file, line)) {
    const Json row = Json::parse(line, nullptr, false);
    if (row.is_discarded()) break;
    if (!row.contains("done")) {
      pending.push_back(outcome_of(row));
      continue;
    }
    done_.insert(row["done"].get<std::string>());
    std::move(pending.begin(), pending.end(), std::back_inserter(restored_));
    pending.clear();
  }
}

void Journal::begin(const std::string& name, const std::vector<Outcome>& outcomes) {
  std::lock_guard lock(mutex_);
  const size_t before = found_.size();
  found_.insert(found_.end(), outcomes.begin() + static_cast<std::ptrdiff_t>(before), outcomes.end());
  bool is_of_op = false;  // laws of the device are tried again
  for (size_t i = before; i < found_.size() && file_.is_open(); ++i) {
    if (found_[i].op != current_) continue;
    is_of_op = true;
    file_ << line_of(json_of(found_[i]));
  }
  if (is_of_op) file_ << line_of({{"done", current_}}) << std::flush;
  current_ = name;
}

std::pair<std::vector<Outcome>, std::string> Journal::found() const {
  std::lock_guard lock(mutex_);
  return {found_, current_};
}

void Journal::finish() {
  if (!file_.is_open()) return;
  file_.close();
  std::error_code error;
  std::filesystem::remove(path_, error);
}

StopSignals::StopSignals() {
  sigemptyset(&watched_);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR2}) sigaddset(&watched_, signal);
  pthread_sigmask(SIG_BLOCK, &watched_, &before_);
  thread_ = std::thread([this] {
    int signal = 0;
    if (sigwait(&watched_, &signal) != 0 || signal == SIGUSR2) return;
    std::lock_guard lock(mutex_);
    if (stop_) stop_(signal);
    std::fflush(stdout);
    job_is_over();
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
