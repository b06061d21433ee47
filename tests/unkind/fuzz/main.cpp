// The stream fuzzer: random programs of allocations, writes, copies, events, waits, captures, replays, compiled calls,
// callbacks and losses on the unkind devices, against the same steps one after another.
//
// fuzz_streams PLUGINS... [--seconds S] [--sequences N] [--seed S]: programs of the seeds S, S + 1, ..., in child
// processes that run many each, so that what ends a process or hangs is one program's failure too.
// fuzz_streams PLUGINS... --one SEED [--keep 0,4,7]: that program, or those steps of it.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "backplane/device.hpp"
#include "backplane/plugins.hpp"
#include "program.hpp"

namespace fuzz {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kBatch = 200;          // programs per child
constexpr int kProgramSeconds = 30;  // after which a program hangs
constexpr int kMostShrinks = 150;
constexpr auto kLongestShrink = std::chrono::minutes(2);  // of a program that hangs

struct Options {
  std::vector<std::string> plugins;
  double seconds = 120;
  uint64_t sequences = 0;  // 0: as many as there is time for
  uint64_t seed = 1;
  int64_t one = -1;
  std::vector<bool> keep;
};

[[noreturn]] void usage(const char* word) {
  std::fprintf(stderr,
               "fuzz streams: found %s, expected --sequences N, --seconds S, --seed S, --one SEED or --keep LIST\n",
               word);
  std::exit(2);
}

std::vector<bool> listed(const char* text) {
  std::vector<bool> keep;
  while (*text) {
    char* end = nullptr;
    const size_t at = std::strtoul(text, &end, 10);
    if (end == text) usage(text);
    if (keep.size() <= at) keep.resize(at + 1);
    keep[at] = true;
    text = *end == ',' ? end + 1 : end;
  }
  return keep;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word[0] != '-') {
      options.plugins.push_back(word);
      continue;
    }
    if (++i == argc) usage(word.c_str());
    if (word == "--seconds")
      options.seconds = std::strtod(argv[i], nullptr);
    else if (word == "--sequences")
      options.sequences = std::strtoull(argv[i], nullptr, 10);
    else if (word == "--seed")
      options.seed = std::strtoull(argv[i], nullptr, 10);
    else if (word == "--one")
      options.one = std::strtoll(argv[i], nullptr, 10);
    else if (word == "--keep")
      options.keep = listed(argv[i]);
    else
      usage(word.c_str());
  }
  return options;
}

void load(const Options& options) {
  for (const std::string& plugin : options.plugins) backplane::load_plugin(plugin);
}

// In a child: the programs first, first + 1, ... The pipe has the seed of each before it runs, then its failure.
struct Report {
  uint64_t seed;
  uint32_t length;  // of the text that follows; 0: it begins
};
void tell(int pipe, uint64_t seed, const std::string& text) {
  const Report report{seed, static_cast<uint32_t>(text.size())};
  if (write(pipe, &report, sizeof report) != sizeof report) _exit(3);
  if (!text.empty() && write(pipe, text.data(), text.size()) < 0) _exit(3);
}

Program chosen(uint64_t seed, const std::vector<bool>& keep) {
  Program program = make_program(seed);
  if (keep.empty()) return program;
  std::vector<Step> steps;
  for (size_t i = 0; i < program.steps.size() && i < keep.size(); ++i)
    if (keep[i]) steps.push_back(program.steps[i]);
  program.steps = std::move(steps);
  return program;
}

struct Failure {
  bool failed = false;
  uint64_t seed = 0;
  std::string text;
};

