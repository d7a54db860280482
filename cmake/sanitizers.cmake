if(SHUNT_SANITIZE)
  add_compile_options(-fsanitize=${SHUNT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${SHUNT_SANITIZE})
endif()
