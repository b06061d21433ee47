#include "levels/random_log.hpp"

#include <algorithm>

#include "backplane/graph_function.hpp"
#include "registry/registry.hpp"

namespace backplane::core {

namespace {

thread_local constinit RandomScope* innermost = nullptr;

// The finaliser of splitmix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014).
uint64_t mixed(uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

bp_generator_state reserve_through(RandomScope* scope, bp_generator_state& generator, uint64_t count) {
  if (scope) return scope->reserve(scope->outer_, generator, count);
  const bp_generator_state reserved = generator;
  generator.counter += count;
  return reserved;
}

RandomScope::RandomScope() : outer_(innermost) { innermost = this; }
RandomScope::~RandomScope() { innermost = outer_; }

bp_generator_state derived_generator(const bp_generator_state& from, uint64_t stream) {
  const bp_generator_state state{mixed(mixed(mixed(from.key) ^ from.counter) ^ stream), 0};
  for (RandomScope* scope = innermost; scope; scope = scope->outer_) scope->note_derived(from, stream, state);
  return state;
}

bool is_recomputing() {
  for (const RandomScope* scope = innermost; scope; scope = scope->outer_)
    if (scope->replays()) return true;
  return false;
}

bp_generator_state RecordRandom::reserve(RandomScope* outer, bp_generator_state& generator, uint64_t count) {
  const bp_generator_state reserved = reserve_through(outer, generator, count);
  log_.push_back({reserved, count});
  return reserved;
}

bp_generator_state ReplayRandom::reserve(RandomScope*, bp_generator_state&, uint64_t count) {
  BP_CHECK(next_ < log_.size() && log_[next_].count == count, VALUE, name_,
           ": running it again for the backward pass takes other random numbers than the first run did (reservation ",
           next_ + 1, " of ", log_.size(), "); it must do the same each time");
  return log_[next_++].state;
}

}  // namespace backplane::core

namespace backplane {
namespace {

// A counter gives four words of 32 bits. The thirstiest op of the registry, normal in float64, takes four words an
// element; the rest is room for ops of other registries.
constexpr uint64_t kCountersPerElement = 4;

uint64_t elements_of(const bp_value& value, uint16_t type) {
  uint64_t product = 1;
  if (value.tag == BP_TAG_TENSOR)
    for (int32_t k = 0; k < value.u.t->dl.ndim; ++k) product *= static_cast<uint64_t>(value.u.t->dl.shape[k]);
  if (value.tag == BP_TAG_INT_LIST)
    for (uint32_t k = 0; k < value.count; ++k) product *= static_cast<uint64_t>(std::max<int64_t>(value.u.ints[k], 0));
  if (value.tag == BP_TAG_INT && type == BP_TYPE_SIZE) product = static_cast<uint64_t>(std::max<int64_t>(value.u.i, 0));
  return product;
}

}  // namespace

bp_generator_state reserve_random(bp_generator_state& generator, uint64_t count) {
  return core::reserve_through(core::innermost, generator, count);
}

bp_generator_state reserve_random(bp_generator_state& generator, OpHandle op, std::span<const bp_value> args) {
  const core::OpRecord& record = *core::checked_entry(op).record;
  uint64_t elements = 1;
  for (size_t i = 0; i < args.size(); ++i) elements = std::max(elements, elements_of(args[i], record.args[i].type));
  return reserve_random(generator, 1 + kCountersPerElement * elements);
}

}  // namespace backplane
