# Each src/ops/FAMILY/NAME.comp is preprocessed (kernels expand the op tables), compiled to SPIR-V, checked and
# embedded. Without glslc there are no shaders, and shaders.def is empty. The SPIR-V is also translated to each of
# shunt_shader_texts by `shunt_to_TEXT x.spv --output x.TEXT`, and all of it to WGSL at once, since that translator takes
# longer to start than to translate. A text is empty if its translator is missing. Files next to it with the suffixes of
# shunt_webgl_texts are translated only to WebGL2's language, with their names, by which everything is bound.
# NAME.vulkan.comp is not translated.
find_program(SHUNT_GLSLC glslc)
find_program(SHUNT_SPIRV_VAL spirv-val)
find_program(SHUNT_SPIRV_CROSS spirv-cross)
set(shunt_shader_texts glsl430 essl310 msl)
if(SHUNT_SPIRV_CROSS)
  set(shunt_to_glsl430 ${SHUNT_SPIRV_CROSS} --version 430 --no-es)
  set(shunt_to_essl310 ${SHUNT_SPIRV_CROSS} --version 310 --es)
  # MSL 2.3 is the version of macOS 11. Buffers keep our binding numbers, and arrays are the language's own.
  set(shunt_to_msl ${SHUNT_SPIRV_CROSS} --msl --msl-version 20300 --msl-decoration-binding --msl-force-native-arrays)
else()
  message(WARNING "spirv-cross is missing: this build has no shaders for OpenGL and Metal")
endif()
find_program(SHUNT_NODE node)
# Globbed, so that a build notices when npm has fetched it.
file(GLOB shunt_naga CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tools/npm/node_modules/naga-wasm/package.json)
if(SHUNT_NODE AND shunt_naga)
  set(shunt_to_wgsl ${SHUNT_NODE} ${CMAKE_CURRENT_SOURCE_DIR}/tools/wgsl.mjs)
else()
  message(STATUS "No Node or no tools/npm/node_modules (npm ci): this build has no WGSL")
