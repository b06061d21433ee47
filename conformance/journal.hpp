// The outcomes of a run so far: kept in a file for a later run that resumes it, and shown if a signal stops the run.
//
// With `--json FILE` the outcomes of each op are appended to FILE.partial when the op is done. `--resume` reads them
// back. SIGTERM and SIGINT print the table so far and end the process; a kernel that never returns does not
// keep them from it.
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

class Journal {
 public:
  // Throws Error if `--resume` finds no file, or one of another run.
  Journal(const Options& options, const std::string& device);
  Journal(const Journal&) = delete;

  const std::vector<Outcome>& restored() const { return restored_; }
  bool is_done(const std::string& op) const { return done_.contains(op); }
  // Called before each op or law: `outcomes` are those of all before it.
  void begin(const std::string& name, const std::vector<Outcome>& outcomes);
  // What a signal shows: the outcomes until the last `begin`, and the name that it was given.
  std::pair<std::vector<Outcome>, std::string> found() const;
  // The whole report is written: the file of the parts goes.
  void finish();

 private:
  std::string header(const Options& options, const std::string& device) const;
  void read_parts(const std::string& expected);

  std::string path_;  // "": nothing is kept
  std::ofstream file_;
  std::vector<Outcome> restored_;
  std::set<std::string> done_;
  mutable std::mutex mutex_;
  std::vector<Outcome> found_;
  std::string current_;
};

// While this lives, SIGTERM and SIGINT end the process with 128 + signal, on a thread of their own. Make it before any
// other thread starts: one that does not know of it would get the signal, which ends the process at once.
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
