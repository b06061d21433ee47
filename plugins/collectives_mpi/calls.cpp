#include "calls.hpp"

#include <algorithm>
#include <cstdlib>

namespace backplane::collectives_mpi {

int64_t g_largest_count = int64_t{1} << 30;

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw MpiError(std::string(what) + ": " + std::string(text, static_cast<size_t>(length)));
}

namespace {

struct Element {
  MPI_Datatype type;
  int64_t bytes;
};

Element element_of(uint32_t dtype) {
  switch (dtype) {
    case BP_INT8:
      return {MPI_INT8_T, 1};
    case BP_INT16:
      return {MPI_INT16_T, 2};
    case BP_INT32:
      return {MPI_INT32_T, 4};
    case BP_INT64:
      return {MPI_INT64_T, 8};
    case BP_UINT8:
      return {MPI_UINT8_T, 1};
    case BP_UINT16:
      return {MPI_UINT16_T, 2};
    case BP_UINT32:
      return {MPI_UINT32_T, 4};
    case BP_UINT64:
      return {MPI_UINT64_T, 8};
    case BP_FLOAT32:
      return {MPI_FLOAT, 4};
    case BP_FLOAT64:
      return {MPI_DOUBLE, 8};
    case BP_COMPLEX64:
      return {MPI_C_FLOAT_COMPLEX, 8};
    case BP_COMPLEX128:
      return {MPI_C_DOUBLE_COMPLEX, 16};
    default:
      throw MpiError("a dtype that MPI does not reduce");
  }
}

// The contract's maximum of NaN and a number is NaN, as the ops' is.
template <class T, bool kMax>
void extreme(void* in, void* inout, int* n, MPI_Datatype*) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(inout);
  for (int i = 0; i < *n; ++i)
    if ((kMax ? from[i] > to[i] : from[i] < to[i]) || from[i] != from[i]) to[i] = from[i];
}

MPI_Op made(MPI_User_function* function) {
  MPI_Op op = MPI_OP_NULL;
  check(MPI_Op_create(function, 1, &op), "MPI_Op_create");
  return op;
}

MPI_Op op_of(const bp_collective_call& call) {
  switch (call.reduce) {
    case BP_COLLECTIVE_SUM:
      return MPI_SUM;
    case BP_COLLECTIVE_PROD:
      return MPI_PROD;
    default:
      break;
  }
  const bool is_max = call.reduce == BP_COLLECTIVE_MAX;
  if (call.dtype == BP_FLOAT32) {
    static const MPI_Op ops[] = {made(extreme<float, false>), made(extreme<float, true>)};
    return ops[is_max];
  }
  if (call.dtype == BP_FLOAT64) {
    static const MPI_Op ops[] = {made(extreme<double, false>), made(extreme<double, true>)};
    return ops[is_max];
  }
  return is_max ? MPI_MAX : MPI_MIN;
}

class Call {
 public:
  Call(const MpiGroup& group, const bp_collective_call& call, Requests& requests)
      : group_(group),
        call_(call),
        requests_(requests),
        element_(element_of(call.dtype)),
        count_(static_cast<int64_t>(call.count)),
        block_(count_ * element_.bytes),
        in_(static_cast<const char*>(call.in)),
        out_(static_cast<char*>(call.out)) {}
  void run();

 private:
  bool run_at_once();
  bool fits() const { return count_ <= g_largest_count; }
  bool is_root() const { return group_.rank == call_.peer; }
  int count() const { return static_cast<int>(count_); }
  // f(byte offset, count) for parts that MPI takes.
  template <class F>
  void in_parts(F f) {
    for (int64_t at = 0; at < count_; at += g_largest_count)
      f(at * element_.bytes, static_cast<int>(std::min(g_largest_count, count_ - at)));
  }
  void add(int code, const char* what, const MPI_Request& request) {
    check(code, what);
    requests_.all.push_back(request);
  }
  void broadcast(char* data, int root);
  void reduce(const char* in, char* out, int root);
  void all_gather();
  void scatter();
  void gather();
  void all_to_all();
  void reduce_scatter();

  const MpiGroup& group_;
  const bp_collective_call& call_;
  Requests& requests_;
  const Element element_;
  const int64_t count_, block_;
  const char* const in_;
  char* const out_;
};

void Call::broadcast(char* data, int root) {
  in_parts([&](int64_t at, int n) {
    MPI_Request request;
    add(MPI_Ibcast(data + at, n, element_.type, root, group_.comm, &request), "MPI_Ibcast", request);
  });
}

void Call::reduce(const char* in, char* out, int root) {
  in_parts([&](int64_t at, int n) {
    MPI_Request request;
    add(MPI_Ireduce(in + at, group_.rank == root ? out + at : nullptr, n, element_.type, op_of(call_), root,
                    group_.comm, &request),
        "MPI_Ireduce", request);
  });
}

void Call::all_gather() {
  MPI_Request request;
  if (fits()) {
    add(MPI_Iallgather(in_, count(), element_.type, out_, count(), element_.type, group_.comm, &request),
        "MPI_Iallgather", request);
    return;
  }
  std::copy_n(in_, block_, out_ + group_.rank * block_);
  for (int root = 0; root < group_.size; ++root) broadcast(out_ + root * block_, root);
}

