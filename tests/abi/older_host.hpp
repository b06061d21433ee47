// A host of an earlier minor, as far as a plugin's registration meets one: tables of that minor's size, followed by
// memory that may not be touched, and functions that note registrations.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "backplane/abi/plugin.h"

namespace backplane::abi_test {

// `size` bytes at the end of a mapping: the next byte is beyond it.
class Guarded {
 public:
  explicit Guarded(size_t size) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    base_ = static_cast<char*>(mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + page_, page_, PROT_NONE);
    data_ = base_ + page_ - size;
  }
  ~Guarded() { munmap(base_, 2 * page_); }
  Guarded(const Guarded&) = delete;
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  size_t page_;
  char *base_, *data_;
};

// What the plugin registered, as "op NAME", "backend NAME", "kernel OP on BACKEND", "key NAME"; and its
// failure.
struct Registered {
  std::vector<std::string> things;
  std::vector<bp_header> headers;
  std::string error;
};
inline Registered* registered = nullptr;  // of the registration under way

namespace older_host {
template <class Struct>
bp_status note(const Struct& given, std::string text) {
  registered->headers.push_back(given.header);
  registered->things.push_back(std::move(text));
  return BP_OK;
}
inline bp_status op(bp_plugin_record*, const bp_op_def* def) { return note(*def, std::string("op ") + def->name); }
inline bp_status backend(bp_plugin_record*, const bp_backend_def* def) {
  return note(*def, std::string("backend ") + def->name);
}
inline bp_status kernel(bp_plugin_record*, const bp_kernel_def* def) {
  return note(*def, std::string("kernel ") + def->op + " on " + def->backend);
}
inline bp_status key(bp_plugin_record*, const bp_key_def* def) { return note(*def, std::string("key ") + def->name); }
inline void set_error(bp_status, const char* message) { registered->error = message; }
inline const char* get_error() { return registered->error.c_str(); }
inline void log(int32_t, const char*) {}
inline uint32_t find_op(const char*) { return 1; }
inline int32_t worker_count() { return 1; }
inline bp_status parallel_for(int64_t begin, int64_t end, int64_t, bp_parallel_body body, void* context) {
  return body(context, begin, end, 0);
}
}  // namespace older_host

// The first `size` bytes of a host's table, for a host of that minor.
inline void fill_host(bp_host* table, uint32_t size, uint32_t minor) {
  bp_host whole{};
  whole.header = {size, minor};
  whole.abi_major = BP_ABI_MAJOR;
  whole.abi_minor = minor;
  whole.set_error = older_host::set_error;
  whole.get_error = older_host::get_error;
  whole.log = older_host::log;
  whole.find_op = older_host::find_op;
  whole.parallel_for = older_host::parallel_for;
  whole.worker_count = older_host::worker_count;
  whole.register_op = older_host::op;
  whole.register_backend = older_host::backend;
  whole.register_kernel = older_host::kernel;
  whole.register_key = older_host::key;
  whole.extension = [](const char*, uint32_t) -> const void* { return nullptr; };
  std::memcpy(static_cast<void*>(table), &whole, size);
}

}  // namespace backplane::abi_test
