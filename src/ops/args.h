// The macros with which a FAMILY_args.h describes a kernel's arguments once for C++, CUDA and GLSL.
//
//   SHUNT_ARGS(NormArgs) {        a plain struct; in C++ in namespace shunt, with all fields zero-initialized
//     StridedTensor x;            a struct declared the same way
//     SHUNT_U32(has_weight);      a 32-bit number
//     SHUNT_F32(epsilon);
//     SHUNT_U32S(4, strides);     2, 4 or 8 numbers: an array in C++; in GLSL a vector, or two of four
//   };
//   SHUNT_ARGS_BYTES(NormArgs, 80)
//   SHUNT_ARGS_CONSTANT(kRows, 4)  a constant that kernels and the host share
//
// C++ lays the struct out like a uniform block (std140): structs and more than two numbers begin at a multiple of 16
// bytes. Do not use plain arrays: GLSL would place their numbers 16 bytes apart. Put what only C++ and CUDA understand
// behind `#ifndef SHUNT_GLSL`; the build defines SHUNT_GLSL when it preprocesses a shader.
#pragma once

#ifdef SHUNT_GLSL

#define SHUNT_ARGS(name) struct name
#define SHUNT_ARGS_BYTES(name, bytes)
#define SHUNT_ARGS_CONSTANT(name, value) const uint name = value##u;
#define SHUNT_U32(name) uint name
#define SHUNT_F32(name) float name
#define SHUNT_U32S(count, name) SHUNT_VECTOR_##count(uvec, name)
#define SHUNT_F32S(count, name) SHUNT_VECTOR_##count(vec, name)
#define SHUNT_VECTOR_2(type, name) type##2 name
#define SHUNT_VECTOR_4(type, name) type##4 name
#define SHUNT_VECTOR_8(type, name) type##4 name[2]

#else

#include <cstdint>

#define SHUNT_ARGS(name) \
  namespace shunt {      \
  struct name;           \
  }                      \
  struct alignas(16) shunt::name
#define SHUNT_ARGS_BYTES(name, bytes) static_assert(sizeof(shunt::name) == (bytes) && (bytes) % 16 == 0);
#define SHUNT_ARGS_CONSTANT(name, value)       \
  namespace shunt {                            \
  inline constexpr std::uint32_t name = value; \
  }
#define SHUNT_U32(name) \
  std::uint32_t name {}
#define SHUNT_F32(name) \
  float name {}
#define SHUNT_U32S(count, name) \
  alignas((count) == 2 ? 8 : 16) std::uint32_t name[count] {}
#define SHUNT_F32S(count, name) \
  alignas((count) == 2 ? 8 : 16) float name[count] {}

#endif
