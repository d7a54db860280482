# kernel_hashes.def distinguishes the kernels of different builds. hash_kernels.cmake writes it whenever a source below
# src/ops has changed; src/ops/kernel_hash.cpp reads it.
file(GLOB_RECURSE shunt_hashed_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/*)
set(shunt_hash_script ${CMAKE_CURRENT_SOURCE_DIR}/cmake/hash_kernels.cmake)
add_custom_command(
  OUTPUT ${shunt_generated_dir}/kernel_hashes.def
  COMMAND ${CMAKE_COMMAND} -DSOURCES=${CMAKE_CURRENT_SOURCE_DIR}/src -DOUT=${shunt_generated_dir}/kernel_hashes.def
          "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE}" -P ${shunt_hash_script}
  DEPENDS ${shunt_hashed_sources} ${shunt_hash_script}
  COMMENT "Hashing the sources of kernels"
  VERBATIM)
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/src/ops/kernel_hash.cpp
                            PROPERTIES OBJECT_DEPENDS ${shunt_generated_dir}/kernel_hashes.def)
add_custom_target(kernel_hashes DEPENDS ${shunt_generated_dir}/kernel_hashes.def)  # for ./dev lint, which builds nothing
