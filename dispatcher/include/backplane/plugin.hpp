// C++ for plugin authors: registration, and all of backplane/plugin/.
//
// Not the contract, which is backplane/abi alone: header-only sugar over it, compiled into the plugin, using no symbol
// of libbackplane. A whole plugin:
//
//   #include "backplane/plugin.hpp"
//   using namespace backplane::plugin;
//   static void twice(ConstTensor<float> x, MutTensor<float> out) { ... }
//   static void register_all(Registrar& registrar) {
//     registrar.kernel(BP_KERNEL("acme::twice", "cpu", kernel<twice>, .dtypes = BP_DTYPE_BIT(BP_FLOAT32)));
//   }
//   BP_DEFINE_PLUGIN("acme", "1.0", register_all)
#pragma once

#include <cstring>

#include "backplane/plugin/kernel.hpp"

// Both set by backplane_add_plugin.
#ifndef BP_PLUGIN_FLAGS
#define BP_PLUGIN_FLAGS 0
#endif

namespace backplane::plugin {

// What a kernel row may state beyond op, backend and function; see bp_kernel_def.
struct KernelOptions {
  bp_dtype_mask dtypes = BP_MASK_ANY;
  uint32_t flags = 0;
  void* context = nullptr;
  uint32_t revision = 0;
  int32_t priority = 0;
  uint64_t offset_alignment = 0;
  int64_t max_elements = 0;
  bp_kernel_fn supports = nullptr;
#if BP_TARGET_MINOR >= 3
  bp_dtype_set dtype_set = 0;  // beside `dtypes`
#endif
};

inline bp_kernel_def kernel_row(const char* op, const char* backend, bp_kernel_fn fn, const char* file, uint32_t line,
                                const KernelOptions& options = {}) {
  bp_kernel_def row{};
  row.header = BP_HEADER(bp_kernel_def);
  row.op = op;
  row.backend = backend;
  row.fn = fn;
  row.context = options.context;
  row.revision = options.revision;
  row.priority = options.priority;
  row.dtypes = options.dtypes;
  row.flags = options.flags | (options.supports != nullptr ? uint32_t{BP_KERNEL_MAY_DECLINE} : 0u);
  row.offset_alignment = options.offset_alignment;
  row.max_elements = options.max_elements;
  row.supports = options.supports;
  row.file = file;
  row.line = line;
#if BP_TARGET_MINOR >= 3
  row.dtype_set = options.dtype_set;
#endif
  return row;
}

// The host's record of this plugin while it registers. Each call throws where the host refuses, which withdraws all.
class Registrar {
 public:
  Registrar(const bp_host* host, bp_plugin_record* record) : host_(host), record_(record) {}
  void op(const bp_op_def& op) const { check_status(host_->register_op(record_, &op)); }
  void backend(const bp_backend_def& backend) const { check_status(host_->register_backend(record_, &backend)); }
  void kernel(const bp_kernel_def& row) const { check_status(host_->register_kernel(record_, &row)); }
  void key(const bp_key_def& key) const { check_status(host_->register_key(record_, &key)); }
  const bp_host* host() const { return host_; }
  bp_plugin_record* record() const { return record_; }

 private:
  const bp_host* host_;
  bp_plugin_record* record_;
};

// What a plugin may state beyond its name, version and registration; see bp_plugin.
struct PluginOptions {
  uint32_t flags = BP_PLUGIN_FLAGS;
  uint32_t needs_minor = BP_TARGET_MINOR;
  void* context = nullptr;
  bp_status(BP_CALL* stop)(void* context) = nullptr;
};

namespace detail {
template <auto Register>
bp_status BP_CALL register_all(void*, const bp_host* host, bp_plugin_record* record) noexcept {
  return guard(host, [&] {
    Registrar registrar(host, record);
    Register(registrar);
  });
}

// Answers within the size that the host knows, and says how much it wrote.
inline bp_status answer_query(uint32_t host_major, bp_plugin* out, const bp_plugin& answer) noexcept {
  if (host_major != BP_ABI_MAJOR || out == nullptr || out->header.struct_size < sizeof(bp_header))
    return BP_ERROR_VERSION;
  const uint32_t size =
      out->header.struct_size < sizeof(bp_plugin) ? out->header.struct_size : static_cast<uint32_t>(sizeof(bp_plugin));
  std::memcpy(static_cast<void*>(out), &answer, size);
  out->header.struct_size = size;
  return BP_OK;
}
}  // namespace detail

}  // namespace backplane::plugin

// A kernel row with the place of its registration: BP_KERNEL(op, backend, function, .dtypes = ..., .flags = ...).
// A function with commas in its template arguments is put in parentheses.
#define BP_KERNEL(op, backend, fn, ...)                      \
  ::backplane::plugin::kernel_row(op, backend, fn, __FILE__, \
                                  __LINE__ __VA_OPT__(, ::backplane::plugin::KernelOptions{__VA_ARGS__}))

// The one exported symbol. `register_function` is a `void (Registrar&)` that may throw; options as in PluginOptions.
#define BP_DEFINE_PLUGIN(plugin_name, plugin_version, register_function, ...)                                \
  extern "C" BP_EXPORT bp_status BP_CALL bp_plugin_query(uint32_t host_major, uint32_t, bp_plugin* out) {    \
    const ::backplane::plugin::PluginOptions options{__VA_ARGS__};                                           \
    const bp_plugin answer{                                                                                  \
        BP_HEADER(bp_plugin), BP_ABI_MAJOR,    BP_ABI_MINOR,                                                 \
        options.needs_minor,  options.flags,   plugin_name,                                                  \
        plugin_version,       options.context, ::backplane::plugin::detail::register_all<register_function>, \
        options.stop};                                                                                       \
    return ::backplane::plugin::detail::answer_query(host_major, out, answer);                               \
  }
