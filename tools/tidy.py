#!/usr/bin/env python3
"""Runs clang-tidy over a compilation database, on all cores: tidy.py BUILD_FOLDER.

Files are checked in the groups of the unity build. A clean group is checked again only when one of its files, a header
of this repository that they include, their compiler flags, .clang-tidy or clang-tidy itself changes: a hash of all
these is stored in ~/.cache/shunt-tidy, which also serves other clones. The first call installs the clang-tidy of
tidy_requirements.txt there, with pip.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import check_includes

# One pass over a SIMD source instead of one per instruction set. Unity sources include other sources.
EXTRA = ["--extra-arg=-DHWY_COMPILE_ONLY_STATIC", "--extra-arg=-Wno-unknown-warning-option",
         "--checks=-bugprone-suspicious-include"]
ROOT = pathlib.Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "tools/tidy_requirements.txt"
KEPT_DAYS = 60


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "shunt-tidy"


def installed(cache, version):
    """Returns the path of clang-tidy; fetches it from PyPI unless the cache has this version."""
    folder = cache / f"clang-tidy-{version}"
    if not folder.exists():
        print(f"clang-tidy: fetching version {version} from PyPI", file=sys.stderr)
        partial = tempfile.mkdtemp(prefix=".partial-", dir=cache)
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps",
                               "--target", partial, "-r", REQUIREMENTS], check=False)
        if done.returncode != 0:
            shutil.rmtree(partial)
            sys.exit("clang-tidy: pip could not fetch it; see its message above. It needs the package index of PyPI")
        os.rename(partial, folder)
    return folder / "clang_tidy/data/bin/clang-tidy"


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
        # A unity source, which cmake writes, includes its files by absolute paths.
        text = path.read_bytes().replace(str(ROOT).encode(), b"")
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + text + b"\0")
    return digest.hexdigest()


def is_group(entry):
    return "/Unity/" in entry["file"]


def sources_of(entry):
    """Returns the sources of an entry of the database: of a unity source, those that it includes."""
    path = pathlib.Path(entry["file"])
    if not is_group(entry):
        return [path]
    return [pathlib.Path(included) for _, included in check_includes.includes_of(path)]


def judge(program, entry, folder):
    command = [program, "--quiet", "-p", folder, *EXTRA, entry["file"]]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # Without findings, clang-tidy writes only its count of suppressed warnings, to stderr.
    output = done.stdout if done.returncode == 0 else done.stdout + done.stderr
    return done.returncode == 0 and not done.stdout.strip(), output, time.monotonic() - begin


def main():
    folder = sys.argv[1]
    version = re.search(r"clang-tidy==(\S+)", REQUIREMENTS.read_text(encoding="utf-8")).group(1)
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    program = installed(cache, version)
    entries = json.loads((pathlib.Path(folder) / "compile_commands.json").read_text(encoding="utf-8"))
    generated = str(pathlib.Path(folder).resolve()) + "/"
    entries = [entry for entry in entries
               if is_group(entry) or not os.path.abspath(entry["file"]).startswith(generated)]
    keys = {entry["file"]: key_of(entry, version) for entry in entries}
    waiting = []
    for entry in entries:
        remembered = cache / keys[entry["file"]]
        if remembered.exists():
            remembered.touch()
        else:
            waiting.append(entry)
    # Long ones first, so that no core waits for the last one.
    waiting.sort(key=lambda entry: -sum(path.stat().st_size for path in sources_of(entry)))
    failed = 0
    jobs = int(os.environ.get("JOBS") or os.cpu_count() or 1)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for entry, (clean, output, seconds) in zip(waiting, pool.map(lambda e: judge(program, e, folder), waiting)):
            if os.environ.get("TIDY_TIMES"):
                print(f"{seconds:6.1f} s {entry['file']}", file=sys.stderr)
            if clean:
                (cache / keys[entry["file"]]).touch()
            else:
                failed += 1
                print(output.replace(str(ROOT) + "/", ""), end="")
    for old in cache.iterdir():
        if old.is_file() and time.time() - old.stat().st_mtime > KEPT_DAYS * 86400:
            old.unlink(missing_ok=True)
    files = sum(len(sources_of(entry)) for entry in entries)
    print(f"clang-tidy: {files} files in {len(entries)} groups, {len(waiting)} new or changed, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
