// An all_reduce of float32 in a loop, by MPI itself and by our op from C++, in the program of collective_times.py,
// which has connected the ranks. Both return the seconds of one call.
#define OMPI_SKIP_MPICXX 1  // the C functions alone
#include <mpi.h>

#include "backplane/device.hpp"
#include "backplane/op.hpp"

extern "C" {

__attribute__((visibility("default"))) double bench_mpi(const float* in, float* out, int count, int repeats) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < repeats; ++i) MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  return (MPI_Wtime() - start) / repeats;
}

// A negative number: the op failed.
__attribute__((visibility("default"))) double bench_op(const float* in, int count, int ranks, int repeats) {
  const int64_t shape[] = {count};
  const backplane::Tensor x = backplane::from_host(in, shape, {}, BP_FLOAT32, backplane::parse_device("cpu"));
  const backplane::OpHandle op = backplane::find_op("collective::all_reduce");
  bp_value args[5] = {backplane::value(x), {}, {}, {}, {}};
  args[1].tag = BP_TAG_INT;
  args[1].u.i = ranks;
  const char* const words[] = {"sum", "world", ""};
  const uint32_t lengths[] = {3, 5, 0};
  for (int i = 0; i < 3; ++i) {
    args[2 + i].tag = BP_TAG_STRING;
    args[2 + i].u.s = words[i];
    args[2 + i].count = lengths[i];
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < repeats; ++i) {
    bp_value out{};
    if (backplane::call_packed(op, args, 5, &out, 1) != BP_OK) return -1;
    backplane::release(out.u.t);
  }
  return (MPI_Wtime() - start) / repeats;
}

}  // extern "C"
