// A multi-layer perceptron on handwritten digits: digits DATA.safetensors [EPOCHS] [DEVICE]
//
// DATA has "images" (n, 64) and "labels" (n). From scikit-learn's digits, in Python:
//   digits = sklearn.datasets.load_digits()
//   bp.save({"images": bp.asarray(digits.data / 16, dtype=bp.float32), "labels": bp.asarray(digits.target)},
//   "digits.safetensors")
#include <iostream>

#include "backplane/bp.hpp"

namespace nn = bp::nn;

struct Net : nn::Module {
  nn::Linear fc1 = register_module("fc1", nn::Linear(64, 64));
  nn::Linear fc2 = register_module("fc2", nn::Linear(64, 10));
  nn::Dropout dropout = register_module("dropout", nn::Dropout(0.2));
  bp::Tensor forward(const bp::Tensor& x) { return fc2(dropout(bp::relu(fc1(x)))); }
};

int main(int argc, char** argv) {
  if (argc < 2) return std::cerr << "usage: digits DATA.safetensors [EPOCHS] [DEVICE]\n", 2;
  const int epochs = argc > 2 ? std::stoi(argv[2]) : 20;
  const bp::Device device = argc > 3 ? argv[3] : "cpu";
  const bp::StateDict data = bp::load(argv[1], device);
  const bp::Tensor images = data["images"], labels = data["labels"];
  const int64_t n_test = images.size(0) / 5, n_train = images.size(0) - n_test, batch = 64;

  bp::manual_seed(0);
  Net net;
  net.to(device);
  bp::optim::AdamW optimizer(net.parameters(), bp::optim::AdamWOptions(3e-3).weight_decay(0.01));
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    const bp::Tensor order = bp::randperm(n_train, device);
    double total = 0;
    for (const bp::Tensor& rows : order.split(batch)) {
      optimizer.zero_grad();
      bp::Tensor loss = nn::functional::cross_entropy(net.forward(images[rows]), labels[rows]);
      loss.backward();
      optimizer.step();
      total += loss.item<double>() * rows.size(0);
    }
    std::cout << "epoch " << epoch << "/" << epochs << "  loss " << total / n_train << std::endl;
  }

  net.eval();
  bp::NoGrad guard;
  const bp::Tensor found = net.forward(images[bp::slice(n_train, {})]).argmax(1);
  const double right = (found == labels[bp::slice(n_train, {})]).to(bp::kFloat32).mean().item<double>();
  std::cout << "accuracy " << right << "\n";
  bp::save(net, "digits_model.safetensors");
  return right > 0.8 ? 0 : 1;
}
