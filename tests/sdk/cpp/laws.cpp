// Laws of bp::Tensor: operators, indices, numbers, transforms, compiled functions and files. Prints what fails.
#include <iostream>

#include "backplane/bp.hpp"

using namespace bp;

namespace {

int failures = 0;
void check(bool holds, const char* law, int line) {
  if (holds) return;
  ++failures;
  std::cerr << "laws.cpp:" << line << ": " << law << "\n";
}
#define HOLDS(...) check(__VA_ARGS__, #__VA_ARGS__, __LINE__)
#define REFUSED(call, words) check(refused([&] { (void)(call); }, words), #call " is refused: " words, __LINE__)

template <class F>
bool refused(F call, std::string_view words) {
  try {
    call();
  } catch (const Error& error) {
    const bool named = std::string_view(error.what()).find(words) != std::string_view::npos;
    if (!named) std::cerr << "found the message: " << error.what() << "\n";
    return named;
  }
  return false;
}

void operators() {
  const Tensor a = tensor({{1.0, 2.0}, {3.0, 4.0}}), b = tensor({{5.0, 6.0}, {7.0, 8.0}});
  HOLDS((a + b).equals(add(a, b)) && (a - b).equals(subtract(a, b)) && (a * b).equals(multiply(a, b)));
  HOLDS((a / 2).equals(a * 0.5) && (2 / a).equals(divide(2, a)) && (1 - a).equals(-(a - 1)));
  HOLDS(matmul(a, b).equals(a.matmul(b)) && a.mm(b).equals(tensor({{19.0, 22.0}, {43.0, 50.0}})));
  HOLDS((a > 2).equals(tensor({{false, false}, {true, true}})) && (a == a).all().item<bool>());
  HOLDS(((a > 1) & (a < 4)).equals(tensor({{false, true}, {true, false}})) && (~(a > 1)).equals(a <= 1));
  Tensor c = a.clone();
  const Tensor same = c;
  c += b, c *= 2, c -= 1, c /= 3;
  HOLDS(c.equals(((a + b) * 2 - 1) / 3) && same.same(c) && same.equals(c));
  HOLDS(tensor({1, 2}).dtype() == kInt64 && tensor({1.5, 2.0}).dtype() == kFloat32 && tensor({true}).dtype() == kBool);
  HOLDS((tensor({1, 2}) + 0.5).dtype() == kFloat32 && (tensor({1, 2}) + 1).dtype() == kInt64);
  HOLDS(tensor(int64_t{9007199254740993}).item<int64_t>() == 9007199254740993);
  REFUSED(tensor({{1, 2}, {3}}), "rows of different lengths");
  REFUSED(a + tensor({1.0, 2.0, 3.0}), "add");
}

void indices() {
  const Tensor a = arange(24).reshape({2, 3, 4});
  HOLDS(a[0].sizes() == (std::vector<int64_t>{3, 4}) && a[{1, 2, 3}].item<int>() == 23 && a[-1].equals(a[1]));
  HOLDS((a[{0, slice(1, 3), newaxis, ellipsis}].sizes() == std::vector<int64_t>{2, 1, 4}));
  HOLDS(a[{ellipsis, slice({}, {}, -1)}].equals(a.flip(-1)) && a[slice(1)].equals(a.narrow(0, 0, 1)));
  HOLDS(a.index({"...", 0}).equals(a.select(2, 0)) && a[{slice(), tensor({0, 2})}].equals(a.take(tensor({0, 2}), 1)));
  HOLDS((a[{tensor({0, 1}), slice(), tensor({1, 2})}].sizes() == std::vector<int64_t>{2, 3}));
  HOLDS((a[{0, slice(), tensor({1, 2})}].sizes() == std::vector<int64_t>{2, 3}));
  HOLDS(a[a > 20].equals(tensor({21, 22, 23})) && a[{slice(), newaxis}].equals(a.unsqueeze(1)));
  Tensor b = a.clone();
  b[{0, slice(0, 2)}] = -1;
  b[1] = b[0];
  b[b == 2] += 100;
  b[{slice(), slice(), tensor({0, 3})}] = tensor({7, 8});
  HOLDS(b[{0, 0}].equals(tensor({7, -1, -1, 8})) && b[1].equals(b[0]) && b[{0, 2}].equals(tensor({7, 9, 10, 8})));
  Tensor row = a[0];
  row = row + 1;  // another tensor: a stays
  auto part = a[0];
  part = part + 1;
  HOLDS(a[{0, 0, 0}].item<int>() == 0 && row.equals(part));
  b.index_put_({0}, 3);
  HOLDS(b[0].equals(full({3, 4}, 3, kInt64)));
  int64_t rows = 0;
  for (const Tensor& each : a) rows += each.sum().item<int64_t>();
  HOLDS(rows == 276);
  REFUSED(a[2], "expected an int from -2 to 1");
  REFUSED((a[{0, 0, 0, 0}]), "indices for 4 axes");
  REFUSED((a[{ellipsis, ellipsis}]), "at most one");
  REFUSED(a[tensor({0.5})], "expected integers or bools");
  REFUSED(a[tensor({true, false, true})], "mask of size 3");
}

void numbers() {
  HOLDS(tensor({2.75}).item<int>() == 2 && tensor(3).item<float>() == 3.0f && tensor(true).item<bool>());
  HOLDS(full({}, 1.5, kFloat16).item<double>() == 1.5 && tensor({1, 2}).to_vector<double>()[1] == 2.0);
  REFUSED(tensor({300}).item<int8_t>(), "does not hold");
  REFUSED(tensor({-1}).item<unsigned>(), "does not hold");
  REFUSED(tensor({1e20}).item<int64_t>(), "does not hold");
  REFUSED(tensor({1, 2}).item<int>(), "2 elements");
  REFUSED(tensor({1, 2}).data_ptr<float>(), "found int64");
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});
  HOLDS(x.data_ptr<float>()[3] == 4 && x[1].data_ptr<float>()[0] == 3);
  REFUSED(x.t().data_ptr<float>(), "not contiguous");
  const std::vector<double> numbers = {1, 2, 3, 4};
  HOLDS(from_blob(numbers.data(), {2, 2}).to(kFloat32).equals(x) && tensor(numbers).dtype() == kFloat64);
  HOLDS(to_string(tensor({{1, 2}, {3, 4}})) == "tensor([[1, 2],\n        [3, 4]])");
  HOLDS(to_string(tensor(1.5)) == "tensor(1.5000)" || to_string(tensor(1.5)) == "tensor(1.5)");
  manual_seed(3);
  const Tensor first = randn({4});
  manual_seed(3);
  HOLDS(first.equals(randn({4})) && !first.equals(randn({4})));
}

