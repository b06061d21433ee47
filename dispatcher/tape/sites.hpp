// Where a program called the ops that a history has recorded: a trace asks, so that the recorded ops of a derivative
// have the line of the op that is differentiated.
#pragma once

#include "tape/node.hpp"

namespace backplane::core {

class Sites {
 public:
  virtual ~Sites() = default;
  // After the call of the op that the node records.
  virtual void note(const Node& node) = 0;
  // Before and after the derivative of the node; they nest. What `enter` gives is `leave`'s.
  virtual uint32_t enter(const Node& node) = 0;
  virtual void leave(uint32_t before) = 0;
};

// Of the innermost trace of the thread; nullptr without a trace.
inline constinit thread_local Sites* trace_sites = nullptr;

class AtSite {
 public:
  explicit AtSite(const Node& node) : sites_(trace_sites), before_(sites_ ? sites_->enter(node) : 0) {}
  ~AtSite() {
    if (sites_) sites_->leave(before_);
  }
  AtSite(const AtSite&) = delete;

 private:
  Sites* const sites_;
  const uint32_t before_;
};

}  // namespace backplane::core
