# What the core needs from the system, as the target shunt_packages.
add_library(shunt_packages INTERFACE)
if(SHUNT_WEB)
  # Headers alone, which fit every processor; Debian has no libraries for WebAssembly beyond the language's
  # (bindings/web/fmt.cpp).
  target_include_directories(shunt_packages SYSTEM BEFORE INTERFACE ${CMAKE_SOURCE_DIR}/bindings/web/one_thread)
else()
  find_package(Threads REQUIRED)
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
  target_link_libraries(shunt_packages INTERFACE $<IF:$<BOOL:${SHUNT_PORTABLE}>,fmt::fmt-header-only,fmt::fmt>
                        Threads::Threads PkgConfig::hwy nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
endif()
