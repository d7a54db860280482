# Toolchain: WebAssembly for browsers, by clang 19 with Debian's WASI libraries. The module is a reactor: it has no
# main, and a page calls its exports. There are no threads and no exceptions.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
set(CMAKE_CXX_FLAGS_INIT "-fno-exceptions -msimd128")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-mexec-model=reactor")
set(SHUNT_WEB ON)