void derivatives() {
  const auto cube = [](const Tensor& x) { return (x * x * x).sum(); };
  const Tensor x = tensor({1.0, 2.0, 3.0});
  Tensor leaf = x.clone().requires_grad_();
  cube(leaf).backward();
  HOLDS(leaf.grad().equals(3 * x * x) && grad(cube)(x).equals(3 * x * x));
  HOLDS(hessian(cube)(x).allclose(eye(3) * (6 * x)) && vmap(grad(cube))(stack({x, 2 * x}))[1].allclose(12 * x * x));
  const auto product = [](const Tensor& a, const Tensor& b) { return (a * b).sum(); };
  const auto [da, db] = grad<0, 1>(product)(x, x + 1);
  HOLDS(da.equals(x + 1) && db.equals(x) && grad<1>(product)(x, x + 1).equals(x));
  const auto [value, slope] = jvp(product, {x, x}, {ones({3}), zeros({3})});
  HOLDS(value.item<float>() == 14 && slope.item<float>() == 6);
  const auto [sine, pull] = vjp([](const Tensor& x) { return sin(x); }, x);
  HOLDS(pull(ones({3}))[0].allclose(cos(x)) &&
        jacrev([](const Tensor& x) { return sin(x); })(x).allclose(eye(3) * cos(x)));
  HOLDS(vmap(product, {0, std::nullopt})(stack({x, x}), x).equals(tensor({14.0, 14.0})));
  HOLDS(vmap([](const Tensor& x) { return x * 2; }, {1}, 1)(ones({2, 3})).sizes() == (std::vector<int64_t>{2, 3}));
  {
    const NoGrad guard;
    HOLDS(!(leaf * 2).requires_grad());
  }
  HOLDS((leaf * 2).requires_grad() && !leaf.detach().requires_grad());
  HOLDS(grad(cube(leaf), {leaf})[0].equals(3 * x * x));
  REFUSED(grad([](const Tensor& x) { return x * 2; })(x), "grad");
  REFUSED((leaf * 2).backward(), "backward");
  REFUSED(leaf += 1, "with gradients off");
  REFUSED(vmap(product)(ones({2}), ones({3})), "found batches of 2 and of 3");
}

