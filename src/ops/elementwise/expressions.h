// Expands each elementwise row of ops.def into a function over a value type V:
//   V row_name(const V* operand, const V* attribute)
// V has + - * / and the functions of a prelude; rows may have the same names as those functions.
//
// To expand: define SHUNT_VALUE as the type and SHUNT_FUNCTION as the specifiers of each function (kernel.cuh already
// does), open a namespace inside the prelude's, and use
//   #define SHUNT_ELEMENTWISE(...) SHUNT_ELEMENTWISE_FUNCTION(__VA_ARGS__)
//   #include "ops/ops.def"
#pragma once

#include "ops/expand.h"

#define SHUNT_TAKE_OPERAND(name) [[maybe_unused]] const SHUNT_VALUE name = *operand++;
#define SHUNT_TAKE_ATTRIBUTE(name) [[maybe_unused]] const SHUNT_VALUE name = *attribute++;
#define SHUNT_ELEMENTWISE_FUNCTION(name, inputs, attributes, tolerance, expression)      \
  SHUNT_FUNCTION SHUNT_VALUE row_##name([[maybe_unused]] const SHUNT_VALUE* operand,     \
                                        [[maybe_unused]] const SHUNT_VALUE* attribute) { \
    SHUNT_EACH(SHUNT_TAKE_OPERAND, SHUNT_ENTRIES inputs)                                 \
    SHUNT_EACH(SHUNT_TAKE_ATTRIBUTE, SHUNT_ENTRIES attributes)                           \
    return expression;                                                                   \
  }
#define SHUNT_ENTRIES(...) __VA_ARGS__