// Runs programs in a child until one fails.
Failure run_in_child(const Options& options, uint64_t first, uint64_t count, const std::vector<bool>& keep,
                     bool quiet) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(3);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    if (quiet) dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    load(options);
    for (uint64_t seed = first; seed < first + count; ++seed) {
      tell(ends[1], seed, "");
      alarm(kProgramSeconds);
      if (const std::string wrong = run_program(chosen(seed, keep)); !wrong.empty()) {
        tell(ends[1], seed, wrong);
        _exit(1);
      }
    }
    alarm(0);
    std::exit(0);
  }
  close(ends[1]);
  Failure failure;
  Report report;
  while (read(ends[0], &report, sizeof report) == sizeof report) {
    failure.seed = report.seed;
    failure.text.resize(report.length);
    if (report.length && read(ends[0], failure.text.data(), report.length) < 0) break;
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  failure.failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  if (failure.failed && failure.text.empty())
    failure.text = !WIFSIGNALED(status) ? "the process ended with status " + std::to_string(WEXITSTATUS(status))
                   : WTERMSIG(status) == SIGALRM ? "it was not over in " + std::to_string(kProgramSeconds) + " seconds"
                                                 : std::string("signal: ") + strsignal(WTERMSIG(status));
  return failure;
}

// Leaves out ever smaller pieces of the list, as long as the rest fails.
std::vector<bool> shrink(const Options& options, uint64_t seed) {
  std::vector<bool> keep(make_program(seed).steps.size(), true);
  int tries = 0;
  const auto end = Clock::now() + kLongestShrink;
  const auto goes_on = [&] { return tries < kMostShrinks && Clock::now() < end; };
  for (size_t piece = std::max<size_t>(keep.size() / 2, 1); goes_on();) {
    bool smaller = false;
    for (size_t at = 0; at < keep.size() && goes_on(); at += piece) {
      std::vector<bool> less = keep;
      for (size_t i = at; i < std::min(at + piece, less.size()); ++i) less[i] = false;
      if (less == keep) continue;
      ++tries;
      if (run_in_child(options, seed, 1, less, true).failed) {
        keep = less;
        smaller = true;
      }
    }
    if (piece == 1 && !smaller) break;
    if (piece > 1) piece /= 2;
  }
  return keep;
}

void print_failure(const Options& options, const Failure& failure) {
  std::printf("FAIL seed %llu: %s\n", static_cast<unsigned long long>(failure.seed), failure.text.c_str());
  std::fflush(stdout);
  const std::vector<bool> keep = shrink(options, failure.seed);
  const Program program = make_program(failure.seed);
  std::printf("  backend %s, plan %s, %lld elements, %d lanes\n", program.backend.c_str(), program.plan.c_str(),
              static_cast<long long>(program.size), program.lanes);
  std::string list;
  for (size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) continue;
    std::printf("  %zu: %s\n", i, program.steps[i].text().c_str());
    list += (list.empty() ? "" : ",") + std::to_string(i);
  }
  std::printf("  again: fuzz_streams PLUGINS --one %llu --keep %s\n", static_cast<unsigned long long>(failure.seed),
              list.c_str());
  std::fflush(stdout);
}

int run_one(const Options& options) {
  load(options);
  const std::string wrong = run_program(chosen(static_cast<uint64_t>(options.one), options.keep));
  std::printf("%s\n", wrong.empty() ? "it holds" : wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

int run_many(const Options& options) {
  constexpr int kMostFailures = 5;
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  uint64_t done = 0;
  int failures = 0;
  while (failures < kMostFailures && (options.sequences ? done < options.sequences : seconds() < options.seconds)) {
    const uint64_t count = options.sequences ? std::min<uint64_t>(kBatch, options.sequences - done) : kBatch;
    const uint64_t first = options.seed + done;
    const Failure failure = run_in_child(options, first, count, {}, false);
    done += failure.failed ? failure.seed - first + 1 : count;
    if (!failure.failed) continue;
    ++failures;
    print_failure(options, failure);
  }
  std::printf("%llu sequences from seed %llu in %.0f s, %d failed\n", static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(options.seed), seconds(), failures);
  return failures ? 1 : 0;
}

}  // namespace
}  // namespace fuzz

int main(int argc, char** argv) {
  const fuzz::Options options = fuzz::parse(argc, argv);
  return options.one >= 0 ? fuzz::run_one(options) : fuzz::run_many(options);
}
