// One call of the contract as calls of MPI.
#pragma once

// The C interface alone: the old C++ one is no more in MPI.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "provider.h"

namespace backplane::collectives_mpi {

struct MpiError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws what MPI says where a call has failed.
void check(int code, const char* what);

struct MpiGroup {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
  MPI_Win window = MPI_WIN_NULL;
};

// Calls that have begun: several where one call of MPI does not take so many elements.
struct Requests {
  std::vector<MPI_Request> all;
};

// The most elements that one call of MPI is given: it counts in int.
extern int64_t g_largest_count;

void start(const MpiGroup& group, const bp_collective_call& call, Requests& requests);

}  // namespace backplane::collectives_mpi
