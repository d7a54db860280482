#!/usr/bin/env python3
"""Measures what a first token costs a program that starts while its model is not in memory; prints a table.

cold_starts.py SHUNT MODEL.gguf [--beside OTHER] [--repetitions 5]

Needs Python 3, Linux and dd. Before each cold run the file's pages are dropped, and it is checked that none is left.
Runs take turns in random order; figures are medians (least .. most). --beside measures another build, too.
"""
import argparse
import ctypes
import mmap
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import time


def share_in_memory(model: pathlib.Path) -> float:
    """The share of the file's pages that are in memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    size = model.stat().st_size
    pages = (ctypes.c_ubyte * (-(-size // mmap.PAGESIZE)))()
    file = os.open(model, os.O_RDONLY)
    address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
    os.close(file)
    if libc.mincore(address, size, pages) != 0:
        sys.exit(f"cold_starts.py: mincore failed: {os.strerror(ctypes.get_errno())}")
    libc.munmap(address, size)
    return sum(page & 1 for page in bytes(pages)) / len(pages)


def drop(model: pathlib.Path) -> None:
    file = os.open(model, os.O_RDONLY)
    os.fdatasync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)
    if share_in_memory(model) > 0.01:
        sys.exit(f"cold_starts.py: {model} stays in memory; another process may map it, or its file system is memory")


def run(command: list[str], model: pathlib.Path, is_cold: bool) -> dict[str, float]:
    if is_cold:
        drop(model)
    elif share_in_memory(model) < 0.99:
        model.read_bytes()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"cold_starts.py: {' '.join(command)}: {done.stderr.strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"seconds": seconds, "MB": (after.ru_inblock - before.ru_inblock) * 512 / 1e6,
            "major": after.ru_majflt - before.ru_majflt, "system": after.ru_stime - before.ru_stime}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--beside", metavar="OTHER")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    programs = {"shunt": options.shunt} | ({"the other": options.beside} if options.beside else {})
    first_token = ["run", str(options.model), "-p", "Hello", "-n", "1", "--devices", "cpu:simd"]
    commands = {"dd, cold": (["dd", f"if={options.model}", "of=/dev/null", "bs=8M"], True)}
    for name, program in programs.items():
        commands[f"{name}, warm"] = ([program, *first_token], False)
        commands[f"{name}, cold"] = ([program, *first_token], True)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
    for _ in range(options.repetitions):
        for name in random.sample(list(commands), len(commands)):
            command, is_cold = commands[name]
            runs[name].append(run(command, options.model, is_cold))
    print("| what | s | MB read | major faults | s in the system |")
    print("|---|---|---|---|---|")
    for name, each in runs.items():
        def median(key: str) -> float:
            return statistics.median(one[key] for one in each)  # pylint: disable=cell-var-from-loop
        seconds = sorted(one["seconds"] for one in each)
        print(f"| {name} | {median('seconds'):.2f} ({seconds[0]:.2f} .. {seconds[-1]:.2f}) | {median('MB'):.0f} "
              f"| {median('major'):.0f} | {median('system'):.2f} |")


if __name__ == "__main__":
    main()
