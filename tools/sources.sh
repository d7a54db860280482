#!/usr/bin/env bash
# Lists the sources in C++, CUDA and GLSL that are formatted and linted; GLSL is near enough to C++ for clang-format.
# Tables (.def) are laid out by hand.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folders=()
for folder in include src cli bindings tests fuzz examples tools; do
  if [[ -d $folder ]]; then folders+=("$folder"); fi
done
find "${folders[@]}" -regextype posix-extended -not -path '*/node_modules/*' \
  -regex '.*\.(h|cpp|cu|cuh|comp|glsl|frag|vert)' | LC_ALL=C sort
