// Ops that a program registers itself, without a plugin's file: how the custom ops of Python come into the registry.
//
// A Registration owns one op and its kernels, under the same rules as a plugin's: the record is copied and verified, a
// name that is taken is refused with both owners. Functions in the records must live as long as the process, since a
// call, or a graph node of it, may hold them for longer than the Registration; so must contexts that `kept` does not
// own. It is let go of once the record was replaced and nothing reads it, on any thread. Functions throw Error.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "backplane/abi/plugin.h"
#include "backplane/op.hpp"

namespace backplane {

class BACKPLANE_API Registration {
 public:
  explicit Registration(const std::string& owner);  // the name in reports: "python"
  ~Registration();                                  // withdraws
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  // Registers the op and its rows; they replace an earlier `define`. With the same signature the op keeps
  // its handle. If it throws, the earlier registration stays. Other threads should not call the op meanwhile.
  OpHandle define(const bp_op_def& op, std::span<const bp_kernel_def> kernels, std::shared_ptr<void> kept = {});
  // The op's name is free, and calls of it are refused.
  void withdraw() noexcept;

 private:
  bp_plugin_record* owner_;  // never freed once the registry refers to it, as all owners
  bool defined_ = false;
  bool kept_ = false;  // the registry refers to the owner
};

// For kernels that call ops by their public functions. While the scope lives, this thread's calls run as calls of a
// kernel: below all transforms, and past the keys that the frame's call has passed. The arguments have no history, so
// results computed from them have none. The tape still records, so a result with a history used a tensor from outside.
class BACKPLANE_API KernelScope {
 public:
  explicit KernelScope(const bp_frame& frame) noexcept;
  ~KernelScope();
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

 private:
  void* level_;
  uint64_t included_;
  uint64_t excluded_;
  void* captures_;
};

// Did the tape record the frame's call as a whole? Then the history of values made below the call is lost.
BACKPLANE_API bool is_recorded_whole(const bp_frame& frame) noexcept;

}  // namespace backplane
