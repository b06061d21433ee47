// The generators of samples: what `gen:` names. See array.hpp.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "array.hpp"

namespace backplane::conformance {
namespace {

// SplitMix64 (Steele, Lea and Flood, 2014): the same numbers with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * unit(); }
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(std::max<int64_t>(n, 1))); }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - unit()));
    return radius * std::cos(2 * std::numbers::pi * unit());
  }
  std::vector<double> permutation(size_t count) {
    std::vector<double> order(count);
    std::iota(order.begin(), order.end(), 0.0);
    for (size_t i = count; i > 1; --i)
      std::swap(order[i - 1], order[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
    return order;
  }

 private:
  uint64_t state_;
};

struct Generator {
  std::string name;
  std::vector<double> numbers;
};

double number_of(const std::string& word) {
  if (word == "true") return 1;
  if (word == "false") return 0;
  return std::strtod(word.c_str(), nullptr);  // which knows nan, inf and -inf
}

// "uniform(-1, 1)", "values([1, nan])", "spd"
Generator parse(const std::string& text) {
  const size_t open = text.find('(');
  Generator made{text.substr(0, open), {}};
  std::string word;
  for (size_t i = open == std::string::npos ? text.size() : open; i < text.size(); ++i) {
    const char c = text[i];
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '+' || c == '.') {
      word += c;
    } else if (!word.empty()) {
      made.numbers.push_back(number_of(word));
      word.clear();
    }
  }
  return made;
}

std::vector<double> draw_numbers(Random& random, Generator generator, size_t count, bp_dtype dtype) {
  const bool inexact = is_inexact(dtype);
  if (generator.name.empty())
    generator = inexact ? Generator{"uniform", {-2, 2}} : Generator{dtype == BP_BOOL ? "bool" : "integers", {}};
  const std::string& name = generator.name;
  const std::vector<double>& n = generator.numbers;
  std::vector<double> drawn(count);
  const auto each = [&](auto next) { std::generate(drawn.begin(), drawn.end(), next); };
  const auto needs = [&](size_t numbers) {
    BP_CHECK(n.size() >= numbers, VALUE, "conformance: the generator ", name, " needs ", numbers, " numbers");
  };
  if (name == "uniform") {
    needs(2);
    each([&] { return random.uniform(n[0], n[1]); });
  } else if (name == "normal") {
    each([&] { return random.normal(); });
  } else if (name == "positive") {
    each([&] { return random.uniform(0.5, 2); });
  } else if (name == "away_from") {
    needs(2);
    each([&] {
      const double x = random.uniform(-2, 2);
      return std::fabs(x - n[0]) < n[1] ? n[0] + 2 * n[1] : x;
    });
  } else if (name == "distinct" || name == "permutation") {
    drawn = random.permutation(count);
    if (name == "distinct")
      for (double& x : drawn) x = (x - std::floor(static_cast<double>(count) / 2)) * (inexact ? 0.25 : 1);
  } else if (name == "index") {
    needs(1);
    each([&] { return static_cast<double>(random.below(static_cast<int64_t>(n[0]))); });
  } else if (name == "bool") {
    each([&] { return static_cast<double>(random.below(2)); });
  } else if (name == "integers") {
    const int64_t low = BP_DTYPE_BIT(dtype) & BP_MASK_UNSIGNED ? 0 : -4;
    each([&] { return static_cast<double>(low + random.below(5 - low)); });
  } else if (name == "values") {
    needs(1);
    for (size_t i = 0; i < count; ++i) drawn[i] = n[i % n.size()];
  } else if (name == "last") {
    needs(2);
    for (size_t i = 0; i < count; ++i) drawn[i] = n[i + 1 == count ? 1 : 0];
  } else {
    detail::fail(BP_ERROR_VALUE, "conformance: a sample names the generator ", name, ", which the kit does not know");
  }
  if (BP_DTYPE_BIT(dtype) & BP_MASK_UNSIGNED)
    for (double& x : drawn) x = std::fabs(x);
  return drawn;
}

// Hermitian and positive definite: B times its adjoint, plus n times the identity.
void draw_matrices(Random& random, Array& into) {
  const auto n = static_cast<size_t>(into.shape.back());
  const bool complex = (BP_DTYPE_BIT(into.dtype) & BP_MASK_COMPLEX) != 0;
  for (size_t matrix = 0; n && matrix < into.count() / (n * n); ++matrix) {
    std::vector<Number> base(n * n);
    for (Number& x : base) x = {random.normal(), complex ? random.normal() : 0};
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) {
        Number sum{i == j ? static_cast<long double>(n) : 0, 0};
        for (size_t k = 0; k < n; ++k) {
          const Number a = base[i * n + k], b = base[j * n + k];
          sum.re += a.re * b.re + a.im * b.im;
          sum.im += a.im * b.re - a.re * b.im;
        }
        into.set(matrix * n * n + i * n + j, sum);
      }
  }
}

}  // namespace

uint64_t seed_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

Array draw(const TensorSpec& spec, bp_dtype dtype, uint64_t seed) {
  Array made(spec.dtype == BP_DTYPE_NONE ? dtype : spec.dtype, spec.shape);
  Random random(seed);
  if (spec.generator == "spd") {
    draw_matrices(random, made);
    return made;
  }
  const Generator generator = parse(spec.generator);
  const std::vector<double> re = draw_numbers(random, generator, made.count(), made.dtype);
  std::vector<double> im(re.size(), 0.0);
  if (BP_DTYPE_BIT(made.dtype) & BP_MASK_COMPLEX) im = draw_numbers(random, generator, made.count(), made.dtype);
  for (size_t i = 0; i < re.size(); ++i) made.set(i, {re[i], im[i]});
  return made;
}

}  // namespace backplane::conformance
