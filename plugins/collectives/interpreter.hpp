// A thread that waits for other ranks gives up Python's lock meanwhile: the ranks that it waits for may be threads of
// the same interpreter, and the program's other threads go on.
#pragma once

namespace backplane::collectives {

// Of a thread that holds no such lock, or in a process without Python: nothing.
class WithoutInterpreter {
 public:
  WithoutInterpreter();
  ~WithoutInterpreter();
  WithoutInterpreter(const WithoutInterpreter&) = delete;

 private:
  void* state_ = nullptr;
};

}  // namespace backplane::collectives
