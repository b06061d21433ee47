// The entry points of libcuda.so.1 that give memory: of devices, and of the host, locked for the devices' own reads and
// writes.
#include <cstring>
#include <map>

#include "entries.hpp"

namespace emulator {
namespace {

struct HostBlock {
  uint64_t size;
  uint64_t number;  // no other block has it
  int device;       // whose context locked it
  bool registered;  // the program's own memory
};
std::map<uint64_t, HostBlock>& host_blocks() {
  static auto* made = new std::map<uint64_t, HostBlock>();
  return *made;
}
uint64_t last_number = 0;

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

bool overlaps_host_block(uint64_t address, uint64_t size) {
  const auto after = host_blocks().lower_bound(address + size);
  if (after == host_blocks().begin()) return false;
  const auto& [begin, block] = *std::prev(after);
  return begin + block.size > address;
}

}  // namespace

uint64_t host_block_of(const void* pointer, uint64_t size) {
  const uint64_t address = address_of(pointer);
  const auto after = host_blocks().upper_bound(address);
  if (after == host_blocks().begin()) return 0;
  const auto& [begin, block] = *std::prev(after);
  return address + size <= begin + block.size ? block.number : 0;
}

void drop_host_blocks(int device) {
  std::erase_if(host_blocks(), [device](const auto& row) {
    const auto& [address, block] = row;
    if (block.device != device) return false;
    if (!block.registered) Memory::instance().free(address);
    return true;
  });
}

}  // namespace emulator

using namespace emulator;

extern "C" {

int cuMemAlloc_v2(unsigned long long* pointer, size_t bytes) {
  BP_EMULATOR_ENTER_CONTEXT(cuMemAlloc);
  if (const int refused = check_not_capturing("cuMemAlloc")) return refused;
  if (bytes == 0) return 1;
  Memory& memory = Memory::instance();
  if (bytes > kMemoryOfADevice || memory.in_use(context->device) > kMemoryOfADevice - bytes) return 2;
  *pointer = memory.allocate(bytes, "cuMemAlloc, call " + std::to_string(Device::instance().calls), context->device);
  return *pointer ? 0 : 2;
}
// Waits for the device, as the driver does.
int cuMemFree_v2(unsigned long long pointer) {
  BP_EMULATOR_ENTER_CONTEXT(cuMemFree);
  if (const int refused = check_not_capturing("cuMemFree")) return refused;
  Device::instance().run_all();
  return Memory::instance().free(pointer) ? 0 : 1;
}
int cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  BP_EMULATOR_ENTER_CONTEXT(cuMemHostAlloc);
  if (const int refused = check_not_capturing("cuMemHostAlloc")) return refused;
  const uint64_t address = Memory::instance().allocate(bytes, "cuMemHostAlloc");
  if (address == 0) return 2;
  *pointer = reinterpret_cast<void*>(address);
  std::memset(*pointer, 0, bytes);
  Memory::instance().write(address, bytes);  // the host writes it unseen
  host_blocks()[address] = {bytes, ++last_number, context->device, false};
  return 0;
}
// Does not wait: a copy that is on its way finds the memory gone.
int cuMemFreeHost(void* pointer) {
  BP_EMULATOR_ENTER(cuMemFreeHost);
  const auto found = host_blocks().find(address_of(pointer));
  if (found == host_blocks().end() || found->second.registered) return 1;
  host_blocks().erase(found);
  return Memory::instance().free(address_of(pointer)) ? 0 : 1;
}
int cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned) {
  BP_EMULATOR_ENTER_CONTEXT(cuMemHostRegister);
  if (const int refused = check_not_capturing("cuMemHostRegister")) return refused;
  if (bytes == 0 || !pointer) return 1;
  if (overlaps_host_block(address_of(pointer), bytes)) return 712;
  host_blocks()[address_of(pointer)] = {bytes, ++last_number, context->device, true};
  return 0;
}
int cuMemHostUnregister(void* pointer) {
  BP_EMULATOR_ENTER(cuMemHostUnregister);
  const auto found = host_blocks().find(address_of(pointer));
  if (found == host_blocks().end() || !found->second.registered) return 713;
  host_blocks().erase(found);
  return 0;
}
int cuMemHostGetDevicePointer_v2(unsigned long long* pointer, void* host, unsigned) {
  BP_EMULATOR_ENTER_CONTEXT(cuMemHostGetDevicePointer);
  if (!host_blocks().contains(address_of(host))) return 1;
  *pointer = address_of(host);
  return 0;
}

}  // extern "C"
