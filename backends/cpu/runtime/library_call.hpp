// Calls of libraries that take locks of their own, and forks.
//
// OpenBLAS and oneDNN take locks, which a child of a fork in the meantime could never release. So no fork begins
// during such a call, and no such call begins during a fork. Any thread.
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
