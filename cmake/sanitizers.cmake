if(SHUNT_SANITIZE)
  add_compile_options(-fsanitize=${SHUNT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${SHUNT_SANITIZE})
  add_compile_definitions(SHUNT_SANITIZED)
endif()
# The library counts branches for the fuzzer; other programs ignore the counts.
if(SHUNT_BUILD_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
