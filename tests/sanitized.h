// Sweeps over many cases take fewer of them under sanitizers, where code runs about ten times slower.
#pragma once

namespace shunt::test {

#ifdef SHUNT_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace shunt::test
