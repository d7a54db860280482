function(shunt_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual
    -Wconversion -Wsign-conversion -Wdouble-promotion
    # In a unity build, a function may shadow a constant of another file.
    $<$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>:-Wno-shadow>
    -Wno-missing-field-initializers  # designated initializers leave the rest at its default
    # gcc 12 and 13 report overlaps inside std::string's own operator+ (gcc bug 105651).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    # gcc 13 reports out-of-bounds accesses inside std::vector that do not exist (gcc bugs 107852, 110498).
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-array-bounds>
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-stringop-overflow>
    # gcc 13 does not track which member a std::variant holds (gcc bug 80635).
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-maybe-uninitialized>
    # std::stable_sort of libstdc++ 12 uses a deprecated function, and clang reports it at our calls.
    $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
    # With a 32-bit size_t, sizes of what is in memory fit; others were compared in 64 bits.
    $<$<BOOL:${SHUNT_WEB}>:-Wno-shorten-64-to-32>)
endfunction()
