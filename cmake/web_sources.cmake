# Of the sources, those that a browser can run: without the device APIs that none has, without what needs the services of
# an operating system, and with bindings/web/instead/PATH in the place of src/PATH.
list(FILTER shunt_sources EXCLUDE REGEX "src/(devices/(cuda|gl|metal|null|sim|vulkan)/|ops/.*cuda)")
foreach(source devices/bytes_in devices/cache_folder devices/file_lock devices/find devices/free_memory devices/known_apis devices/library devices/probe
               devices/shader_compiler devices/tool devices/user_kernel devices/cgroup devices/cpu/limits
               models/quantizer models/sigbus_guard models/step_ratios plan/profile_file run/brief_calibration
               run/budgets run/calibration run/calibration_cases run/op_bench run/write_trace trace/chrome trace/chrome_reader trace/text_file)
  list(REMOVE_ITEM shunt_sources ${CMAKE_CURRENT_SOURCE_DIR}/src/${source}.cpp)
endforeach()
set(web_dir ${CMAKE_CURRENT_SOURCE_DIR}/bindings/web/instead)
file(GLOB_RECURSE web_sources CONFIGURE_DEPENDS ${web_dir}/*.cpp)
foreach(source IN LISTS web_sources)
  file(RELATIVE_PATH path ${web_dir} ${source})
  list(REMOVE_ITEM shunt_sources ${CMAKE_CURRENT_SOURCE_DIR}/src/${path})
endforeach()
list(APPEND shunt_sources ${web_sources} ${CMAKE_CURRENT_SOURCE_DIR}/bindings/web/absent.cpp)
