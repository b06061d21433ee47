// Sequential, ModuleList, and modules without parameters: activations, dropout, pooling, losses.
#pragma once

#include <functional>

#include "backplane/bp/nn/layers.hpp"

namespace bp::nn {

// One module after the other, named "0", "1", …: holders, shared pointers of modules, and functions of a tensor.
class SequentialImpl : public Module {
 public:
  SequentialImpl() : Module("Sequential") {}
  template <class... M>
  requires(sizeof...(M) > 0) explicit SequentialImpl(M... modules) : Module("Sequential") {
    (push_back(std::move(modules)), ...);
  }
  template <class M>
  void push_back(M module) {
    push_back(std::to_string(steps_.size()), std::move(module));
  }
  template <class M>
  void push_back(std::string name, M module) {
    if constexpr (std::is_convertible_v<M, std::shared_ptr<Module>>) {
      register_module(std::move(name), module);
      steps_.push_back([module](const Tensor& x) -> Tensor { return module->forward(x); });
    } else {
      steps_.push_back([module](const Tensor& x) -> Tensor { return module(x); });
    }
  }
  Tensor forward(Tensor x) const {
    for (const auto& step : steps_) x = step(x);
    return x;
  }
  size_t size() const noexcept { return steps_.size(); }

 private:
  std::vector<std::function<Tensor(const Tensor&)>> steps_;
};
class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  Sequential() : ModuleHolder(std::make_shared<SequentialImpl>()) {}
  Sequential(std::nullptr_t) : ModuleHolder(nullptr) {}
  template <class... M>
  requires(sizeof...(M) > 1 || (... && !std::is_same_v<M, Sequential>)) explicit Sequential(M... modules)
      : ModuleHolder(std::make_shared<SequentialImpl>(std::move(modules)...)) {}
};

// Modules of one kind by number: blocks->push_back(Block(...)); for (const Block& block : *blocks) x = block(x).
template <class M>
class ModuleListImpl : public Module {
 public:
  ModuleListImpl() : Module("ModuleList") {}
  void push_back(M module) { modules_.push_back(register_module(std::to_string(modules_.size()), std::move(module))); }
  const M& operator[](size_t i) const { return modules_.at(i); }
  size_t size() const noexcept { return modules_.size(); }
  auto begin() const noexcept { return modules_.begin(); }
  auto end() const noexcept { return modules_.end(); }

 private:
  std::vector<M> modules_;
};
template <class M>
class ModuleList : public ModuleHolder<ModuleListImpl<M>> {
 public:
  ModuleList() : ModuleHolder<ModuleListImpl<M>>(std::make_shared<ModuleListImpl<M>>()) {}
  ModuleList(std::initializer_list<M> modules) : ModuleList() {
    for (const M& module : modules) (*this)->push_back(module);
  }
};

// Zeroes elements with the probability p while it trains, and scales the others by 1 / (1 - p).
class DropoutImpl : public Module {
 public:
  explicit DropoutImpl(double p_ = 0.5) : Module("Dropout"), p(p_) {
    BP_CHECK(p >= 0 && p <= 1, VALUE, "Dropout: found the probability ", p, ", expected one from 0 to 1");
  }
  Tensor forward(const Tensor& x) const { return functional::dropout(x, p, is_training()); }
  std::string extra_text() const override { return "p=" + bp::detail::format("%.*g", 6, p); }
  double p;
};
BP_MODULE(Dropout);

#define BP_NN_FUNCTION(Name, call)                         \
  class Name##Impl : public Module {                       \
   public:                                                 \
    Name##Impl() : Module(#Name) {}                        \
    Tensor forward(const Tensor& x) const { return call; } \
  };                                                       \
  BP_MODULE(Name)
