#!/usr/bin/env bash
# fuzz.sh SECONDS NAME: replays fuzz/corpus/NAME, then fuzzes for that long. New inputs go to build/fuzz/NAME, failing
# inputs to build/fuzz/NAME-*; the repository's corpus is only read.
set -euo pipefail

seconds=$1 name=$2
program=build/asan/fuzz/${name}_fuzz
limits=(-rss_limit_mb=1024 -timeout=5 "-artifact_prefix=build/fuzz/$name-")
log=build/fuzz/$name.log
dictionary=()
if [[ -f fuzz/$name.dict ]]; then dictionary=("-dict=fuzz/$name.dict"); fi

mkdir -p "build/fuzz/$name"
if "$program" "${limits[@]}" -runs=0 "fuzz/corpus/$name" >"$log" 2>&1 &&
  "$program" "${limits[@]}" "${dictionary[@]}" "-max_total_time=$seconds" -print_final_stats=1 \
    "build/fuzz/$name" "fuzz/corpus/$name" >>"$log" 2>&1; then
  printf '%s: %d corpus files replayed, then %s runs in %s s\n' "$name" \
    "$(find "fuzz/corpus/$name" -type f | wc -l)" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$seconds"
else
  tail -n 60 "$log"
  printf '%s: FAILED; the whole output is %s\n' "$name" "$log"
  exit 1
fi
