# The target shunt_packages: what the core needs from the system.
add_library(shunt_packages INTERFACE)
if(SHUNT_WEB)
  # Only headers, which fit every processor; for WebAssembly, Debian has only the standard libraries
  # (bindings/web/fmt.cpp).
  target_include_directories(shunt_packages SYSTEM BEFORE INTERFACE ${CMAKE_SOURCE_DIR}/bindings/web/one_thread)
elseif(SHUNT_KERNELS_ALONE)
  target_compile_definitions(shunt_packages INTERFACE FMT_HEADER_ONLY)
else()
  find_package(Threads REQUIRED)
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
  pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
  target_link_libraries(shunt_packages INTERFACE $<IF:$<BOOL:${SHUNT_PORTABLE}>,fmt::fmt-header-only,fmt::fmt>
                        Threads::Threads PkgConfig::hwy PkgConfig::hwloc nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
endif()
