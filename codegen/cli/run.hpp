// The command without its argument parsing: what tests call.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace backplane::codegen {

struct Options {
  std::vector<std::string> ops;
  std::vector<std::string> imports;
  bool default_import = true;  // look for the installed ops.yaml where no import is given
  std::string out;
  std::string symbol;                 // "": the namespace of the first file
  std::vector<std::string> emit;      // empty: everything
  std::vector<std::string> dialects;  // of scalar functions; empty: all
  std::string depfile;
  std::string stamp;  // a file that is new after each run
  std::string explain;
  bool base = false;  // the files are backplane's own, of namespace bp
  bool check = false;
  bool list = false;
  bool list_outputs = false;
  bool standalone = false;  // scalar headers include no header of another namespace
};

// Exit status: 0 done, 1 mistakes in a file or an output that cannot be written, 2 a wrong option.
int run(const Options& options, std::ostream& out, std::ostream& errors);

}  // namespace backplane::codegen
