// Moments of a part of a channel, and how two parts' are joined (Chan, Golub and LeVeque, "Updating Formulae and a
// Pairwise Algorithm for Computing Sample Variances", 1979). In memory they are five numbers of the class.
#include "class.glsl"

struct Moments {
  T count, mean, squares, g_mean, products;
};

const uint kFormat = JOIN(format_, CLASS);
uint64_t moment(uint64_t parts, uint i, int k) { return element(parts, int(i) * 5 + k, kFormat); }

Moments load_moments(uint64_t parts, uint i) {
  return Moments(LOAD(moment(parts, i, 0), kFormat), LOAD(moment(parts, i, 1), kFormat),
                 LOAD(moment(parts, i, 2), kFormat), LOAD(moment(parts, i, 3), kFormat),
                 LOAD(moment(parts, i, 4), kFormat));
}
void store_moments(uint64_t parts, uint i, Moments m) {
  store(moment(parts, i, 0), kFormat, m.count);
  store(moment(parts, i, 1), kFormat, m.mean);
  store(moment(parts, i, 2), kFormat, m.squares);
  store(moment(parts, i, 3), kFormat, m.g_mean);
  store(moment(parts, i, 4), kFormat, m.products);
}

Moments joined(Moments a, Moments b) {
  const T count = a.count + b.count, of_b = b.count / count;
  const T dx = b.mean - a.mean, dg = b.g_mean - a.g_mean;
  return Moments(count, a.mean + dx * of_b, a.squares + b.squares + dx * dx * a.count * of_b, a.g_mean + dg * of_b,
                 a.products + b.products + dx * dg * a.count * of_b);
}
