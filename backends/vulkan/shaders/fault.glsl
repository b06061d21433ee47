// The first error in a kernel's data, for the host; see runtime/fault.hpp.
const uint kDivisorZero = 1, kNegativeExponent = 2, kIndexRange = 3;

layout(buffer_reference, std430, buffer_reference_align = 8) buffer Fault {
  uint taken;
  uint kind;
  uint64_t ticket;
  int64_t found;
  uint axis;
  uint size;
};

void report(uint kind, int64_t found, uint axis, uint size) {
  Fault error = Fault(fault);
  if (atomicCompSwap(error.taken, 0u, 1u) != 0u) return;
  error.kind = kind;
  error.ticket = ticket;
  error.found = found;
  error.axis = axis;
  error.size = size;
}
