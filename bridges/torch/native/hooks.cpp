// What PyTorch asks of the device: its default generators, its memory, its state.
//
// Random numbers are drawn by PyTorch's CPU, so a program draws the same numbers on every device. The default generator
// of each device is the CPU's default generator.
#include "hooks.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CPUAllocator.h>

#include "device_tensors.hpp"

namespace backplane_torch {

namespace {

struct DeviceGenerator final : c10::GeneratorImpl {
  DeviceGenerator(c10::DeviceIndex index, at::Generator host)
      : c10::GeneratorImpl(c10::Device(kDevice, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        host_(std::move(host)) {}

  void set_current_seed(uint64_t seed) override { host_.set_current_seed(seed); }
  void set_offset(uint64_t) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false,
                                "Generator.set_offset: generators of the device have a state instead of an offset. "
                                "Fix: use get_state() and set_state()");
  }
  uint64_t get_offset() const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false,
                                "Generator.get_offset: generators of the device have a state instead of an offset. "
                                "Fix: use get_state() and set_state()");
  }
  uint64_t current_seed() const override { return host_.current_seed(); }
  uint64_t seed() override { return host_.seed(); }
  void set_state(const c10::TensorImpl& state) override { host_.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return host_.unsafeGetGeneratorImpl()->get_state(); }
  const at::Generator& host() const { return host_; }

 private:
  DeviceGenerator* clone_impl() const override { return new DeviceGenerator(device().index(), host_.clone()); }
  at::Generator host_;
};

at::Generator default_generator(c10::DeviceIndex index) {
  return at::make_generator<DeviceGenerator>(index, at::detail::getDefaultCPUGenerator());
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  void init() const override {}
  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(device_count()); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceIndex before = current_device();
    set_current_device(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    static auto* generators = new std::vector<at::Generator>;  // ordinals only grow; the vector is reserved once
    static const bool reserved = (generators->reserve(64), true);
    (void)reserved;
    if (index < 0) index = current_device();
    device_of(index);
    while (generators->size() <= static_cast<size_t>(index))
      generators->push_back(default_generator(static_cast<c10::DeviceIndex>(generators->size())));
    return (*generators)[index];
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return at::make_generator<DeviceGenerator>(index < 0 ? current_device() : index, at::detail::createCPUGenerator());
  }
  // Backplane copies from any memory of the host, so there is nothing to pin.
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage(storage, bytes);
  }
};

}  // namespace

std::optional<at::Generator> host_generator(const std::optional<at::Generator>& generator) {
  if (!generator || !generator->defined() || generator->device().type() != kDevice) return generator;
  return static_cast<const DeviceGenerator*>(generator->unsafeGetGeneratorImpl())->host();
}

void register_hooks() {
  static auto* hooks = new Hooks;  // PyTorch keeps it
  at::RegisterPrivateUse1HooksInterface(hooks);
  c10::SetAllocator(kDevice, allocator());
}

}  // namespace backplane_torch
