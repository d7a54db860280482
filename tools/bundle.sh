#!/usr/bin/env bash
# bundle.sh PROGRAM FOLDER: copies PROGRAM with the libraries that not every Linux has, the bundled model, the tests'
# data and the scripts for a machine with a GPU. ./dev bundle calls this.
set -euo pipefail

program=$1
folder=$2
most_megabytes=64
# Libraries of every Linux with glibc; also libstdc++, which the bundled libraries need in any version.
everywhere='^(linux-vdso|ld-linux|libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s)[.-]'
# Driver loaders: a machine may have a GPU's driver but not these.
loaders=(libvulkan.so.1 libEGL.so.1 libGLdispatch.so.0)

say() { printf 'bundle: %s\n' "$*" >&2; }

place_of() { ldconfig -p | sed -n "s|^\t$1 (libc6,x86-64.*) => ||p" | head -n 1; }

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib" "$folder/models" "$folder/data"
install -s "$program" "$folder/bin/shunt"
ldd "$program" | while read -r name _ place _; do
  if [[ ! $name =~ $everywhere && -f $place ]]; then cp -L "$place" "$folder/lib/$name"; fi
done
for loader in "${loaders[@]}"; do
  place=$(place_of "$loader")
  if [[ -n $place ]]; then cp -L "$place" "$folder/lib/$loader"; else say "$loader is not here, so not carried"; fi
done
dawn=tools/npm/node_modules/bun-webgpu-linux-x64/libwebgpu_wrapper.so
if [[ -f $dawn ]]; then cp "$dawn" "$folder/lib/"; else say "Dawn is not here, so WebGPU is not carried"; fi
bash tools/gpu/hip_on_nvidia.sh --build "$folder/lib"
cp models/tiny-llama-q8_0.gguf "$folder/models/"
cp -r tests/data/tiny-llama-f16.gguf tests/data/tiny-llama-reference.json tests/data/architectures "$folder/data/"
cp -r tools/gpu "$folder/"
cp tools/support.py "$folder/gpu/"
cp LICENSE "$folder/"

needed=$(objdump -T "$folder"/bin/shunt "$folder"/lib/* | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
megabytes=$(du -sm "$folder" | cut -f1)
if ((megabytes > most_megabytes)); then
  say "$folder has $megabytes MB, and $most_megabytes are allowed"
  exit 1
fi
say "$folder: $megabytes MB; needs an x86-64 Linux with ${needed/_/ } or newer"
