# The sources that a browser can run: without the device APIs that browsers lack and without what needs an operating
# system (or, for parse_bytes, std::from_chars of doubles, which WASI's library lacks). bindings/web/instead/PATH
# replaces src/PATH.
set(not_in_browsers "devices/(cuda|gl|metal|null|sim|vulkan)/" "devices/discovery/(find|free_memory|known_apis|probe)\\."
                    "ops/cuda\\." "base/system/" "base/parse_bytes")
list(JOIN not_in_browsers "|" not_in_browsers)
list(FILTER shunt_sources EXCLUDE REGEX "/src/(${not_in_browsers})")
set(web_dir ${CMAKE_CURRENT_SOURCE_DIR}/bindings/web/instead)
file(GLOB_RECURSE web_sources CONFIGURE_DEPENDS ${web_dir}/*.cpp)
foreach(source IN LISTS web_sources)
  file(RELATIVE_PATH path ${web_dir} ${source})
  list(REMOVE_ITEM shunt_sources ${CMAKE_CURRENT_SOURCE_DIR}/src/${path})
endforeach()
list(APPEND shunt_sources ${web_sources} ${CMAKE_CURRENT_SOURCE_DIR}/bindings/web/absent.cpp)
