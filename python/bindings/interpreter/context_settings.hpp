// Settings that blocks of Python code make: recording, the default device and dtype, fallbacks, autocast.
//
// A block's setting belongs to the context (PEP 567) in which it was entered, so tasks with overlapping blocks each see
// their own, and a new task starts with the settings of its creator. The core knows settings of threads: these
// follow the context, which use_context_settings() sees to at each entry from Python before anything reads a setting.
// It costs one load while no block is open. Blocks are entered and left in C, between two bytecodes: an exception that
// a signal handler raises finds each block either open, with its exit to come, or not.
//
// All functions need the interpreter lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "backplane/abi/base.h"
#include "backplane/abi/value.h"
#include "backplane/autocast.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

enum class Setting : uint8_t { kRecording, kDevice, kFloat, kHostFallback, kBatchLoop, kAutocast, kCount };
inline constexpr int64_t kUnset = INT64_MIN;

// What may make a call unusual: the settings of contexts that live, and a default dtype of the process's own.
inline constinit std::atomic<uint32_t> g_unusual{0};

// The process's default dtype of floats.
inline constinit std::atomic<bp_dtype> g_default_float{BP_FLOAT32};
void set_process_float(bp_dtype dtype) noexcept;

void follow_context() noexcept;
inline void use_context_settings() noexcept {
  if (g_unusual.load(std::memory_order_relaxed) != 0) [[unlikely]]
    follow_context();
}

// The default dtype of the block that this thread is in, BP_DTYPE_NONE without one. From any thread.
bp_dtype float_of_block() noexcept;

// Opens and closes a block; `owner`, what `with` was given, tells blocks apart. False with a Python error set.
bool begin_block(const void* owner, Setting setting, int64_t value) noexcept;
bool enter_block(const void* owner, Setting setting, int64_t value) noexcept;  // where no setter's result is unsettled
bool leave_block(const void* owner) noexcept;
enum class BlockPlace : uint8_t { kInnermost, kOuter, kElsewhere };
BlockPlace place_of_block(const void* owner) noexcept;

// What a setter returned becomes a setting that stays, as no block began with it.
bool settle_pending() noexcept;

// Sets it until further notice: in the block of this setting that the context is in, until that ends; without one for
// the thread (recording), or with `process` for all threads.
bool change_setting(Setting setting, int64_t value, bool process) noexcept;

int64_t value_of_device(bp_device device) noexcept;
int64_t value_of_autocast(const Autocast& autocast) noexcept;

// The classes _core.SettingBlock and _core.AppliedSetting. False with a Python error set.
bool add_context_settings(PyObject* module);
bool add_context_variable();
// Adds the class _core.VariableBlock (variable_block.cpp).
bool add_variable_block(PyObject* module);

}  // namespace backplane::python
