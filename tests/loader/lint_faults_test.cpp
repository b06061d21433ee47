// The law of the linter: a plugin with one planted fault gets the finding of that fault, with its reason and its fix;
// and the same plugin without one gets notes at most. Each is compiled here, by the compiler of this build.
#include <sys/wait.h>

#include "loader/elf_traits.hpp"
#include "loader/plugin_files.hpp"

namespace backplane::loader_test {
namespace {

using testing::HasSubstr;

// A device, an op and a kernel; TEXT stands before them, BODY in the kernel, MORE in the registration.
constexpr const char* kPlugin = R"(#include "tiny.h"
@TEXT@
static bp_status BP_CALL scale(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  (void)frame; (void)n_args; (void)n_outs;
  @BODY@
  return tiny_scale(args, outs, 2.0f);
}
static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  bp_backend_def backend = tiny_backend("linted");
  bp_status status = tiny_register_op(host, record, "linted::scale", 0);
  (void)context;
  if (status == BP_OK) status = host->register_backend(record, &backend);
  if (status == BP_OK) status = tiny_register_kernel(host, record, "linted::scale", "linted", scale, 0, 0);
  @MORE@
  return status;
}
TINY_PLUGIN("linted", BP_PLUGIN_UNLOADABLE, register_all, NULL)
)";

struct Fault {
  const char* name;
  LintLevel level;
  const char* finding;  // part of its text
  const char* text = "";
  const char* body = "";
  const char* more = "";
  const char* flags = "";
  const char* manifest = R"("backends": ["linted"], "ops": ["linted::scale"])";
  uint32_t minor = 1;
};

std::string replaced(std::string text, const std::string& mark, const std::string& by) {
  return text.replace(text.find(mark), mark.size(), by);
}

void run(const std::string& command) {
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
}

std::string compile(const Folder& folder, const Fault& fault) {
  std::string source = replaced(kPlugin, "@TEXT@", fault.text);
  source = replaced(replaced(source, "@BODY@", fault.body), "@MORE@", fault.more);
  folder.write("linted.c", source);
  const std::string at = folder.path() + "/";
  run(std::string(LOADER_CC) + " -shared -fPIC -O1 -w -I" LOADER_SOURCES " " LOADER_INCLUDES " -o " + at +
      "linted.so " + at + "linted.c -fvisibility=hidden -L" + at + " " + fault.flags);
  folder.write("linted.backplane.json",
               "{\"name\": \"linted\", \"file\": \"linted.so\", \"contract\": {\"major\": 0, \"minor\": " +
                   std::to_string(fault.minor) + "}, " + fault.manifest + "}");
  return at + "linted.so";
}

std::string shown(const std::vector<LintFinding>& findings) {
  std::string text;
  for (const LintFinding& finding : findings)
    text += std::to_string(static_cast<int>(finding.level)) + " " + finding.text + "\n";
  return text;
}

class PlantedFault : public testing::TestWithParam<Fault> {};

TEST_P(PlantedFault, IsFoundWithItsReasonAndItsFix) {
  const Folder folder;
  const std::vector<LintFinding> findings = lint_plugin(compile(folder, GetParam()));
  const auto found = std::find_if(findings.begin(), findings.end(), [](const LintFinding& finding) {
    return finding.text.find(GetParam().finding) != std::string::npos;
  });
  ASSERT_NE(found, findings.end()) << shown(findings);
  EXPECT_EQ(found->level, GetParam().level) << shown(findings);
  EXPECT_TRUE(found->text.starts_with("load_plugin: ") || !found->fix.empty()) << found->text;
  EXPECT_FALSE(has_op("linted::scale")) << "the registrations of the check are gone";
}