endif()
set(shunt_webgl_texts essl300 essl300_first essl300_points)
set(shunt_webgl_essl300 .frag fragment SHUNT_FRAGMENT)
set(shunt_webgl_essl300_first _first.frag fragment SHUNT_FIRST_PASS)
set(shunt_webgl_essl300_points .vert vertex SHUNT_POINTS)
file(GLOB shunt_kernel_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/*/*.comp)
file(GLOB shunt_webgl_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/*/*.frag
                                                ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/*/*.vert)
file(GLOB_RECURSE shunt_kernel_headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/*.glsl
                                                         ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/*_args.h
                                                         ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/*.def)
foreach(name args.h parameters.h expand.h)
  list(APPEND shunt_kernel_headers ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/${name})
endforeach()
set(shunt_shader_dir ${shunt_generated_dir}/shaders)
file(MAKE_DIRECTORY ${shunt_shader_dir})
set(shunt_embed_shader ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_shader.cmake)
set(shunt_shader_rows "")
set(shunt_shader_sources "")
set(shunt_shader_names "")
set(shunt_wgsl_inputs "")
set(shunt_wgsl_source "")
if(SHUNT_GLSLC AND SHUNT_SPIRV_VAL)
  foreach(source IN LISTS shunt_kernel_sources)
    get_filename_component(name ${source} NAME_WE)
    get_filename_component(folder ${source} DIRECTORY)
    get_filename_component(family ${folder} NAME)
    string(REGEX MATCH "\\.vulkan\\.comp$" is_for_vulkan_alone ${source})
    set(base ${shunt_shader_dir}/${name})
    set(preprocess ${CMAKE_CXX_COMPILER} -E -P -x c++ -std=c++20 -DSHUNT_GLSL -I${CMAKE_CURRENT_SOURCE_DIR}/src)
    set(translations "")
    foreach(text IN LISTS shunt_shader_texts)
      if(DEFINED shunt_to_${text} AND NOT is_for_vulkan_alone)
        list(APPEND translations COMMAND ${shunt_to_${text}} ${base}.spv --output ${base}.${text})
      else()
        list(APPEND translations COMMAND ${CMAKE_COMMAND} -E rm -f ${base}.${text})
      endif()
    endforeach()
    set(webgl_sources "")
    foreach(text IN LISTS shunt_webgl_texts)
      list(GET shunt_webgl_${text} 0 ending)
      list(GET shunt_webgl_${text} 1 stage)
      list(GET shunt_webgl_${text} 2 macro)
      set(webgl_source ${folder}/${name}${ending})
      if(SHUNT_SPIRV_CROSS AND webgl_source IN_LIST shunt_webgl_sources)
        set(webgl_base ${base}_${text})
        list(APPEND webgl_sources ${webgl_source})
        list(APPEND translations
             COMMAND ${preprocess} -D${macro} ${webgl_source} -o ${webgl_base}.glsl
             COMMAND ${SHUNT_GLSLC} -std=450core -fshader-stage=${stage} --target-env=vulkan1.1 ${webgl_base}.glsl -o ${webgl_base}.spv
             COMMAND ${SHUNT_SPIRV_VAL} --target-env vulkan1.1 ${webgl_base}.spv
             COMMAND ${SHUNT_SPIRV_CROSS} --version 300 --es ${webgl_base}.spv --output ${base}.${text})
      else()
        list(APPEND translations COMMAND ${CMAKE_COMMAND} -E rm -f ${base}.${text})
      endif()
    endforeach()
    add_custom_command(
      OUTPUT ${base}.cpp
      BYPRODUCTS ${base}.spv
      COMMAND ${preprocess} ${source} -o ${base}.glsl
      COMMAND ${SHUNT_GLSLC} -std=450core -fshader-stage=compute --target-env=vulkan1.1 -O ${base}.glsl -o ${base}.spv
      COMMAND ${SHUNT_SPIRV_VAL} --target-env vulkan1.1 ${base}.spv
      ${translations}
      COMMAND ${CMAKE_COMMAND} -DOUT=${base}.cpp -DDIR=${shunt_shader_dir} -DSPIRV=ON -DNAMES=${name}
              "-DTEXTS=${shunt_shader_texts};${shunt_webgl_texts}" -P ${shunt_embed_shader}
      DEPENDS ${source} ${webgl_sources} ${shunt_kernel_headers} ${shunt_embed_shader}
      COMMENT "Compiling kernel ${name}"
      VERBATIM)
    list(APPEND shunt_shader_sources ${base}.cpp)
    list(APPEND shunt_shader_names ${name})
    if(NOT is_for_vulkan_alone)
      list(APPEND shunt_wgsl_inputs ${base}.spv)
    endif()
    string(APPEND shunt_shader_rows "SHUNT_SHADER(${name}, ${family})\n")
  endforeach()
  if(shunt_to_wgsl)
    set(translate ${shunt_to_wgsl} ${shunt_wgsl_inputs})
  else()
    list(TRANSFORM shunt_wgsl_inputs REPLACE "spv$" "wgsl" OUTPUT_VARIABLE stale)
    set(translate ${CMAKE_COMMAND} -E rm -f ${stale})
  endif()
  set(shunt_wgsl_source ${shunt_shader_dir}/all_wgsl.cpp)
  add_custom_command(
    OUTPUT ${shunt_wgsl_source}
    COMMAND ${translate}
    COMMAND ${CMAKE_COMMAND} -DOUT=${shunt_wgsl_source} -DDIR=${shunt_shader_dir}
            "-DNAMES=${shunt_shader_names}" -DTEXTS=wgsl -P ${shunt_embed_shader}
    DEPENDS ${shunt_wgsl_inputs} ${shunt_embed_shader} ${CMAKE_CURRENT_SOURCE_DIR}/tools/wgsl.mjs
    COMMENT "Translating all kernels to WGSL"
    VERBATIM)
else()
  message(WARNING "glslc or spirv-val is missing: this build has no shaders, so no Vulkan")
endif()
file(CONFIGURE OUTPUT ${shunt_generated_dir}/shaders.def CONTENT "${shunt_shader_rows}" @ONLY)
