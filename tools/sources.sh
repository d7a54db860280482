#!/usr/bin/env bash
# Lists the C++ sources that are formatted and linted. Tables (.def) are laid out by hand.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folders=()
for folder in include src cli tests fuzz examples; do
  if [[ -d $folder ]]; then folders+=("$folder"); fi
done
find "${folders[@]}" -name '*.h' -o -name '*.cpp' | LC_ALL=C sort
