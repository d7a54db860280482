// Macros that turn a parenthesized list of a table row, `(x, weight)`, into C++ text.
//
//   SHUNT_STRINGS(x, weight)          -> "x", "weight"
//   SHUNT_EACH(MACRO, x, weight)      -> MACRO(x) MACRO(weight)
//   SHUNT_EACH_COMMA(MACRO, x, y)     -> MACRO(x), MACRO(y)
//   SHUNT_COUNT(x, weight)            -> 2
// Used as `SHUNT_STRINGS inputs` where `inputs` is the row's parenthesized list. At most eight entries.
#pragma once

#define SHUNT_EACH(m, ...) __VA_OPT__(SHUNT_EACH_1(m, __VA_ARGS__))
#define SHUNT_EACH_1(m, a, ...) m(a) __VA_OPT__(SHUNT_EACH_2(m, __VA_ARGS__))
#define SHUNT_EACH_2(m, a, ...) m(a) __VA_OPT__(SHUNT_EACH_3(m, __VA_ARGS__))
#define SHUNT_EACH_3(m, a, ...) m(a) __VA_OPT__(SHUNT_EACH_4(m, __VA_ARGS__))
#define SHUNT_EACH_4(m, a, ...) m(a) __VA_OPT__(SHUNT_EACH_5(m, __VA_ARGS__))
#define SHUNT_EACH_5(m, a, ...) m(a) __VA_OPT__(SHUNT_EACH_6(m, __VA_ARGS__))
#define SHUNT_EACH_6(m, a, ...) m(a) __VA_OPT__(SHUNT_EACH_7(m, __VA_ARGS__))
#define SHUNT_EACH_7(m, a, ...) m(a) __VA_OPT__(SHUNT_EACH_8(m, __VA_ARGS__))
#define SHUNT_EACH_8(m, a) m(a)

#define SHUNT_EACH_COMMA(m, ...) __VA_OPT__(SHUNT_EACH_COMMA_1(m, __VA_ARGS__))
#define SHUNT_EACH_COMMA_1(m, a, ...) m(a) __VA_OPT__(, SHUNT_EACH_COMMA_2(m, __VA_ARGS__))
#define SHUNT_EACH_COMMA_2(m, a, ...) m(a) __VA_OPT__(, SHUNT_EACH_COMMA_3(m, __VA_ARGS__))
#define SHUNT_EACH_COMMA_3(m, a, ...) m(a) __VA_OPT__(, SHUNT_EACH_COMMA_4(m, __VA_ARGS__))
#define SHUNT_EACH_COMMA_4(m, a, ...) m(a) __VA_OPT__(, SHUNT_EACH_COMMA_5(m, __VA_ARGS__))
#define SHUNT_EACH_COMMA_5(m, a, ...) m(a) __VA_OPT__(, SHUNT_EACH_COMMA_6(m, __VA_ARGS__))
#define SHUNT_EACH_COMMA_6(m, a, ...) m(a) __VA_OPT__(, SHUNT_EACH_COMMA_7(m, __VA_ARGS__))
#define SHUNT_EACH_COMMA_7(m, a, ...) m(a) __VA_OPT__(, SHUNT_EACH_COMMA_8(m, __VA_ARGS__))
#define SHUNT_EACH_COMMA_8(m, a) m(a)

#define SHUNT_STRING_OF(a) #a
#define SHUNT_STRINGS(...) SHUNT_EACH_COMMA(SHUNT_STRING_OF, __VA_ARGS__)

#define SHUNT_PLUS_ONE(a) +1
#define SHUNT_COUNT(...) (0 SHUNT_EACH(SHUNT_PLUS_ONE, __VA_ARGS__))
