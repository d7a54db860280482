if(SHUNT_SANITIZE)
  add_compile_options(-fsanitize=${SHUNT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${SHUNT_SANITIZE})
  add_compile_definitions(SHUNT_SANITIZED)
  # The SIMD kernels then have SSE4 as their baseline, which compiles and runs much faster here than plain C++.
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    add_compile_options(-march=x86-64-v2 -maes -mpclmul)
  endif()
endif()
