// The `backplane` command: its arguments, and what becomes of errors.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>

#include "backplane/abi/base.h"
#include "cli/doctor.hpp"
#include "cli/ops.hpp"
#include "cli/plugins.hpp"

int main(int argc, char** argv) {
  using namespace backplane;
  CLI::App app{"Looks into an installation of backplane: its plugins, devices and ops."};
  app.require_subcommand(0, 1);  // none is refused below, so that an unknown word is reported by name
  app.set_version_flag("--version", BACKPLANE_VERSION);
  std::function<int()> command;

  app.add_subcommand("doctor", "what works here, what does not, and how to fix it")->callback([&] {
    command = cli::doctor;
  });

  bool why = false;
  CLI::App* plugins = app.add_subcommand("plugins", "the plugins that are found");
  plugins->add_flag("--why", why, "with the folders searched and the reason of each refusal");
  plugins->callback([&] { command = [&] { return cli::plugins(why); }; });

  bool coverage = false;
  CLI::App* ops = app.add_subcommand("ops", "the registered ops");
  ops->add_flag("--coverage", coverage, "for each: derivatives, batching, shapes, tracing, and every backend");
  ops->callback([&] { command = [&] { return coverage ? cli::coverage() : cli::list_ops(); }; });

  std::string op;
  CLI::App* explain = app.add_subcommand("explain", "for every slot of an op: the rule and who registered it");
  explain->add_option("OP", op, "its full name, or the part after ::")->required();
  explain->callback([&] { command = [&] { return cli::explain_op(op); }; });

  std::string file;
  CLI::App* lint = app.add_subcommand("lint", "checks a plugin's symbols, manifest and table");
  lint->add_option("PLUGIN.so", file, "the shared object")->required();
  lint->callback([&] { command = [&] { return cli::lint(file); }; });

  CLI11_PARSE(app, argc, argv);
  if (!command) return app.exit(CLI::RequiredError("A subcommand"));
  try {
    return command();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "backplane: %s\n", error.what());
    return 1;
  }
}
