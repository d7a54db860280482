#!/usr/bin/env bash
# Checks whether a GPU computes correctly, without network or package manager, and prints one table.
#
#   tools/gpu/conformance.sh PROGRAM [DEVICE [FOLDER]]     DEVICE [cuda:0]; the output of each check goes to FOLDER
#
# Checks that the device exists; every op against the reference (with Python 3; FOLDER/support.json gets the record for
# docs/support.json of a clone); that the trained model gives the text of cpu:scalar; and, with the CUDA toolkit's
# compute-sanitizer (in PATH, in /usr/local/cuda or named by COMPUTE_SANITIZER), that kernels stay within their memory
# and do not race. With SHUNT_CUDA_TARGET=80 in the environment, a newer GPU checks the kernels of older ones. Ends with
# 0 if all checks passed, 1 if one failed, 2 if one could not be made.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=${1:?the program shunt}
device=${2:-cuda:0}
folder=${3:-$(mktemp -d)}
mkdir -p "$folder"
status=0
table=""

row() { # CHECK RESULT WORDS
  table+=$(printf '| %-22s | %-7s | %s |' "$1" "$2" "$3")$'\n'
  printf '%s: %s\n' "$1" "$2" >&2
  if [[ $2 == FAILED ]]; then status=1; fi
  if [[ $2 == 'not run' && $status -eq 0 ]]; then status=2; fi
}

# The most informative line of a check's output: the last one that is not empty.
last_line() { grep -v '^[[:space:]]*$' "$1" | tail -n 1 | cut -c1-140; }

check() { # NAME COMMAND...
  local name=$1 output=$folder/${1// /_}.txt begin=$SECONDS result=ok
  shift
  "$@" >"$output" 2>&1 </dev/null || result=FAILED
  row "$name" "$result" "$(last_line "$output") ($((SECONDS - begin)) s)"
}

file_of() { # NAME: in a bundle, or in a clone
  local place
  for place in "$here/../data" "$here/../models" "$here/../../tests/data" "$here/../../models"; do
    if [[ -f $place/$1 ]]; then
      printf '%s\n' "$place/$1"
      return
    fi
  done
}

# shellcheck disable=SC2317 # called through check
has_device() {
  "$program" devices >"$folder/all_devices.txt" || return 1
  cat "$folder/all_devices.txt"
  if ! grep "^$device " "$folder/all_devices.txt"; then
    grep "^${device%%:*}: absent" "$folder/all_devices.txt"
    return 1
  fi
}

# shellcheck disable=SC2317 # called through check
same_text() { # FILE
  local text=("Once upon a time, there was a little girl named" -n 24 --greedy -c 128 --numerics exact) mine exact
  mine=$("$program" run "$1" "${text[@]}" --devices "$device") || return 1
  exact=$("$program" run "$1" "${text[@]}" --devices cpu:scalar) || return 1
  printf 'cpu:scalar: %s\n%s: %s\n' "$exact" "$device" "$mine"
  [[ $mine == "$exact" ]]
}

check devices has_device
support=$here/support.py # in a bundle, or in a clone
if [[ ! -f $support ]]; then support=$here/../support.py; fi
check verify python3 "$support" --record "$program" --devices "$device" --to "$folder/support.json"
for name in tiny-llama-f16.gguf tiny-llama-q8_0.gguf; do
  file=$(file_of "$name")
  if [[ -n $file ]]; then
    check "text $name" same_text "$file"
  else
    row "text $name" 'not run' "$name is neither in a bundle nor in a clone"
  fi
done

sanitizer=${COMPUTE_SANITIZER:-$(command -v compute-sanitizer || true)}
if [[ -z $sanitizer ]]; then
  for place in /usr/local/cuda/bin /usr/local/cuda-*/bin; do
    if [[ -x $place/compute-sanitizer ]]; then sanitizer=$place/compute-sanitizer; fi
  done
fi
for tool in memcheck racecheck; do
  if [[ -n $sanitizer ]]; then
    check "$tool" "$sanitizer" --tool "$tool" --error-exitcode 1 "$program" verify --devices "$device"
  else
    row "$tool" 'not run' "compute-sanitizer is not here; it is part of the CUDA toolkit"
  fi
done

printf '\n| %-22s | %-7s | what it said (%s) |\n|---|---|---|\n%s\nThe output of each check is in %s.\n' \
  check result "$device" "$table" "$folder"
exit "$status"
