// The kernels: every primitive of the registry, and nothing else. All other ops reach the device by decomposition.
#pragma once

#include "backplane/plugin.hpp"
#include "backplane/plugin/element.hpp"
#include "backplane/plugin/loop.hpp"

namespace minimal {

using namespace backplane::plugin;

inline constexpr const char* kName = "minimal";  // of the backend

// In which floats are added up, and rounded once: by ones, a float32 counts to 2^24 alone.
template <class T>
using Wide = std::conditional_t<kIsComplex<T>, std::complex<double>,
                                std::conditional_t<kIsHalf<T> || std::is_floating_point_v<T>, double, T>>;

void register_elementwise(const Registrar& registrar);  // what an op does to one element, over whole tensors
void register_movement(const Registrar& registrar);     // elements that change their places
void register_values(const Registrar& registrar);       // what makes, converts, folds and orders elements
void register_matmul(const Registrar& registrar);

}  // namespace minimal
