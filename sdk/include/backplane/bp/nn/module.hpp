// nn::Module holds parameters, buffers and submodules by name. ModuleHolder is the shared handle of a module.
//
// Names of a state_dict are PyTorch's ("layers.0.weight"). A module cannot be copied or moved: share it by its
// holder.
#pragma once

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <ostream>
#include <typeinfo>

#include "backplane/bp/creation.hpp"
#include "backplane/bp/printing.hpp"
#include "backplane/bp/serialize.hpp"

namespace bp::nn {

// A parameter or a buffer with its name, as libtorch's ordered dict has it.
struct NamedTensor {
  std::string name;
  Tensor tensor;
  const std::string& key() const noexcept { return name; }
  const Tensor& value() const noexcept { return tensor; }
};

class Module {
 public:
  Module() = default;
  explicit Module(std::string name) : name_(std::move(name)) {}
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // ---- what a module consists of
  // `tensor` is the member that holds the parameter, or a tensor that the caller stores. Only a member follows
  // to(device): prefer it.
  const Tensor& register_parameter(std::string name, Tensor& tensor, bool requires_grad = true) {
    return add(std::move(name), &tensor, nullptr, true, requires_grad);
  }
  const Tensor& register_parameter(std::string name, Tensor&& tensor, bool requires_grad = true) {
    auto own = std::make_unique<Tensor>(std::move(tensor));
    Tensor* place = own.get();
    return add(std::move(name), place, std::move(own), true, requires_grad);
  }
  const Tensor& register_buffer(std::string name, Tensor& tensor) {
    return add(std::move(name), &tensor, nullptr, false, false);
  }
  const Tensor& register_buffer(std::string name, Tensor&& tensor) {
    auto own = std::make_unique<Tensor>(std::move(tensor));
    Tensor* place = own.get();
    return add(std::move(name), place, std::move(own), false, false);
  }
  template <class M>
  M register_module(std::string name, M module) {
    check_name(name);
    BP_CHECK(module, VALUE, "register_module: found an empty module for '", name, "'");
    children_.emplace_back(std::move(name), std::shared_ptr<Module>(module));
    detail::module_changes()++;
    return module;
  }

  std::vector<NamedTensor> named_parameters(bool recurse = true) const { return named(true, recurse); }
  std::vector<NamedTensor> named_buffers(bool recurse = true) const { return named(false, recurse); }
  std::vector<Tensor> parameters(bool recurse = true) const { return tensors_of(named(true, recurse)); }
  std::vector<Tensor> buffers(bool recurse = true) const { return tensors_of(named(false, recurse)); }
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& named_children() const { return children_; }
  std::vector<std::shared_ptr<Module>> children() const {
    std::vector<std::shared_ptr<Module>> found;
    for (const auto& [name, child] : children_) found.push_back(child);
    return found;
  }
  // Calls function(module) for this one and all below it, the lower ones first.
  template <class F>
  void apply(const F& function) {
    for (const auto& [name, child] : children_) child->apply(function);
    function(*this);
  }

  // ---- mode, place and gradients
  virtual void train(bool on = true) {
    if (training_ != on) detail::module_changes()++;
    training_ = on;
    for (const auto& [name, child] : children_) child->train(on);
  }
  void eval() { train(false); }
  bool is_training() const noexcept { return training_; }
  // Make optimisers afterwards: they hold the parameters.
  void to(Device device) {
    convert([&](const Tensor& x) { return x.to(device); }, "to(device)");
  }
  void to(const char* device) { to(Device(device)); }
  // Floating parameters and buffers; integer buffers keep their dtype.
  void to(bp_dtype dtype) {
    BP_CHECK(BP_DTYPE_BIT(dtype) & (BP_MASK_FLOATING | BP_MASK_COMPLEX), DTYPE, "Module::to: found ",
             backplane::dtype_name(dtype), ", expected a floating dtype");
    convert([&](const Tensor& x) { return x.is_floating_point() ? x.to(dtype) : x; }, "to(dtype)");
  }
  void zero_grad() const {
    for (const Tensor& parameter : parameters()) parameter.set_grad({});
  }
  void requires_grad_(bool wanted = true) const {
    for (const Tensor& parameter : parameters()) parameter.requires_grad_(wanted);
  }

  // ---- state
  StateDict state_dict() const {
    StateDict state;
    visit("", [&](const std::string& name, const Entry& entry) { state.emplace_back(name, entry.place->detach()); });
    return state;
  }
  // Copies into the parameters and buffers, whose dtypes stay. With `strict`, the names have to be the same; nothing
  // is changed where a name or a shape does not fit.
  void load_state_dict(const StateDict& state, bool strict = true) const;

  // The name given at construction, or the name of its class without namespaces and without a final "Impl".
  virtual std::string name() const;
  // Of the module's line in its text: "4, 8, bias=true".
  virtual std::string extra_text() const { return ""; }

