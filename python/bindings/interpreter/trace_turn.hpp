// One thread of the process traces at a time: what a trace makes is what the garbage collector saw since it began, and
// the code that another thread traces meanwhile would count as this one's.
#pragma once

namespace backplane::python {

class TraceTurn {
 public:
  // Waits, without the interpreter lock, until no other thread traces. A trace within a trace has the turn already. It
  // leaves a Python error where a signal's handler raised.
  TraceTurn();
  ~TraceTurn();
  TraceTurn(const TraceTurn&) = delete;

  // False: the other trace went on for a minute, as one that waits for this thread does.
  bool is_own() const { return is_own_; }

 private:
  bool is_own_ = false;
};

}  // namespace backplane::python
