// Calls of libraries that take locks of their own, and forks.
//
// OpenBLAS and oneDNN take locks that nobody could give back in a child whose parent forked meanwhile: no fork begins
// while a call of theirs runs, and none of theirs while a fork does. Any thread.
#pragma once

namespace backplane::cpu {

// Stands around such a call, and may stand around another one. The thread does nothing meanwhile that waits for
// another.
class LibraryCall {
 public:
  LibraryCall();
  ~LibraryCall();
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;
};

}  // namespace backplane::cpu
