// uniform and normal, with the bits that their decompositions in ops/random.yaml give from random_bits. Compiled once
// per dtype: BP_CUDA_ELEMENT is how an element is stored, BP_CUDA_PART how its real part is.
#include "kernels/device/philox.cuh"

namespace backplane::cuda {
namespace {

using Part = BP_CUDA_PART;
using Real = Compute<Part>;

constexpr bool kWide = sizeof(Part) == 8;
constexpr int kGroup = kWide ? 2 : 4;  // numbers of a block of Philox
constexpr int kWordBits = kWide ? 64 : 32;

// On [0, 1): the first kBits bits of a word.
template <int kBits>
__device__ void units(Real (&u)[kGroup], const Draw& draw, uint64_t first) {
  uint32_t words[4];
  philox_words(words, draw, first * (4 / kGroup));
#pragma unroll
  for (int k = 0; k < kGroup; ++k) {
    constexpr Real kUnit = Real{1} / (uint64_t{1} << kBits);
    if constexpr (kWide)
      u[k] = convert<Real>(wide_word(words, k) >> (kWordBits - kBits)) * kUnit;
    else
      u[k] = convert<Real>(words[k] >> (kWordBits - kBits)) * kUnit;
  }
}

template <class N>
__device__ N number(const Number& x) {
  return *reinterpret_cast<const N*>(x.bytes);
}

__device__ void uniform_parts(Part (&parts)[kGroup], const UniformDraw& call, uint64_t first) {
  constexpr int kBits = kWide ? 53 : kSame<Part, float> ? 24 : kSame<Part, float16> ? 11 : 8;
  Real u[kGroup];
  units<kBits>(u, call.draw, first);
  const Part low = number<Part>(call.low), high = number<Part>(call.high), width = number<Part>(call.width);
#pragma unroll
  for (int k = 0; k < kGroup; ++k) {
    const Part part = narrow<Part>(widen(narrow<Part>(u[k] * widen(width))) + widen(low));
    // What rounds to high is low instead.
    parts[k] = call.unit ? narrow<Part>(u[k]) : widen(part) >= widen(high) ? low : part;
  }
}

template <class Element>
__device__ void uniform(const UniformDraw& call) {
  draw_groups<Element, kGroup>(call.draw, [&](uint64_t first, Element(&elements)[kGroup]) {
    if constexpr (kIsComplex<Element>) {
      Part re[kGroup], im[kGroup];
      uniform_parts(re, call, first);
      uniform_parts(im, call, call.draw.count + first);
#pragma unroll
      for (int k = 0; k < kGroup; ++k) elements[k] = Element{re[k], im[k]};
    } else {
      uniform_parts(elements, call, first);
    }
  });
}

// Box and Muller, A Note on the Generation of Random Normal Deviates, 1958.
template <class Element>
__device__ void normal(const NormalDraw& call) {
  using C = Compute<Element>;
  const C mean = number<C>(call.mean), deviation = number<C>(call.deviation);
  draw_groups<Element, kGroup>(call.draw, [&](uint64_t first, Element(&elements)[kGroup]) {
    constexpr Real kTurn = static_cast<Real>(6.283185307179586);
    Real lengths[kGroup], angles[kGroup];
    units<kWide ? 53 : 24>(lengths, call.draw, first);
    units<kWide ? 53 : 24>(angles, call.draw, call.draw.count + first);
#pragma unroll
    for (int k = 0; k < kGroup; ++k) {
      const Real logarithm = scalar::log::of(1 - lengths[k]), angle = angles[k] * kTurn;
      C z;
      if constexpr (kIsComplex<Element>) {
        const Real r = scalar::sqrt::of(-logarithm);
        z = C{r * scalar::cos::of(angle), r * scalar::sin::of(angle)};
      } else {
        z = scalar::sqrt::of(logarithm * -2) * scalar::cos::of(angle);
      }
      elements[k] = narrow<Element>(call.standard ? z : add(multiply(z, deviation), mean));
    }
  });
}

}  // namespace
}  // namespace backplane::cuda

using namespace backplane::cuda;

extern "C" __global__ void uniform(const __grid_constant__ UniformDraw call) {
  backplane::cuda::uniform<BP_CUDA_ELEMENT>(call);
}
extern "C" __global__ void normal(const __grid_constant__ NormalDraw call) {
  backplane::cuda::normal<BP_CUDA_ELEMENT>(call);
}
