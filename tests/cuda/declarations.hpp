// Does a declaration of ours call what NVIDIA's does?
#pragma once

#include <type_traits>

namespace emulator {

// The same to the calling convention: an enumeration is an int, also behind a pointer.
template <class Ours, class Theirs>
constexpr bool fits() {
  if constexpr (std::is_same_v<Ours, Theirs>)
    return true;
  else if constexpr (std::is_enum_v<Theirs>)
    return (std::is_integral_v<Ours> || std::is_enum_v<Ours>)&&sizeof(Ours) == sizeof(Theirs);
  else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using To = std::remove_pointer_t<Ours>;
    using ToTheirs = std::remove_pointer_t<Theirs>;
    // A struct is opaque, or of a layout that is checked by itself.
    return fits<To, ToTheirs>() ||
           (std::is_class_v<To> && std::is_class_v<ToTheirs> && std::is_const_v<To> == std::is_const_v<ToTheirs>);
  } else if constexpr (std::is_class_v<Ours> && std::is_class_v<Theirs>)
    return sizeof(Ours) == sizeof(Theirs) && std::is_trivially_copyable_v<Ours> && std::is_trivially_copyable_v<Theirs>;
  else
    return false;
}
template <class Ours, class... A, class Theirs, class... B>
constexpr bool same_form(Ours (*)(A...), Theirs (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B))
    return false;
  else
    return fits<Ours, Theirs>() && (fits<A, B>() && ...);
}

}  // namespace emulator