  // ---- for functions of the parameters: value_and_grad and functional_call
  // The variables that hold each tensor of parameters(): several where modules share one.
  std::vector<std::vector<Tensor*>> parameter_places() const {
    std::vector<std::vector<Tensor*>> places;
    visit("", [&](const std::string& name, const Entry& entry) {
      if (!entry.is_parameter) return;
      BP_CHECK(!entry.own, NOT_IMPLEMENTED, "parameter '", name,
               "' was registered as a temporary, so the module's own ",
               "variable cannot follow. Fix: register the member: register_parameter(\"", name, "\", member)");
      for (std::vector<Tensor*>& shared : places) {
        if (!shared.front()->same(*entry.place)) continue;
        if (std::find(shared.begin(), shared.end(), entry.place) == shared.end()) shared.push_back(entry.place);
        return;
      }
      places.push_back({entry.place});
    });
    return places;
  }

 private:
  struct Entry {
    std::string name;
    Tensor* place;
    std::unique_ptr<Tensor> own;  // of a temporary
    bool is_parameter;
  };

  const Tensor& add(std::string name, Tensor* place, std::unique_ptr<Tensor> own, bool is_parameter, bool grad) {
    check_name(name);
    BP_CHECK(place->defined(), VALUE, "Module: found an undefined tensor for '", name, "'");
    if (is_parameter && grad) place->requires_grad_();
    entries_.push_back({std::move(name), place, std::move(own), is_parameter});
    return *entries_.back().place;
  }
  void check_name(const std::string& name) const {
    BP_CHECK(!name.empty() && name.find('.') == std::string::npos, VALUE, "Module: found the name '", name,
             "', expected one that is not empty and has no dot");
    bool taken = false;
    for (const Entry& entry : entries_) taken |= entry.name == name;
    for (const auto& [own, child] : children_) taken |= own == name;
    BP_CHECK(!taken, VALUE, "Module: found the name '", name, "' twice");
  }
  template <class F>
  void visit(const std::string& prefix, const F& function, bool recurse = true) const {
    for (const Entry& entry : entries_) function(prefix + entry.name, entry);
    if (recurse)
      for (const auto& [name, child] : children_) child->visit(prefix + name + ".", function);
  }
  std::vector<NamedTensor> named(bool parameters, bool recurse) const {
    std::vector<NamedTensor> found;
    visit(
        "",
        [&](const std::string& name, const Entry& entry) {
          bool seen = false;  // a shared parameter counts once
          for (const NamedTensor& other : found) seen |= other.tensor.same(*entry.place);
          if (entry.is_parameter == parameters && !seen) found.push_back({name, *entry.place});
        },
        recurse);
    return found;
  }
  static std::vector<Tensor> tensors_of(const std::vector<NamedTensor>& named) {
    std::vector<Tensor> tensors;
    for (const NamedTensor& each : named) tensors.push_back(each.tensor);
    return tensors;
  }
  template <class F>
  void convert(const F& function, const char* what) {
    std::vector<std::pair<Tensor, Tensor>> done;  // modules may share a tensor
    visit("", [&](const std::string& name, const Entry& entry) {
      for (const auto& [before, after] : done)
        if (entry.place->same(before)) *entry.place = after;
      const NoGrad guard;
      Tensor made = function(entry.place->detach());
      if (made.dtype() == entry.place->dtype() && made.device() == entry.place->device()) return;
      BP_CHECK(!entry.own, NOT_IMPLEMENTED, "Module::", what, ": '", name,
               "' was registered as a temporary, so the module's own variable cannot follow. Fix: register the member: "
               "register_parameter(\"",
               name, "\", member)");
      if (entry.is_parameter) made.requires_grad_(entry.place->requires_grad());
      done.emplace_back(std::exchange(*entry.place, made), made);
    });
    detail::module_changes()++;
  }

  std::string name_;
  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  bool training_ = true;
};

inline std::string Module::name() const {
  if (!name_.empty()) return name_;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, nullptr), &std::free);
  std::string name = text ? text.get() : "Module";
  name.erase(0, name.rfind(':') + 1);  // npos + 1 is 0
  if (name.size() > 4 && name.ends_with("Impl")) name.resize(name.size() - 4);
  return name;
}

inline void Module::load_state_dict(const StateDict& state, bool strict) const {
  const StateDict own = state_dict();
  if (strict) {
    for (const auto& [name, tensor] : state)
      BP_CHECK(own.contains(name), VALUE, "load_state_dict: found '", name, "', which the module does not have");
    for (const auto& [name, tensor] : own)
      BP_CHECK(state.contains(name), VALUE, "load_state_dict: found no '", name, "', which the module has");
  }
  for (const auto& [name, tensor] : own)
    if (state.contains(name))
      BP_CHECK(state[name].sizes() == tensor.sizes(), SHAPE, "load_state_dict: '", name, "': found the shape ",
               bp::detail::shown_shape(state[name]), ", expected ", bp::detail::shown_shape(tensor));
  const NoGrad guard;
  visit("", [&](const std::string& name, const Entry& entry) {
    if (state.contains(name)) entry.place->copy_(state[name].to(entry.place->device(), entry.place->dtype()));
  });
}

