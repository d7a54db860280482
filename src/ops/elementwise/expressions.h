// Expands the elementwise rows of ops.def into one function each over a value type V that has + - * / and the
// functions of a prelude: `V row_name(const V* operand, const V* attribute)`. Rows may have the names of these
// functions.
//
// To expand: define SHUNT_VALUE as the type, optionally SHUNT_FUNCTION as what stands before each function,
// open a namespace below the prelude's, and use
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