void Call::gather() {
  MPI_Request request;
  if (fits()) {
    add(MPI_Igather(in_, count(), element_.type, is_root() ? out_ : nullptr, count(), element_.type, call_.peer,
                    group_.comm, &request),
        "MPI_Igather", request);
    return;
  }
  in_parts([&](int64_t at, int n) {
    add(MPI_Isend(in_ + at, n, element_.type, call_.peer, 1, group_.comm, &request), "MPI_Isend", request);
    for (int from = 0; is_root() && from < group_.size; ++from)
      add(MPI_Irecv(out_ + from * block_ + at, n, element_.type, from, 1, group_.comm, &request), "MPI_Irecv", request);
  });
}

void Call::scatter() {
  MPI_Request request;
  if (fits()) {
    add(MPI_Iscatter(is_root() ? in_ : nullptr, count(), element_.type, out_, count(), element_.type, call_.peer,
                     group_.comm, &request),
        "MPI_Iscatter", request);
    return;
  }
  in_parts([&](int64_t at, int n) {
    add(MPI_Irecv(out_ + at, n, element_.type, call_.peer, 1, group_.comm, &request), "MPI_Irecv", request);
    for (int to = 0; is_root() && to < group_.size; ++to)
      add(MPI_Isend(in_ + to * block_ + at, n, element_.type, to, 1, group_.comm, &request), "MPI_Isend", request);
  });
}

void Call::all_to_all() {
  MPI_Request request;
  if (fits()) {
    add(MPI_Ialltoall(in_, count(), element_.type, out_, count(), element_.type, group_.comm, &request),
        "MPI_Ialltoall", request);
    return;
  }
  in_parts([&](int64_t at, int n) {
    for (int other = 0; other < group_.size; ++other) {
      add(MPI_Irecv(out_ + other * block_ + at, n, element_.type, other, 1, group_.comm, &request), "MPI_Irecv",
          request);
      add(MPI_Isend(in_ + other * block_ + at, n, element_.type, other, 1, group_.comm, &request), "MPI_Isend",
          request);
    }
  });
}

void Call::reduce_scatter() {
  if (fits()) {
    MPI_Request request;
    add(MPI_Ireduce_scatter_block(in_, out_, count(), element_.type, op_of(call_), group_.comm, &request),
        "MPI_Ireduce_scatter_block", request);
    return;
  }
  for (int root = 0; root < group_.size; ++root) reduce(in_ + root * block_, out_, root);
}

// MPI's calls that wait take a third of the time of the others for small tensors, and less for large ones, too.
bool Call::run_at_once() {
  if (!(call_.flags & BP_COLLECTIVE_ALL_THERE) || !fits()) return false;
  switch (call_.kind) {
    case BP_COLLECTIVE_ALL_REDUCE:
      check(MPI_Allreduce(in_, out_, count(), element_.type, op_of(call_), group_.comm), "MPI_Allreduce");
      return true;
    case BP_COLLECTIVE_ALL_GATHER:
      check(MPI_Allgather(in_, count(), element_.type, out_, count(), element_.type, group_.comm), "MPI_Allgather");
      return true;
    case BP_COLLECTIVE_BROADCAST:
      if (is_root()) std::copy_n(in_, block_, out_);
      check(MPI_Bcast(out_, count(), element_.type, call_.peer, group_.comm), "MPI_Bcast");
      return true;
    case BP_COLLECTIVE_REDUCE_SCATTER:
      check(MPI_Reduce_scatter_block(in_, out_, count(), element_.type, op_of(call_), group_.comm),
            "MPI_Reduce_scatter_block");
      return true;
    case BP_COLLECTIVE_ALL_TO_ALL:
      check(MPI_Alltoall(in_, count(), element_.type, out_, count(), element_.type, group_.comm), "MPI_Alltoall");
      return true;
    case BP_COLLECTIVE_BARRIER:
      return true;  // all ranks are there
    default:
      return false;
  }
}

void Call::run() {
  if (run_at_once()) return;
  MPI_Request request;
  switch (call_.kind) {
    case BP_COLLECTIVE_ALL_REDUCE:
      return in_parts([&](int64_t at, int n) {
        add(MPI_Iallreduce(in_ + at, out_ + at, n, element_.type, op_of(call_), group_.comm, &request),
            "MPI_Iallreduce", request);
      });
    case BP_COLLECTIVE_REDUCE:
      return reduce(in_, out_, call_.peer);
    case BP_COLLECTIVE_BROADCAST:
      if (is_root()) std::copy_n(in_, block_, out_);
      return broadcast(out_, call_.peer);
    case BP_COLLECTIVE_ALL_GATHER:
      return all_gather();
    case BP_COLLECTIVE_GATHER:
      return gather();
    case BP_COLLECTIVE_SCATTER:
      return scatter();
    case BP_COLLECTIVE_ALL_TO_ALL:
      return all_to_all();
    case BP_COLLECTIVE_REDUCE_SCATTER:
      return reduce_scatter();
    case BP_COLLECTIVE_SEND:
      return in_parts([&](int64_t at, int n) {
        add(MPI_Isend(in_ + at, n, element_.type, call_.peer, 0, group_.comm, &request), "MPI_Isend", request);
      });
    case BP_COLLECTIVE_RECV:
      return in_parts([&](int64_t at, int n) {
        add(MPI_Irecv(out_ + at, n, element_.type, call_.peer, 0, group_.comm, &request), "MPI_Irecv", request);
      });
    case BP_COLLECTIVE_BARRIER:
      return add(MPI_Ibarrier(group_.comm, &request), "MPI_Ibarrier", request);
    default:
      throw MpiError("a kind of call that this provider does not know");
  }
}

}  // namespace

void start(const MpiGroup& group, const bp_collective_call& call, Requests& requests) {
  Call(group, call, requests).run();
}

}  // namespace backplane::collectives_mpi
