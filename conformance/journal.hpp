// The outcomes of a run so far: kept in a file for a process that goes on from there, and shown if a signal stops the
// run.
//
// The outcomes of each op or law are appended to the file when it is done: with `--json FILE` to FILE.partial, which
// `--resume` reads back, else to one without a name. SIGTERM and SIGINT print the table so far and end the process; a
// kernel that never returns does not keep them from it.
#pragma once

#include <csignal>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "outcome.hpp"

namespace backplane::conformance {

// What the file of a run holds.
struct Kept {
  std::string device;  // "" if the run did not reach it
  std::vector<Outcome> outcomes;
  std::set<std::string> done;  // ops, and laws as "ROW CHECK"
};
Kept read_kept(const std::string& path);
// Appends an outcome, and that its op or law is done.
void append_last(const std::string& path, const Outcome& outcome);

class Journal {
 public:
  // Throws Error if `options.resume` finds no file, or one of another run.
  Journal(const std::string& path, const Options& options, const std::string& device);
  Journal(const Journal&) = delete;

  const std::vector<Outcome>& restored() const { return restored_; }
  bool is_done(const std::string& op) const { return done_.contains(op); }
  // Called before each op or law: `outcomes` are those of all before it.
  void begin(const std::string& name, const std::vector<Outcome>& outcomes);
  // Called before each case.
  void note(const std::vector<Outcome>& outcomes);
  // What a signal shows: the outcomes until the last call of these.
  std::vector<Outcome> found() const;
  // Writes the outcomes of the current op or law: the process will end.
  void write_found();

 private:
  void write_new();

  std::ofstream file_;
  std::vector<Outcome> restored_;
  std::set<std::string> done_;
  mutable std::mutex mutex_;
  std::vector<Outcome> found_;
  size_t written_ = 0;  // of `found_`
  bool any_of_current_ = false;
  std::string current_;
};

// While this lives, SIGTERM, SIGINT and SIGUSR1 end the process with 128 + signal, on a thread of their own. Make it
// before any other thread starts: one that does not know of it would get the signal, which ends the process at once.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  // While this lives, `stop` is called before that.
  class Watch {
   public:
    Watch(StopSignals& signals, std::function<void(int signal)> stop);
    ~Watch();
    Watch(const Watch&) = delete;

   private:
    StopSignals& signals_;
  };

 private:
  sigset_t watched_, before_;
  std::mutex mutex_;
  std::function<void(int)> stop_;
  std::thread thread_;
};

}  // namespace backplane::conformance
