// SYMBOL_plugin.c, the plugin of a registry whose ops need no kernel of their own, and its manifest. See emit.hpp.
#include "backplane/abi/base.h"
#include "emit/emit.hpp"

namespace backplane::codegen {

void emit_plugin(const EmitContext& context, OutputSet& out) {
  const std::string& symbol = context.symbol;
  std::string text = file_banner(
      "/* ", "A plugin that registers the ops of namespace " + context.ns + ", by the contract alone.", context, " */");
  text += "#include \"backplane/abi/plugin.h\"\n\n#include <string.h>\n\n#include \"" + symbol + "_records.h\"\n\n";
  text += "#ifndef BP_PLUGIN_NAME\n#define BP_PLUGIN_NAME " + c_string(symbol) + "\n#endif\n";
  text += "#ifndef BP_PLUGIN_FLAGS\n#define BP_PLUGIN_FLAGS BP_PLUGIN_UNLOADABLE\n#endif\n";
  text += "#ifndef BP_PLUGIN_VERSION\n#define BP_PLUGIN_VERSION \"0.1.0\"\n#endif\n\n";
  text +=
      "static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {\n"
      "  (void)context;\n"
      "  for (uint32_t i = 0; i < " +
      symbol +
      "_op_count; ++i) {\n"
      "    const bp_status status = host->register_op(record, " +
      symbol +
      "_ops[i]);\n"
      "    if (status != BP_OK) return status;\n"
      "  }\n"
      "  return BP_OK;\n"
      "}\n\n";
  text +=
      "/* Pure: it answers and starts nothing. It writes no further than the host knows. */\n"
      "BP_EXPORT bp_status BP_CALL bp_plugin_query(uint32_t host_major, uint32_t host_minor, bp_plugin* out) {\n"
      "  (void)host_minor;\n"
      "  if (host_major != BP_ABI_MAJOR || out->header.struct_size < sizeof(bp_header)) return BP_ERROR_VERSION;\n"
      "  const bp_plugin answer = {\n"
      "      .header = BP_HEADER(bp_plugin),\n"
      "      .abi_major = BP_ABI_MAJOR,\n"
      "      .abi_minor = BP_ABI_MINOR,\n"
      "      .needs_minor = BP_TARGET_MINOR,\n"
      "      .flags = BP_PLUGIN_FLAGS,\n"
      "      .name = BP_PLUGIN_NAME,\n"
      "      .version = BP_PLUGIN_VERSION,\n"
      "      .register_all = register_all,\n"
      "  };\n"
      "  const size_t room = out->header.struct_size, size = room < sizeof(answer) ? room : sizeof(answer);\n"
      "  memcpy(out, &answer, size);\n"
      "  out->header.struct_size = (uint32_t)size;\n"
      "  return BP_OK;\n"
      "}\n";
  out.add(symbol + "_plugin.c", text);
}

void emit_manifest(const EmitContext& context, OutputSet& out) {
  std::string ops;
  for (const CompiledOp& op : context.registry.ops) ops += (ops.empty() ? "\"" : ", \"") + op.entry->full_name + "\"";
  const std::string &name = context.symbol, minor = std::to_string(BP_ABI_MINOR);
  out.add(name + ".backplane.json", "{\n  \"name\": \"" + name + "\",\n  \"file\": \"" + name +
                                        ".so\",\n  \"contract\": {\"major\": " + std::to_string(BP_ABI_MAJOR) +
                                        ", \"minor\": " + minor +
                                        "},\n  \"backends\": [],\n  \"host_backends\": [],\n  \"ops\": [" + ops +
                                        "],\n  \"kernels_for\": [],\n  \"cpu_features\": [],\n  \"sanitizer\": "
                                        "\"\"\n}\n");
}

}  // namespace backplane::codegen