BP_NN_FUNCTION(Identity, x);
BP_NN_FUNCTION(ReLU, bp::relu(x));
BP_NN_FUNCTION(ReLU6, bp::relu6(x));
BP_NN_FUNCTION(GELU, bp::gelu(x));
BP_NN_FUNCTION(SiLU, bp::silu(x));
BP_NN_FUNCTION(SELU, bp::selu(x));
BP_NN_FUNCTION(Mish, bp::mish(x));
BP_NN_FUNCTION(Tanh, bp::tanh(x));
BP_NN_FUNCTION(Sigmoid, bp::sigmoid(x));
BP_NN_FUNCTION(LogSigmoid, bp::logsigmoid(x));
BP_NN_FUNCTION(Hardswish, bp::hardswish(x));
BP_NN_FUNCTION(Softsign, bp::softsign(x));
#undef BP_NN_FUNCTION

#define BP_NN_FUNCTION_OF(Name, type, argument, value, call)                      \
  class Name##Impl : public Module {                                              \
   public:                                                                        \
    explicit Name##Impl(type wanted = value) : Module(#Name), argument(wanted) {} \
    Tensor forward(const Tensor& x) const { return call; }                        \
    type argument;                                                                \
  };                                                                              \
  BP_MODULE(Name)
BP_NN_FUNCTION_OF(LeakyReLU, double, negative_slope, 0.01, bp::leaky_relu(x, negative_slope));
BP_NN_FUNCTION_OF(ELU, double, alpha, 1, bp::elu(x, alpha));
BP_NN_FUNCTION_OF(Softplus, double, beta, 1, bp::softplus(x, beta));
BP_NN_FUNCTION_OF(Softmax, int64_t, axis, -1, bp::softmax(x, axis));
BP_NN_FUNCTION_OF(LogSoftmax, int64_t, axis, -1, bp::log_softmax(x, axis));
BP_NN_FUNCTION_OF(Flatten, int64_t, start, 1, x.flatten(start));
#undef BP_NN_FUNCTION_OF

#define BP_NN_POOL(Name, function)                                                        \
  class Name##Impl : public Module {                                                      \
   public:                                                                                \
    explicit Name##Impl(Size2 kernel_size) : Name##Impl(kernel_size, kernel_size) {}      \
    Name##Impl(Size2 kernel_size, Size2 stride, Size2 padding = 0)                        \
        : Module(#Name), kernel_size_(kernel_size), stride_(stride), padding_(padding) {} \
    Tensor forward(const Tensor& x) const {                                               \
      return functional::function(x, kernel_size_, IntList(stride_), padding_);           \
    }                                                                                     \
                                                                                          \
   private:                                                                               \
    Size2 kernel_size_, stride_, padding_;                                                \
  };                                                                                      \
  BP_MODULE(Name)
BP_NN_POOL(MaxPool2d, max_pool2d);
BP_NN_POOL(AvgPool2d, avg_pool2d);
#undef BP_NN_POOL

#define BP_NN_LOSS(Name, function)                                                             \
  class Name##Impl : public Module {                                                           \
   public:                                                                                     \
    explicit Name##Impl(Reduction reduction = kMean) : Module(#Name), reduction_(reduction) {} \
    Tensor forward(const Tensor& input, const Tensor& target) const {                          \
      return functional::function(input, target, reduction_);                                  \
    }                                                                                          \
                                                                                               \
   private:                                                                                    \
    Reduction reduction_;                                                                      \
  };                                                                                           \
  BP_MODULE(Name)
BP_NN_LOSS(CrossEntropyLoss, cross_entropy);
BP_NN_LOSS(NLLLoss, nll_loss);
BP_NN_LOSS(MSELoss, mse_loss);
BP_NN_LOSS(L1Loss, l1_loss);
BP_NN_LOSS(SmoothL1Loss, smooth_l1_loss);
BP_NN_LOSS(BCELoss, binary_cross_entropy);
BP_NN_LOSS(BCEWithLogitsLoss, binary_cross_entropy_with_logits);
#undef BP_NN_LOSS

}  // namespace bp::nn
