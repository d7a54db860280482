if(SHUNT_SANITIZE)
  add_compile_options(-fsanitize=${SHUNT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  # AddressSanitizer reports what these two would, and code compiles faster without them.
  if(SHUNT_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize=null,object-size)
  endif()
  add_link_options(-fsanitize=${SHUNT_SANITIZE})
  add_compile_definitions(SHUNT_SANITIZED)
endif()
