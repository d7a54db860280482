#!/usr/bin/env bash
# Runs a command with the hip backend on an NVIDIA GPU: HIP calls are forwarded to CUDA's driver (hip_on_cuda.cpp).
#
#   tools/gpu/hip_on_nvidia.sh COMMAND...       e.g. tools/gpu/hip_on_nvidia.sh build/shunt verify --devices hip:0
#   tools/gpu/hip_on_nvidia.sh --build FOLDER   only builds libhip_on_cuda.so there
#
# Uses the library next to this script or in ../lib (a bundle), or else builds it with the first compiler found, which
# needs a clone. It shows that the backend's calls fit a driver of HIP's form, not how AMD's behaves.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
library=libhip_on_cuda.so

die() {
  printf 'hip_on_nvidia.sh: %s\n' "$*" >&2
  exit 2
}

build() { # FOLDER
  local sources=$here/../../src compiler
  [[ -f $sources/devices/cuda/calls.def ]] || die "$library is not here, and neither are the sources to build it from"
  for compiler in c++ g++ clang++ clang++-19; do
    if command -v "$compiler" >/dev/null; then
      "$compiler" -std=c++20 -O2 -shared -fPIC -I"$sources" "$here/hip_on_cuda.cpp" -o "$1/$library" -ldl
      return
    fi
  done
  compiler=$(command -v nvcc || true)
  if [[ -z $compiler && -x /usr/local/cuda/bin/nvcc ]]; then compiler=/usr/local/cuda/bin/nvcc; fi
  [[ -n $compiler ]] || die "no C++ compiler is here"
  "$compiler" -std=c++20 -O2 -shared -Xcompiler -fPIC -cudart none -I"$sources" "$here/hip_on_cuda.cpp" -o "$1/$library" -ldl
}

if [[ $# -eq 0 ]]; then die "name a command to run"; fi
if [[ $1 == --build ]]; then
  build "${2:?a folder}"
  exit
fi
place=""
for folder in "$here" "$here/../lib"; do
  if [[ -f $folder/$library ]]; then place=$folder/$library; fi
done
if [[ -z $place ]]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  build "$folder"
  place=$folder/$library
fi
SHUNT_HIP_LIBRARY=$place "$@"
