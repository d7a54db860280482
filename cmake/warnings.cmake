function(shunt_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual
    -Wconversion -Wsign-conversion -Wdouble-promotion
    -Wno-missing-field-initializers  # designated initializers leave the rest at its default
    # gcc 12 and 13 report overlaps inside std::string's own operator+ (gcc bug 105651).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    # gcc 13 sees reads and writes out of bounds inside std::vector that are none (gcc bugs 107852, 110498).
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-array-bounds>
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-stringop-overflow>
    # Nor can it tell which member a std::variant has (gcc bug 80635).
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-maybe-uninitialized>
    # std::stable_sort of libstdc++ 12 uses a deprecated function, which clang reports where we call it.
    $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
    # Where size_t has 32 bits, what is in memory fits it; what is not was compared with it in 64.
    $<$<BOOL:${SHUNT_WEB}>:-Wno-shorten-64-to-32>)
endfunction()
