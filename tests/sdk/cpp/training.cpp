// training FOLDER: a model and optimisers on what FOLDER/start.safetensors has; Python does the same (test_cpp.py).
#include <iostream>

#include "backplane/bp.hpp"

using namespace bp;

namespace {

std::string folder;

template <class Optimizer, class Options>
void train(const std::string& name, const Options& options) {
  const StateDict start = load(folder + "/start.safetensors");
  nn::Sequential model(nn::Linear(3, 8), nn::Tanh(), nn::LayerNorm(8), nn::Linear(8, 2));
  model->to(kFloat64);
  StateDict own;
  for (const auto& [key, tensor] : start)
    if (key.starts_with("model.")) own.emplace_back(key.substr(6), tensor);
  model->load_state_dict(own);
  Optimizer optimizer(model->parameters(), options);
  optim::CosineAnnealingLR schedule(optimizer, 20);
  for (int i = 0; i < 20; ++i) {
    if (i == 10) {  // a resumed run is the same run
      const StateDict state = optimizer.state_dict();
      optimizer.load_state_dict(state);
    }
    optimizer.zero_grad();
    nn::functional::mse_loss(model(start["x"]), start["y"]).backward();
    nn::utils::clip_grad_norm_(model->parameters(), 0.5);
    optimizer.step();
    schedule.step();
  }
  save(model, folder + "/" + name + ".safetensors");
}

}  // namespace

int main(int, char** argv) {
  folder = argv[1];
  train<optim::SGD>("SGD", optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(true));
  train<optim::Adam>("Adam", optim::AdamOptions(0.01).weight_decay(0.1).amsgrad(true));
  train<optim::AdamW>("AdamW", optim::AdamWOptions(0.01).betas({0.8, 0.9}));
  train<optim::RMSprop>("RMSprop", optim::RMSpropOptions(0.01).momentum(0.5).centered(true));

  const StateDict start = load(folder + "/start.safetensors");
  manual_seed(5);
  nn::Sequential layers(nn::Conv2d(nn::Conv2dOptions(2, 4, 3).stride(2).padding(1)), nn::BatchNorm2d(4), nn::ReLU(),
                        nn::MaxPool2d(2), nn::Flatten());
  const Tensor training = layers(start["images"]);
  layers->eval();
  save({{"training", training.detach()}, {"evaluated", layers(start["images"]).detach()}},
       folder + "/layers.safetensors");
  save(layers, folder + "/layers_state.safetensors");
  nn::MultiheadAttention attention(8, 2);
  save({{"out", attention(start["sequence"], Tensor(), true).detach()}}, folder + "/attention.safetensors");
  save(attention, folder + "/attention_state.safetensors");
}
