// The twelve ops called from C++, on the devices that are named: calls PLUGIN DEVICE...
#include <cmath>
#include <iostream>

#include "backplane/bp.hpp"
#include "backplane/plugins.hpp"
#include "twelve/ops.hpp"

using namespace bp;

namespace {

int failures = 0;
void check(bool holds, const char* law, const char* device, int line) {
  if (holds) return;
  ++failures;
  std::cerr << "calls.cpp:" << line << ": on " << device << ": " << law << "\n";
}
#define HOLDS(...) check(__VA_ARGS__, #__VA_ARGS__, device, __LINE__)

bool near(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>() < 1e-5; }

void try_on(const char* device) {
  const auto on = [&](const Tensor& x) { return x.to(device); };
  const Tensor x = on(tensor({{1.0, 2.0, 3.0, 4.0}, {5.0, 6.0, 7.0, 8.0}}));
  const Tensor turned = twelve::rotary(x);
  HOLDS(near(turned[0], x[0]) && near((turned * turned).sum() / 204, on(tensor({1.0}))[0]));
  HOLDS(near(twelve::swiglu(x, x), x * x * x.sigmoid()));
  const Tensor data = on(tensor({0.0, 1.0, 1.0})), ids = on(tensor({0, 1, 1}));
  HOLDS(near(twelve::segment_logsumexp(data, ids, 2), on(tensor({0.0, 1.0 + std::log(2.0)}))));
  HOLDS(near(twelve::windowed_attention(x, x, x, 0), x));
  const Tensor q = twelve::quantise(x, 0.5);
  HOLDS(q.dtype() == kInt8 && near(twelve::dequantise(q, 0.5), x) && near(twelve::fake_quantise(x, 0.5), x));
  const Tensor boxes = on(tensor({{0.0, 0.0, 2.0, 2.0}, {0.0, 0.0, 2.0, 1.5}, {3.0, 3.0, 4.0, 4.0}}));
  const Tensor scores = on(tensor({0.75, 0.5, 0.875}));
  const Tensor overlaps = twelve::box_iou(boxes, boxes);
  HOLDS(near(overlaps[0], on(tensor({1.0, 0.75, 0.0}))));
  HOLDS(Tensor(twelve::nms(boxes, scores)).equals(on(tensor({2, 0}))));
  const auto padded = twelve::nms_padded(boxes, scores);
  HOLDS(Tensor(padded.out).equals(on(tensor({2, 0, 0}))) && Tensor(padded.count).item<int>() == 2);
  Tensor p = x.clone(), m = zeros_like(x), v = zeros_like(x);
  const auto expected = twelve::adamw(p, x, m, v);
  twelve::adamw_(p, x, m, v);
  HOLDS(near(p, expected.p) && near(m, expected.m) && near(v, expected.v));
  const Tensor z = on(tensor({0.0, 0.25})).to(kComplex64);
  HOLDS(near(Tensor(twelve::mobius(z, z)).abs(), on(tensor({0.0, 0.0}))));
  Tensor second = twelve::every_second(x, 1);
  HOLDS(second.equals(on(tensor({{2.0, 4.0}, {6.0, 8.0}}))));
}

}  // namespace

int main(int n, char** words) {
  backplane::load_plugin(words[1]);
  for (int i = 2; i < n; ++i) try_on(words[i]);
  std::cout << (failures ? "some calls are wrong\n" : "every call is right\n");
  return failures != 0;
}
