# cmake --install: the program, the libraries, the headers with the tables that they expand, and their package files.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The public headers include the tables as "ops/ops.def", so both go into a folder of their own.
set(shunt_headers_dir ${CMAKE_INSTALL_INCLUDEDIR}/shunt-${PROJECT_VERSION_MAJOR})
set(shunt_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shunt)
foreach(target shunt shunt_c)
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${shunt_headers_dir}>)
endforeach()

install(DIRECTORY include/shunt DESTINATION ${shunt_headers_dir})
install(FILES src/ops/args.h src/ops/expand.h src/ops/parameters.h src/ops/attributes.def src/ops/dtypes.def
              src/ops/ops.def
        DESTINATION ${shunt_headers_dir}/ops)
install(TARGETS shunt_c shunt shunt_packages EXPORT shunt_targets)
if(SHUNT_BUILD_CLI)
  install(TARGETS shunt_program)
  # The program describes itself: the command's words, the file, the folder under share/.
  set(described "manual|shunt.1|man/man1" "completions bash|shunt|bash-completion/completions"
                "completions zsh|_shunt|zsh/site-functions" "completions fish|shunt.fish|fish/vendor_completions.d")
  foreach(row IN LISTS described)
    string(REPLACE "|" ";" row "${row}")
    list(GET row 0 words)
    list(GET row 1 file)
    list(GET row 2 folder)
    string(REPLACE " " ";" words "${words}")
    set(made ${CMAKE_CURRENT_BINARY_DIR}/share/${folder}/${file})
    add_custom_command(OUTPUT ${made} COMMAND ${CMAKE_COMMAND} -E make_directory share/${folder}
                       COMMAND shunt_program ${words} > ${made} DEPENDS shunt_program VERBATIM)
    list(APPEND shunt_described ${made})
    install(FILES ${made} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
  endforeach()
  add_custom_target(shunt_descriptions ALL DEPENDS ${shunt_described})
endif()
# Builds what cmake --install needs, without the tests; ./dev build makes this target.
add_custom_target(installable DEPENDS ${shunt_described})
add_dependencies(installable shunt shunt_c)
if(SHUNT_BUILD_CLI)
  add_dependencies(installable shunt_program)
endif()
install(EXPORT shunt_targets NAMESPACE shunt:: DESTINATION ${shunt_cmake_dir})
configure_package_config_file(cmake/shunt-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/shunt-config.cmake
                              INSTALL_DESTINATION ${shunt_cmake_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/shunt-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/shunt-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/shunt-config-version.cmake
        DESTINATION ${shunt_cmake_dir})
file(RELATIVE_PATH shunt_prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/shunt.pc.in ${CMAKE_CURRENT_BINARY_DIR}/shunt.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/shunt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