inline std::string to_string(const Module& module, size_t indent = 0) {
  std::string text = module.name() + "(" + module.extra_text();
  const std::string margin(indent + 2, ' ');
  for (const auto& [name, child] : module.named_children())
    text += "\n" + margin + "(" + name + "): " + to_string(*child, indent + 2);
  return text + (module.named_children().empty() ? ")" : "\n" + std::string(indent, ' ') + ")");
}
inline std::ostream& operator<<(std::ostream& out, const Module& module) { return out << to_string(module); }

// The shared handle of a module: copies are the same module, x->forward(...) and x(...) call it. nullptr makes none.
template <class Impl>
class ModuleHolder {
 public:
  using Contained = Impl;
  ModuleHolder(std::nullptr_t) {}
  ModuleHolder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  template <class... A>
  requires(std::is_constructible_v<Impl, A...> &&
           !(sizeof...(A) == 1 && (std::is_base_of_v<ModuleHolder, std::decay_t<A>> && ...)))  //
      explicit ModuleHolder(A&&... args)
      : impl_(std::make_shared<Impl>(std::forward<A>(args)...)) {}

  Impl* operator->() const { return &held(); }
  Impl& operator*() const { return held(); }
  Impl* get() const noexcept { return impl_.get(); }
  const std::shared_ptr<Impl>& ptr() const noexcept { return impl_; }
  operator std::shared_ptr<Module>() const { return impl_; }
  explicit operator bool() const noexcept { return impl_ != nullptr; }
  bool is_empty() const noexcept { return impl_ == nullptr; }

  template <class... A>
  auto operator()(const A&... args) const {
    return held().forward(args...);
  }
  friend std::ostream& operator<<(std::ostream& out, const ModuleHolder& holder) { return out << *holder; }

 private:
  Impl& held() const {
    BP_CHECK(impl_, VALUE, "found an empty module, expected one that was made. Fix: assign it before its use");
    return *impl_;
  }
  std::shared_ptr<Impl> impl_;
};

// The holder of a module that a program defines: BP_MODULE(Net) defines Net over the class NetImpl.
#define BP_MODULE(Name)                                     \
  class Name : public ::bp::nn::ModuleHolder<Name##Impl> {  \
   public:                                                  \
    using ::bp::nn::ModuleHolder<Name##Impl>::ModuleHolder; \
  }

namespace detail {

// Gives a module other parameters for as long as it lives.
class ParameterSwap {
 public:
  ParameterSwap(std::vector<std::vector<Tensor*>> places, const std::vector<Tensor>& values)
      : places_(std::move(places)) {
    BP_CHECK(places_.size() == values.size(), VALUE, "functional_call: found ", values.size(), " parameters, expected ",
             places_.size());
    for (const auto& shared : places_) before_.push_back(*shared.front());
    assign(values);
  }
  ~ParameterSwap() { assign(before_); }
  ParameterSwap(const ParameterSwap&) = delete;

 private:
  void assign(const std::vector<Tensor>& values) {
    for (size_t i = 0; i < places_.size(); ++i)
      for (Tensor* place : places_[i]) *place = values[i];
  }

  std::vector<std::vector<Tensor*>> places_;
  std::vector<Tensor> before_;
};

template <class M>
const Module& module_of(const M& module) {
  if constexpr (std::is_base_of_v<Module, M>)
    return module;
  else
    return *module;
}

// A pointer to the module, which a holder keeps alive.
template <class M>
auto holder_of(const M& module) {
  if constexpr (std::is_base_of_v<Module, M>)
    return static_cast<const Module*>(&module);
  else
    return std::shared_ptr<Module>(module);
}

}  // namespace detail

// function() with other tensors as the parameters of a module, in the order of parameters().
template <class M, class F>
auto functional_call(const M& module, const std::vector<Tensor>& parameters, F function) {
  const detail::ParameterSwap swap(detail::module_of(module).parameter_places(), parameters);
  return function();
}

// value_and_grad(model, f)(x, ...) is the pair of f(x, ...) and its gradients with respect to the parameters of model,
// in their order. The gradient of a parameter that does not require one is not defined.
template <class M, class F>
auto value_and_grad(const M& module, F f) {
  return [held = detail::holder_of(module), f](const auto&... args) mutable {
    std::vector<std::vector<Tensor*>> places = held->parameter_places();
    const size_t count = places.size();
    std::vector<size_t> wanted;
    std::vector<Tensor> values;
    for (size_t i = 0; i < count; ++i) {
      const Tensor& value = *places[i].front();
      if (!value.requires_grad()) continue;
      values.push_back(value);
      places[wanted.size()] = places[i];
      wanted.push_back(i);
    }
    places.resize(wanted.size());
    auto [result, found] = bp::value_and_grad([&](const std::vector<Tensor>& parameters) {
      const detail::ParameterSwap swap(places, parameters);
      return f(args...);
    })(values);
    std::vector<Tensor> gradients(count);
    for (size_t i = 0; i < wanted.size(); ++i) gradients[wanted[i]] = found[i];
    return std::pair(std::move(result), std::move(gradients));
  };
}

}  // namespace bp::nn
