#!/usr/bin/env bash
# Checks everything about the sources that needs no running. ./dev lint calls this.
set -euo pipefail

scripts=(dev .ci/run tools/*.sh tools/gpu/*.sh)
mapfile -t sources < <(bash tools/sources.sh)

clang-format-19 --dry-run -Werror "${sources[@]}"
shellcheck "${scripts[@]}"
python3 tools/check_includes.py
python3 tools/check_prose.py
if grep -nE '\b(TO''DO|FIX''ME|XX''X)\b' "${sources[@]}" "${scripts[@]}" tools/*.py tools/gpu/*.py CMakeLists.txt ./*/CMakeLists.txt bindings/web/*.mjs bindings/web/page/* tests/web/*.mjs; then
  echo "lint: the lines above say that they are unfinished" >&2
  exit 1
fi
if grep -rnE '\b[Jj]son::(sax_)?parse\(' src cli bindings --include='*.cpp' --include='*.h' |
  grep -vE '^src/(base/parse_json\.h|devices/sim/machine\.cpp:[0-9]+: .*sax_parse)'; then
  echo "lint: the lines above parse JSON of any depth; call parse_json (src/base/parse_json.h)" >&2
  exit 1
fi
if grep -nE 'fmt::print|std::(cout|cerr|puts|printf)\b|[,(] *(stdout|stderr)\)|\bwrite\(STD' cli/*.cpp | grep -v '^cli/output\.cpp:'; then
  echo "lint: the lines above print past the one place that keeps a terminal safe; call cli/output.h" >&2
  exit 1
fi
python3 tools/tidy.py build/lint
