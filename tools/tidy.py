#!/usr/bin/env python3
"""Runs clang-tidy over a compilation database, on all cores: tidy.py BUILD_FOLDER.

A clean file is checked again only when it, a header of this repository that it includes, its compiler flags,
.clang-tidy or clang-tidy itself changes: a hash of all these is stored in ~/.cache/shunt-tidy, which also serves other
clones.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import check_includes

TIDY = "clang-tidy-19"
# One pass over a SIMD source instead of one per instruction set.
EXTRA = ["--extra-arg=-DHWY_COMPILE_ONLY_STATIC", "--extra-arg=-Wno-unknown-warning-option"]
ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT_DAYS = 60


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "shunt-tidy"


def files_below(path, seen):
    """Adds to `seen` the file and every file of this repository that it includes, directly or not."""
    if path in seen:
        return
    seen.add(path)
    for _, included in check_includes.includes_of(path):
        target = check_includes.resolve(ROOT, included)
        if target is None and (path.parent / included).is_file():
            target = path.parent / included
        if target is not None:
            files_below(target, seen)


def key_of(entry, version):
    """Hashes what decides the verdict on one entry of the database; equal in every clone."""
    digest = hashlib.sha256()
    seen = set()
    files_below(pathlib.Path(entry["file"]), seen)
    flags = re.sub(r" -o \S+", "", entry["command"]).replace(str(ROOT), "")
    for text in (version, " ".join(EXTRA), flags, (ROOT / ".clang-tidy").read_text(encoding="utf-8")):
        digest.update(text.encode() + b"\0")
    for path in sorted(seen):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def judge(entry, folder):
    command = [TIDY, "--quiet", "-p", folder, *EXTRA, entry["file"]]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # Without findings, clang-tidy writes only its count of suppressed warnings, to stderr.
    output = done.stdout if done.returncode == 0 else done.stdout + done.stderr
    return done.returncode == 0 and not done.stdout.strip(), output, time.monotonic() - begin


def main():
    folder = sys.argv[1]
    version = subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"version (\S+)", version).group(1)
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    entries = json.loads((pathlib.Path(folder) / "compile_commands.json").read_text(encoding="utf-8"))
    generated = str(pathlib.Path(folder).resolve()) + "/"
    entries = [entry for entry in entries if not os.path.abspath(entry["file"]).startswith(generated)]
    keys = {entry["file"]: key_of(entry, version) for entry in entries}
    waiting = []
    for entry in entries:
        remembered = cache / keys[entry["file"]]
        if remembered.exists():
            remembered.touch()
        else:
            waiting.append(entry)
    # Long ones first, so that no core waits for the last one.
    waiting.sort(key=lambda entry: -os.path.getsize(entry["file"]))
    failed = 0
    jobs = int(os.environ.get("JOBS") or os.cpu_count() or 1)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for entry, (clean, output, seconds) in zip(waiting, pool.map(lambda e: judge(e, folder), waiting)):
            if os.environ.get("TIDY_TIMES"):
                print(f"{seconds:6.1f} s {entry['file']}", file=sys.stderr)
            if clean:
                (cache / keys[entry["file"]]).touch()
            else:
                failed += 1
                print(output.replace(str(ROOT) + "/", ""), end="")
    for old in cache.iterdir():
        if time.time() - old.stat().st_mtime > KEPT_DAYS * 86400:
            old.unlink(missing_ok=True)
    print(f"clang-tidy: {len(entries)} files, {len(waiting)} new or changed, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
