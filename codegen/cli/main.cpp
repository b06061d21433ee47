// backplane-codegen: argument parsing for cli/run.hpp.
#include <CLI/CLI.hpp>
#include <iostream>

#include "backplane/abi/base.h"
#include "cli/run.hpp"

int main(int argc, char** argv) {
  backplane::codegen::Options options;
  CLI::App app("Checks registry files of operators and compiles them into op records and everything else that follows.",
               "backplane-codegen");
  app.add_option("--ops", options.ops, "Registry files to check and emit")->required()->type_name("FILE");
  app.add_option("--import", options.imports,
                 "Registry files whose ops may be called; the installed ops.yaml by default")
      ->type_name("FILE");
  app.add_option("--out", options.out, "Directory of the outputs; unchanged files are left alone")->type_name("DIR");
  app.add_option("--symbol", options.symbol, "Prefix of emitted C symbols and files; the namespace by default")
      ->type_name("NAME");
  app.add_option("--emit", options.emit,
                 "Which outputs: records, formulas, cpp, pyi, docs, samples, kernels, scalar, rewrites, plugin, "
                 "manifest, python; all by default")
      ->delimiter(',')
      ->type_name("LIST");
  app.add_option("--dialect", options.dialects,
                 "Of the scalar functions: c++, cuda, glsl, opencl, wgsl; all by default")
      ->delimiter(',')
      ->type_name("LIST");
  app.add_option("--depfile", options.depfile, "Writes the inputs as a make rule, of the stamp where there is one")
      ->type_name("FILE");
  app.add_option("--stamp", options.stamp, "A file that is new after each run: what make compares with the inputs")
      ->type_name("FILE");
  app.add_option("--explain", options.explain, "Prints the derived rules of an op")->type_name("OP");
  app.add_flag(
      "--standalone", options.standalone,
      "Scalar headers hold the functions of other namespaces that they call, and include no header of the SDK");
  app.add_flag("--base", options.base, "The files are backplane's own registry, of namespace bp");
  app.add_flag("--check", options.check, "Reports mistakes and writes nothing");
  app.add_flag("--list", options.list, "Prints the signatures and writes nothing");
  app.add_flag("--list-outputs", options.list_outputs, "Prints the files that --out would get and writes nothing");
  app.set_version_flag("--version", std::string("backplane-codegen " BACKPLANE_VERSION ", contract ") +
                                        std::to_string(BP_ABI_MAJOR) + "." + std::to_string(BP_ABI_MINOR));
  CLI11_PARSE(app, argc, argv);
  if (options.out.empty() && !options.check && !options.list && !options.list_outputs && options.explain.empty()) {
    std::cerr
        << "backplane-codegen: error: nothing to do; give --out DIR, --check, --list, --list-outputs or --explain "
           "OP\n";
    return 2;
  }
  return backplane::codegen::run(options, std::cout, std::cerr);
}