void compiled() {
  Tensor w = tensor({2.0, 3.0});
  auto f = compile([&](const Tensor& x, double k) { return std::pair((x * w * k).sum(), x + 1); });
  const Tensor x = tensor({1.0, 2.0});
  HOLDS(f(x, 2.0).first.item<float>() == 16 && f(x, 3.0).first.item<float>() == 24 && f.traces() == 2);
  HOLDS(f(2 * x, 2.0).second.equals(2 * x + 1) && f.traces() == 2);
  w += 1;  // a captured tensor is read by reference
  HOLDS(f(x, 2.0).first.item<float>() == 22 && f.traces() == 2);
  HOLDS(f(ones({3, 2}), 2.0).first.item<float>() == 42 && f.traces() == 3);
  HOLDS(grad([&](const Tensor& x) { return f(x, 2.0).first; })(x).equals(w * 2));
  HOLDS(vmap([&](const Tensor& x) { return f(x, 2.0).first; })(stack({x, x})).equals(tensor({22.0, 22.0})));
  Tensor count = zeros({}, kInt64);
  auto counts = compile([&](const Tensor& x) {
    count += 1;
    return x * count;
  });
  counts(x), counts(x);
  HOLDS(count.item<int>() == 2);
  nn::Dropout drop(0.5);
  auto dropped = compile([&](const Tensor& x) { return drop(x); });
  HOLDS(!dropped(ones({64})).equals(dropped(ones({64}))));
  drop->eval();
  HOLDS(dropped(ones({64})).equals(ones({64})));  // not the graph of training
  Generator own{1, 0};
  REFUSED(compile([&](const Tensor& x) { return bp::dropout(x, 0.5, own); })(x), "a generator of its own");
  REFUSED(compile([](const Tensor& x) { return x * x.sum().item<double>(); })(x), "no value yet");
}

void files(const std::string& folder) {
  const std::string path = folder + "/laws.safetensors";
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});
  save({{"x", x}, {"z", complex_from(x, -x)}, {"n", tensor({1, 2})}}, path);
  const StateDict found = load(path);
  HOLDS(found["x"].equals(x) && found["z"].imag().equals(-x) && found["n"].dtype() == kInt64 && found.size() == 3);
  REFUSED(load(folder + "/none.safetensors"), "none.safetensors");
  REFUSED(save({{"a", x}, {"a", x}}, path), "two tensors of the name");
  REFUSED(found["y"], "no tensor of the name 'y'");
  export_model([](const Tensor& a, const Tensor& b) { return std::vector<Tensor>{a + b, a - b}; }, {x, x}, path);
  const Model model = Model::load(path);
  const Outputs outputs = model(x, 2 * x);
  HOLDS(outputs.size() == 2 && outputs[0].equals(3 * x) && outputs[1].equals(-x));
  REFUSED(model(x), "found 1 inputs, expected 2");
  REFUSED(Tensor(model(x, x)), "2 results where one tensor");
}

}  // namespace

int main(int, char** argv) {
  operators();
  indices();
  numbers();
  derivatives();
  compiled();
  files(argv[1]);
  return failures != 0;
}
