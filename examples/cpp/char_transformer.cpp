// A small transformer that learns the characters of a text file and writes more of it:
// char_transformer TEXT [STEPS] [DEVICE]
#include <fstream>
#include <iostream>
#include <set>

#include "backplane/bp.hpp"

namespace nn = bp::nn;
constexpr int64_t kContext = 32, kWidth = 64, kHeads = 4, kLayers = 2, kBatch = 16;

struct BlockImpl : nn::Module {
  nn::LayerNorm norm1 = register_module("norm1", nn::LayerNorm(kWidth));
  nn::LayerNorm norm2 = register_module("norm2", nn::LayerNorm(kWidth));
  nn::MultiheadAttention attention = register_module("attention", nn::MultiheadAttention(kWidth, kHeads));
  nn::Sequential mlp = register_module(
      "mlp", nn::Sequential(nn::Linear(kWidth, 4 * kWidth), nn::GELU(), nn::Linear(4 * kWidth, kWidth)));
  bp::Tensor forward(bp::Tensor x) {
    x = x + attention(norm1(x), bp::Tensor(), /*is_causal=*/true);
    return x + mlp(norm2(x));
  }
};
BP_MODULE(Block);

struct Transformer : nn::Module {
  explicit Transformer(int64_t characters)
      : token(register_module("token", nn::Embedding(characters, kWidth))),
        position(register_module("position", nn::Embedding(kContext, kWidth))),
        blocks(register_module("blocks", nn::ModuleList<Block>())),
        head(register_module("head", nn::Linear(kWidth, characters))) {
    for (int64_t i = 0; i < kLayers; ++i) blocks->push_back(Block());
  }
  bp::Tensor forward(const bp::Tensor& tokens) {
    bp::Tensor x = token(tokens) + position(bp::arange(tokens.size(1)).to(tokens.device()));
    for (const Block& block : *blocks) x = block(x);
    return head(x);
  }
  nn::Embedding token, position;
  nn::ModuleList<Block> blocks;
  nn::Linear head;
};

int main(int argc, char** argv) {
  if (argc < 2) return std::cerr << "usage: char_transformer TEXT [STEPS] [DEVICE]\n", 2;
  std::ifstream file(argv[1]);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const int steps = argc > 2 ? std::stoi(argv[2]) : 300;
  const bp::Device device = argc > 3 ? argv[3] : "cpu";
  const std::set<char> found(text.begin(), text.end());
  const std::string characters(found.begin(), found.end());
  std::vector<int64_t> numbers;
  for (char c : text) numbers.push_back(static_cast<int64_t>(characters.find(c)));
  const bp::Tensor tokens = bp::tensor(numbers, device);

  bp::manual_seed(0);
  Transformer model(static_cast<int64_t>(characters.size()));
  model.to(device);
  bp::optim::AdamW optimizer(model.parameters(), bp::optim::AdamWOptions(1e-2));
  bp::optim::CosineAnnealingLR schedule(optimizer, steps);
  // Compiled once: a step takes other batches, and no other graph.
  auto step = bp::compile(nn::value_and_grad(model, [&](const bp::Tensor& x, const bp::Tensor& y) {
    return nn::functional::cross_entropy(model.forward(x).flatten(0, 1), y.flatten());
  }));
  double first = 0, last = 0;
  for (int i = 0; i < steps; ++i) {
    const bp::Tensor starts = bp::randint(tokens.size(0) - kContext, {kBatch, 1}, device);
    const bp::Tensor rows = starts + bp::arange(kContext).to(device);
    const auto [loss, gradients] = step(tokens[rows], tokens[rows + 1]);
    optimizer.step(gradients);
    schedule.step();
    last = loss.item<double>();
    if (i == 0) first = last;
    if (i % 50 == 0 || i == steps - 1) std::cout << "step " << i << "/" << steps << "  loss " << last << std::endl;
  }

  model.eval();
  bp::NoGrad guard;
  std::string written = text.substr(0, kContext);
  for (int i = 0; i < 100; ++i) {
    std::vector<int64_t> context;
    for (char c : written.substr(written.size() - kContext))
      context.push_back(static_cast<int64_t>(characters.find(c)));
    const bp::Tensor logits = model.forward(bp::tensor(context, device).unsqueeze(0));
    written += characters[static_cast<size_t>(logits[{0, -1}].argmax().item<int64_t>())];
  }
  std::cout << written << "\n";
  return last < first ? 0 : 1;
}
