# The list of kernel families is the list of folders under src/ops that hold NAME.cpp; a family has a SIMD
# kernel where NAME_simd.cpp is there. Written to families.def for src/ops/families.cpp.
set(shunt_generated_dir ${CMAKE_CURRENT_BINARY_DIR}/generated)
file(GLOB shunt_family_headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/*/*.h
                                                 ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/*/*.cpp)
set(shunt_family_rows "")
file(GLOB shunt_family_dirs ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/*)
foreach(dir IN LISTS shunt_family_dirs)
  get_filename_component(name ${dir} NAME)
  if(EXISTS ${dir}/${name}.cpp)
    if(EXISTS ${dir}/${name}_simd.cpp)
      string(APPEND shunt_family_rows "SHUNT_FAMILY_SIMD(${name})\n")
    else()
      string(APPEND shunt_family_rows "SHUNT_FAMILY_SCALAR(${name})\n")
    endif()
  endif()
endforeach()
file(CONFIGURE OUTPUT ${shunt_generated_dir}/families.def CONTENT "${shunt_family_rows}" @ONLY)
