// Recording calls as nodes.
#pragma once

#include "call/dispatch.hpp"
#include "tape/node.hpp"

namespace backplane::core {

class Level;
class GradLevel;

// The tape's slot: runs the call below and records it.
void record_call(const Call& call);
// A list among a call's results has no place in a node: where one holds tensors with a derivative, throws, with the
// results released. Of an op that decomposes, lists are followed through its parts.
void refuse_lists(const Call& call, const char* transform);
// The same on the fast path, where nothing but the tape intercepts. False: it declines.
bool record_fast(const Call& call, const Operands& operands);
// A call that ran. `args` and `outs` as the formulas shall see them (below the level); `outer` are the arguments whose
// history counts, of the same form as `args`; `results` receive the node (those that are differentiable). In-place:
// `mutated` had `version` before.
struct Recorded {
  const OpEntry& op;
  const bp_value* args;
  const bp_value* outs;
  const bp_value* outer;
  TensorImpl* const* results;
  const bp_storage* mutated;
  uint32_t version;
  bool same_meta = false;        // all tensors, the result too, are known to have one shape and dtype
  const Level* level = nullptr;  // histories of other levels are not of this graph; nullptr: the tape
};
void record_node(const Recorded& recorded);
// Of an op whose derivative is its decomposition's, where a kernel computes the call: runs that and records one node,
// whose backward pass runs the decomposition. False: it declines. `level`: nullptr is the tape. Of functions/, by a
// static initialiser.
using RecordRecomputed = bool (*)(const Call& call, const GradLevel* level);
inline constinit RecordRecomputed record_recomputed = nullptr;
// A copy between devices.
void record_move(const Tensor& from, const Tensor& to);

}  // namespace backplane::core
