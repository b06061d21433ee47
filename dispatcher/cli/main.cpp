// The `backplane` command: its arguments, and what becomes of errors.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "backplane/abi/base.h"
#include "backplane/plugins.hpp"
#include "cli/convert.hpp"
#include "cli/doctor.hpp"
#include "cli/ops.hpp"
#include "cli/plugins.hpp"
#include "cli/run_graph.hpp"
#include "cli/scaffold.hpp"
#include "conformance.hpp"

int main(int argc, char** argv) {
  using namespace backplane;
  CLI::App app{"Inspects an installation of backplane: its plugins, devices and ops."};
  app.require_subcommand(0, 1);  // none is refused below, so that an unknown word is reported by name
  app.set_version_flag("--version", BACKPLANE_VERSION);
  std::vector<std::string> folders;
  app.add_option("--plugin-path", folders, "a further folder to search for plugins, after the standard ones")
      ->allow_extra_args(false);
  std::function<int()> command;

  app.add_subcommand("doctor", "what works here, what does not, and how to fix it")->callback([&] {
    command = cli::doctor;
  });

  app.add_subcommand("devices", "the devices that programs here can use")->callback([&] {
    command = cli::list_devices;
  });

  bool why = false;
  CLI::App* plugins = app.add_subcommand("plugins", "the plugins that were found");
  plugins->add_flag("--why", why, "with the folders searched and the reason of each refusal");
  plugins->callback([&] { command = [&] { return cli::plugins(why); }; });

  bool coverage = false;
  CLI::App* ops = app.add_subcommand("ops", "the registered ops");
  ops->add_flag("--coverage", coverage, "for each: derivatives, batching, shapes, tracing, and every backend");
  ops->callback([&] { command = [&] { return coverage ? cli::coverage() : cli::list_ops(); }; });

  std::string op;
  CLI::App* explain = app.add_subcommand("explain", "for every slot of an op: the rule and who registered it");
  explain->add_option("OP", op, "its full name, or the part after ::")->required();
  bool placement = false;
  std::vector<std::string> on;
  explain->add_flag("--placement", placement, "which kernels run when its first sample is called, on each device");
  explain->add_option("--device", on, "with --placement: only on these devices, as in sim or sim:1");
  explain->callback([&] {
    command = [&] { return placement || !on.empty() ? cli::explain_placement(op, on) : cli::explain_op(op); };
  });

  std::string file;
  CLI::App* lint =
      app.add_subcommand("lint", "checks a plugin's symbols, manifest and table; runs its code in a separate process");
  lint->add_option("PLUGIN.so", file, "the shared object")->required();
  lint->callback([&] { command = [&] { return cli::lint(file); }; });

  std::string kind, name, folder, language;
  bool kernel = false, wheel = false;
  CLI::App* made = app.add_subcommand("new", "writes a new project: a backend or an op");
  made->add_option("KIND", kind, "backend or op")->required();
  made->add_option("NAME", name, "its name; of an op also NAMESPACE::NAME")->required();
  made->add_option("FOLDER", folder, "a new folder to write it to")->required();
  made->add_option("--language", language,
                   "of a backend, or of an op's kernel: c++ (the default), c, or for a backend that of its devices; an "
                   "unknown one lists those that there are");
  made->add_flag("--kernel", kernel, "of an op: with a kernel for the CPU");
  made->add_flag("--wheel", wheel, "of an op: with the files of a typed Python package");
  made->callback([&] { command = [&] { return cli::scaffold(kind, name, folder, language, kernel, wheel); }; });

  conformance::Options tried;
  CLI::App* kit = app.add_subcommand("conformance", "compares every op on a device with the CPU");
  kit->add_option("--device", tried.device, "its name, as in sim or sim:1")->required();
  kit->add_option("--plugin", tried.plugins, "shared objects to load first");
  kit->add_option("--op", tried.op, "only ops whose name matches the pattern, as in 'bitwise_*'");
  kit->add_option("--mode", tried.mode, "the kind of tests")->check(CLI::IsMember(conformance::mode_names()));
  kit->add_option("--json", tried.json, "file for the outcome of every case");
  kit->add_option("--html", tried.html, "file for a page with the table of ops and dtypes");
  kit->add_flag("--resume", tried.resume, "continue a stopped run with the same options and --json");
  kit->add_option("--deadline", tried.deadline, "seconds until a step of a case counts as hung; 0: none")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  kit->add_flag("--short", tried.brief, "one sample per op and class of dtypes");
  kit->add_flag("--partial", tried.partial, "ops without a kernel are listed, and are not failures");
  kit->callback([&] { command = [&] { return conformance::run(tried); }; });

  cli::RunOptions model;
  CLI::App* run = app.add_subcommand("run", "runs a graph from a file on arrays from files");
  run->add_option("MODEL.safetensors", model.model, "the file, as export writes it")->required();
  run->add_option("--input", model.inputs, "a .npy file for each input, in order");
  run->add_option("--output", model.outputs, "a .npy file for each result, in order");
  run->add_option("--device", model.device, "where it runs, as in sim or sim:1; else where the file says");
  run->add_option("--plugin", model.plugins, "shared objects to load first");
  run->add_option("--seed", model.seed, "the seed of its random numbers");
  run->add_flag("--assignment", model.assignment, "which kernel runs each node");
  run->callback([&] { command = [&] { return cli::run_graph(model); }; });

  CLI::App* converted = app.add_subcommand("convert", "writes a model in ONNX's format as a file that `run` runs");
  converted->prefix_command();  // Python reads its options
  converted->set_help_flag();
  converted->callback([&] { command = [&] { return cli::convert(converted->remaining()); }; });
  CLI::App* launched = app.add_subcommand("launch", "starts a Python program on several ranks with mpirun");
  launched->prefix_command();
  launched->set_help_flag();
  launched->callback([&] { command = [&] { return cli::launch(launched->remaining()); }; });

  CLI::App* bridged = app.add_subcommand("bridge", "lists what a plugin provides to another framework");
  bridged->prefix_command();
  bridged->set_help_flag();
  bridged->callback([&] { command = [&] { return cli::bridge(bridged->remaining()); }; });

  if (argc > 1 && std::string_view(argv[1]) == "help") argv[1] = const_cast<char*>("--help");
  CLI11_PARSE(app, argc, argv);
  if (!command) return app.exit(CLI::RequiredError("A subcommand"));
  try {
    for (const std::string& folder : folders) offer_plugin_path(folder);
    return command();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "backplane: %s\n", error.what());
    return 1;
  }
}
