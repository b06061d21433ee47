// `backplane run`: a graph from a file on arrays from files, without Python.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace backplane::cli {

struct RunOptions {
  std::string model;
  std::vector<std::string> inputs;   // .npy, in the order of the graph's inputs
  std::vector<std::string> outputs;  // likewise; beyond these, results are only described
  std::string device;                // empty: as the file says
  std::vector<std::string> plugins;
  uint64_t seed = 0;  // of random numbers that the graph draws
  bool assignment = false;
};

int run_graph(const RunOptions& options);

}  // namespace backplane::cli