using enum LintLevel;
const Fault kFaults[] = {
    {"exports", kWarning, "exports 1 symbols besides", "BP_EXPORT int stray(void) { return 1; }"},
    {"imports_ours", kError, "imports bp_find_op", "extern int bp_find_op(void);", "if (n_args > 9) bp_find_op();"},
    {"undefined", kError, "nobody_has_this", "extern int nobody_has_this(void);", "if (n_args > 9) nobody_has_this();"},
    {"unique", kWarning, "unique in a process",
     "__asm__(\".data\\n.globl one\\n.type one,@gnu_unique_object\\none: .quad 0\\n.size one,8\\n.text\");"},
    {"ends_the_process", kWarning, "imports abort", "", "if (n_args > 9) abort();"},
    {"thread_locals", kWarning, "4 bytes of thread-locals", "static _Thread_local int calls;", "calls += n_args;"},
    {"static_thread_locals", kError, "initial-exec", "static _Thread_local int calls;", "calls += n_args;", "",
     "-ftls-model=initial-exec"},
    {"constructor", kWarning, "1 functions of it run as it is opened",
     "__attribute__((constructor)) static void make(void) { setenv(\"BACKPLANE_TEST_LINTED\", \"1\", 1); }"},
    {"text_relocations", kWarning, "text relocations", "__asm__(\".text\\n.balign 8\\n.quad free\\n\");", "", "",
     "-Wl,-z,notext"},
    {"stack", kWarning, "an executable stack", "", "", "", "-Wl,-z,execstack"},
    {"writable_code", kWarning, "writable and executable",
     "__asm__(\".section .both,\\\"awx\\\",@progbits\\n.quad 1\\n.text\");"},
    {"never_closed", kWarning, "never to be closed", "", "", "", "-Wl,-z,nodelete"},
    {"relative_run_path", kError, "which is no full path", "", "", "", "-Wl,-rpath,libs"},
    {"fixed_run_path", kWarning, "the folder /opt/somewhere", "", "", "", "-Wl,-rpath,/opt/somewhere"},
    {"untrusted_run_path", kError, "the folder /tmp", "", "", "", "-Wl,-rpath,/tmp"},
    {"threads", kWarning, "can start threads, but it does not define stop",
     "#include <pthread.h>\nstatic void* run(void* x) { return x; }",
     "if (n_args > 9) { pthread_t t; pthread_create(&t, 0, run, 0); }"},
    {"row_for_nobody", kWarning, "are for \"nobodys\", which no plugin registers", "", "",
     "if (status == BP_OK) status = tiny_register_kernel(host, record, \"linted::scale\", \"nobodys\", scale, 0, 0);"},
    {"kernels_for_missing", kWarning, "does not name in \"kernels_for\"", "", "",
     "if (status == BP_OK) status = tiny_register_kernel(host, record, \"linted::scale\", \"other\", scale, 0, 0);"},
    {"kernels_for_in_vain", kWarning, "\"other\" in \"kernels_for\", but no row", "", "", "", "",
     R"("backends": ["linted"], "ops": ["linted::scale"], "kernels_for": ["other"])"},
    {"op_not_registered", kError, "the op \"linted::more\", which it does not register", "", "", "", "",
     R"("backends": ["linted"], "ops": ["linted::scale", "linted::more"])"},
    {"backend_not_registered", kError, "the backend \"second_one\", which it does not register", "", "", "", "",
     R"("backends": ["linted", "second_one"], "ops": ["linted::scale"])"},
    {"op_not_named", kError, "registers the op \"linted::scale\", which its manifest does not name", "", "", "", "",
     R"("backends": ["linted"])"},
    {"struct_size", kError, "its struct_size is 12", "", "",
     "if (status == BP_OK) { bp_kernel_def row; memset(&row, 0, sizeof row); row.header.struct_size = 12; "
     "status = host->register_kernel(record, &row); }"},
    {"minor", kWarning, "asks for contract minor 2 and its table for 1", "", "", "", "",
     R"("backends": ["linted"], "ops": ["linted::scale"])", 2},
    {"fails", kError, "not today", "", "",
     "host->set_error(BP_ERROR_DEVICE, \"not today\"); status = BP_ERROR_DEVICE;"},
#if defined(__x86_64__)
    {"instruction_sets", kError, "marked as needing x86-64-v3", "", "", "", "-Wl,-z,x86-64-v3"},
#endif
};

INSTANTIATE_TEST_SUITE_P(All, PlantedFault, testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Lint, WithoutAFaultThereAreNotesAlone) {
  const Folder folder;
  const std::vector<LintFinding> findings = lint_plugin(compile(folder, {"none", kNote, ""}));
  for (const LintFinding& finding : findings) EXPECT_EQ(finding.level, kNote) << finding.text;
}

TEST(Lint, NamesEveryMissingLibrary) {
  const Folder folder;
  const std::string at = folder.path() + "/";
  folder.write("driver.c", "int driver_call(void) { return 0; }\n");
  run(std::string(LOADER_CC) + " -shared -fPIC -o " + at + "libnodriver.so " + at + "driver.c");
  const std::string path = compile(folder, {"driver", kNote, "", "extern int driver_call(void);", "driver_call();", "",
                                            "-Wl,--no-as-needed -lnodriver"});
  EXPECT_THAT(loader::read_traits(path).needed, testing::Contains("libnodriver.so"));
  fs::remove(at + "libnodriver.so");
  bool named = false;
  for (const LintFinding& finding : lint_plugin(path))
    named = named || (finding.level == kError &&
                      finding.text.find("it needs libnodriver.so, which this system does not") != std::string::npos);
  EXPECT_TRUE(named);
}

// Of a damaged file nothing is believed, and nothing is read beyond its end.
TEST(ElfTraits, OfDamagedFilesGiveWhatCanBeRead) {
  const Folder folder;
  const std::string path = compile(folder, {"whole", kNote, ""});
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (size_t size = 0; size < whole.size(); size += whole.size() / 41 + 1)
    loader::read_traits(folder.write("cut.so", whole.substr(0, size)));
  for (size_t at = 0; at < whole.size(); at += whole.size() / 997 + 1) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(~damaged[at]);
    EXPECT_LE(loader::read_traits(folder.write("damaged.so", damaged)).needed.size(), 256u);
  }
}

}  // namespace
}  // namespace backplane::loader_test
