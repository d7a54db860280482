# Each src/ops/FAMILY/x.cu is compiled to PTX by clang, which needs no CUDA toolkit for it, and to a code object for
# AMD GPUs by hipcc; both are embedded. x.weights.cu becomes one PTX for each dtype of weights, and x.heads.cu for
# each size of heads, since drivers compile it when it is first used, and only few are. Without clang there is no PTX,
# and without hipcc no code object; `shunt devices` says so. x.sm_90.cu is for GPUs of that compute capability and
# newer, and has PTX only; x.sm_90a.cu is compiled so too, and once more for that one alone. x.matrix.cu is compiled for
# those of 7.5 and newer, and once more for those of 8.0 and newer, and for AMD GPUs that have matrix instructions for
# halves. x.early.cu is compiled as x.cu and as x.sm_90.cu, whose kernels may start before the kernel ahead of them has
# ended. Each PTX is of the oldest version that knows its instructions, so old drivers accept it too.
find_program(SHUNT_CUDA_CLANG NAMES clang++-19 clang++-20 clang++-18)
find_program(SHUNT_HIPCC hipcc)
set(SHUNT_CUDA_ARCHITECTURE sm_75 CACHE STRING "Oldest NVIDIA GPU that the PTX is for")
set(SHUNT_HIP_ARCHITECTURES gfx90a gfx1030 gfx1100 CACHE STRING "AMD GPUs that code objects are for")
file(GLOB shunt_cuda_kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/*/*.cu)
set(shunt_cuda_flags -std=c++20 -O3 -Wall -Wextra -Werror -I${CMAKE_CURRENT_SOURCE_DIR}/src)
set(shunt_ptx_of_75 65)  # versions of PTX, by compute capability
set(shunt_ptx_of_80 70)
set(shunt_ptx_of_90 80)
file(MAKE_DIRECTORY ${shunt_generated_dir}/cuda)
set(shunt_cuda_rows "")
set(shunt_cuda_sources "")

# Embeds one compiled form of a source, or nothing if its compiler is missing or there is no COMMAND.
function(shunt_embed_kernel name form text)
  set(base ${shunt_generated_dir}/cuda/${name}_${form})
  set(file "")
  if(ARGN AND shunt_${form}_compile)
    set(file ${base}.bin)
    set(compile COMMAND ${ARGN} ${shunt_cuda_flags} -MD -MF ${base}.d -MT ${base}.cpp ${shunt_cuda_source} -o ${file}
                DEPFILE ${base}.d)
  endif()
  add_custom_command(
    OUTPUT ${base}.cpp
    ${compile}
    COMMAND ${CMAKE_COMMAND} -DNAME=${name}_${form} -DFILE=${file} -DOUT=${base}.cpp -DTEXT=${text}
            -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_bytes.cmake
    DEPENDS ${shunt_cuda_source} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_bytes.cmake
    COMMENT "Compiling kernel ${name} (${form})"
    VERBATIM)
  set(shunt_cuda_sources ${shunt_cuda_sources} ${base}.cpp PARENT_SCOPE)
endfunction()

file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/dtypes.def shunt_WEIGHT_parts REGEX "^SHUNT_DTYPE.*(floating|quantized)")
list(TRANSFORM shunt_WEIGHT_parts REPLACE "SHUNT_DTYPE\\(([^,]*),.*" "\\1")

file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/each_head.cuh shunt_HEAD_parts REGEX "^SHUNT_EXPANDED.[0-9]+.$")
list(TRANSFORM shunt_HEAD_parts REPLACE "[^0-9]" "")

set(shunt_ptx_compile "")
if(SHUNT_CUDA_CLANG)
  # Products and sums are fused unless a pragma says otherwise, as hipcc does by default.
  set(shunt_ptx_compile ${CMAKE_CXX_COMPILER_LAUNCHER} ${SHUNT_CUDA_CLANG} -x cuda -nocudainc -nocudalib --cuda-device-only
      -Wno-unknown-cuda-version -ffp-contract=fast-honor-pragmas -S)
endif()
set(shunt_hip_options --cuda-device-only -nogpulib -nogpuinc -c -x hip)
set(shunt_code_object_compile "")
if(SHUNT_HIPCC)
  # Kernels need no header or library of AMD's, which Debian does not have for gfx11.
  # hipcc queries this machine's GPUs although it is told which to compile for, and leaves temporary folders behind, which
  # go when cmake runs again. It is a script, so ccache is told which compiler it calls; ccache could not preprocess for
  # several GPUs in one call.
  set(shunt_hip_temporary ${shunt_generated_dir}/hip)
  file(REMOVE_RECURSE ${shunt_hip_temporary})
  file(MAKE_DIRECTORY ${shunt_hip_temporary})
  execute_process(COMMAND ${SHUNT_HIPCC} --version OUTPUT_VARIABLE shunt_hipcc_version)
  # For gfx11, clang 15 leaves half of 256 registers unused, since some instructions on 16 bits cannot name them, and keeps
  # values of large kernels in memory. A test reads the code for instructions that name them all the same. The pass that
  # inserts hints on delays, for gfx11 as well, corrupts clang 15's heap now and then.
  set(shunt_more_options "")
  if(shunt_hipcc_version MATCHES "clang version 15")
    set(shunt_more_options -mllvm -amdgpu-limit-to-128-vgprs=0 -mllvm -amdgpu-enable-delay-alu=0)
  endif()
  string(SHA256 shunt_hipcc_version "${shunt_hipcc_version}")
  set(shunt_code_object_compile
      ${CMAKE_COMMAND} -E env HIP_PLATFORM=amd HCC_AMDGPU_TARGET=gfx90a TMPDIR=${shunt_hip_temporary}
      CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK=string:${shunt_hipcc_version} CCACHE_DEPEND=1
      ${CMAKE_CXX_COMPILER_LAUNCHER} ${SHUNT_HIPCC} ${shunt_hip_options} ${shunt_more_options})
  set(shunt_hip_targets ${SHUNT_HIP_ARCHITECTURES})
  list(TRANSFORM shunt_hip_targets PREPEND --offload-arch=)
  set(shunt_hip_matrix_targets ${shunt_hip_targets})
  list(FILTER shunt_hip_matrix_targets INCLUDE REGEX "gfx(908|90a|94|11)")
endif()

# Embeds the PTX of a source for one architecture, one for each of its parts, and appends their rows.
function(shunt_embed_ptx architecture)
  set(needs "0, false")
  set(target --cuda-gpu-arch=${SHUNT_CUDA_ARCHITECTURE} --cuda-feature=+ptx63)
  if(architecture MATCHES "^([0-9]+)(a?)$")
    set(is_for_one false)
    if(CMAKE_MATCH_2)
      set(is_for_one true)
    endif()
    set(needs "${CMAKE_MATCH_1}, ${is_for_one}")
    set(target --cuda-gpu-arch=sm_${architecture} --cuda-feature=+ptx${shunt_ptx_of_${CMAKE_MATCH_1}})
  endif()
  set(parts " ")
  set(kind "")
  if(shunt_cuda_source MATCHES "\\.(weight|head)s\\.cu$")
    string(TOUPPER ${CMAKE_MATCH_1} kind)
    set(parts ${shunt_${kind}_parts})
  endif()
  foreach(part IN LISTS parts)
    set(kernels ${name})
    set(define "")
    if(kind)
      set(kernels ${name}_${part})
      set(define -DSHUNT_${kind}=${part})
    endif()
    shunt_embed_kernel(${kernels}_${architecture} ptx ON ${shunt_ptx_compile} ${target} ${define})
    string(APPEND shunt_cuda_rows
           "SHUNT_CUDA_MODULE(${kernels}_${architecture}, ${kernels}, ${name}, ${family}, ${part}, ${needs})\n")
  endforeach()
  set(shunt_cuda_rows ${shunt_cuda_rows} PARENT_SCOPE)
  set(shunt_cuda_sources ${shunt_cuda_sources} PARENT_SCOPE)
endfunction()

if(shunt_ptx_compile OR shunt_code_object_compile)
  foreach(shunt_cuda_source IN LISTS shunt_cuda_kernels)
    get_filename_component(name ${shunt_cuda_source} NAME_WE)
    get_filename_component(family ${shunt_cuda_source} DIRECTORY)
    get_filename_component(family ${family} NAME)
    set(hip_targets ${shunt_hip_targets})
    set(architectures oldest)
    if(shunt_cuda_source MATCHES "\\.sm_([0-9]+)(a?)\\.")
      set(architectures ${CMAKE_MATCH_1})
      if(CMAKE_MATCH_2)
        list(APPEND architectures ${CMAKE_MATCH_1}a)
      endif()
      set(hip_targets "")
    elseif(shunt_cuda_source MATCHES "\\.matrix\\.")
      set(architectures 75 80)
      set(hip_targets ${shunt_hip_matrix_targets})
    endif()
    if(shunt_cuda_source MATCHES "\\.early\\.")
      list(APPEND architectures 90)
    endif()
    set(for_hip "")
    if(hip_targets)
      set(for_hip ${shunt_code_object_compile} ${hip_targets})
    endif()
    shunt_embed_kernel(${name} code_object OFF ${for_hip})
    foreach(architecture IN LISTS architectures)
      shunt_embed_ptx(${architecture})
    endforeach()
  endforeach()
endif()
if(NOT shunt_ptx_compile)
  message(WARNING "clang++-19 is missing: this build has no kernels for CUDA")
endif()
file(CONFIGURE OUTPUT ${shunt_generated_dir}/cuda_modules.def CONTENT "${shunt_cuda_rows}" @ONLY)
