#!/usr/bin/env python3
"""Measures how fast a model is loaded onto an NVIDIA GPU, and what the bus and the page cache could do; prints a table,
and where the time of one more load went.

loading.py SHUNT MODEL.gguf [--device cuda:0] [--repetitions 5] [--threads 16]

Needs Python 3, the program and NVIDIA's driver. The file is read once before, so that it is in the page cache if the
machine has the memory. Figures are medians; the share is that of the bus's rate from pinned memory. The stages are
those of the program's trace: the thread that calls the device does one after the other, while others read.
"""
import argparse
import concurrent.futures
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

PIECE = 8 << 20
# The stages of the thread that calls the device, each with those that are part of it (preparing: side by side).
STAGES = {"preparing": ["reserving", "pinning"], "allocating": [], "lending": ["waiting for the device"],
          "waiting for a piece": [], "sending": ["preparing strips"], "finishing": ["freeing"]}


def bus_rate(ordinal: int, repetitions: int, size: int = 256 << 20) -> float:
    """Bytes per second of copies from pinned memory to the device."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: object) -> None:
        if result := getattr(cuda, name)(*arguments):
            sys.exit(f"loading.py: {name} failed: {result}")

    context, host, device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
    call("cuCtxSetCurrent", context)
    call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(size), 0)
    call("cuMemAlloc_v2", ctypes.byref(device), ctypes.c_size_t(size))
    rates = []
    for _ in range(repetitions + 1):  # the first one warms up
        begin = time.perf_counter()
        call("cuMemcpyHtoD_v2", device, host, ctypes.c_size_t(size))
        rates.append(size / (time.perf_counter() - begin))
    call("cuMemFree_v2", device)
    call("cuMemFreeHost", host)
    call("cuDevicePrimaryCtxRelease_v2", ordinal)
    return statistics.median(rates[1:])


def read_rate(path: pathlib.Path, threads: int, repetitions: int) -> float:
    """Bytes per second of reading the file by several threads, each into the same piece of memory again."""
    size = path.stat().st_size
    file = os.open(path, os.O_RDONLY)
    pieces = [bytearray(PIECE) for _ in range(threads)]

    def read(thread: int) -> None:
        for offset in range(thread * PIECE, size, threads * PIECE):
            os.preadv(file, [pieces[thread]], offset)

    rates = []
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for _ in range(repetitions + 1):
            begin = time.perf_counter()
            list(pool.map(read, range(threads)))
            rates.append(size / (time.perf_counter() - begin))
    os.close(file)
    return statistics.median(rates[1:])


def load(shunt: str, model: pathlib.Path, device: str, *more: str) -> dict:
    command = [shunt, "bench", "model", str(model), "--devices", device, "--prompt", "8", "--generate", "1",
               "--repetitions", "1", "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"loading.py: {' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def stages(shunt: str, model: pathlib.Path, device: str) -> list[dict]:
    """The events of one load, in the order in which they began."""
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.json"
        load(shunt, model, device, "--trace", str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    return sorted((event for event in events if event.get("cat") == "load"), key=lambda event: event["ts"])


def print_stages(events: list[dict]) -> None:
    def row(name: str, of: list[dict]) -> None:
        if of:
            took = [event["dur"] / 1e3 for event in of]
            print(f"| {name} | {len(of)} | {sum(took):.2f} | {max(took):.2f} |")

    def named(name: str) -> list[dict]:
        return [event for event in events if event["name"] == name]

    if not events:
        sys.exit("loading.py: the trace has no stages of loading; is the device one with memory of its own?")
    begin = events[0]["ts"]
    whole = max(event["ts"] + event["dur"] for event in events) - begin
    known = sum(event["dur"] for name in STAGES for event in named(name))
    sent = named("sending")
    print("| stage | times | ms | the longest |")
    print("|---|---|---|---|")
    for name, parts in STAGES.items():
        row(name, named(name))
        for part in parts:
            row(f"of this, {part}", named(part))
    print(f"| all else | | {(whole - known) / 1e3:.2f} | |")
    print(f"| the whole | | {whole / 1e3:.2f} | |")
    print(f"| until the first piece is sent | | {(sent[0]['ts'] + sent[0]['dur'] - begin) / 1e3:.2f} | |")
    print(f"| from the last piece that is sent | | {(begin + whole - sent[-1]['ts'] - sent[-1]['dur']) / 1e3:.2f} | |")
    row("reading, by other threads", named("reading"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=16)
    options = parser.parse_args()
    cached = read_rate(options.model, options.threads, options.repetitions)
    bus = bus_rate(int(options.device.partition(":")[2] or 0), options.repetitions)
    loads = [load(options.shunt, options.model, options.device) for _ in range(options.repetitions + 1)][1:]
    rate = statistics.median(each["load_bytes_per_s"] for each in loads)
    seconds = statistics.median(each["load_s"] for each in loads)
    print("| what | GB/s | s | share of the bus |")
    print("|---|---|---|---|")
    print(f"| pinned memory to {options.device} | {bus / 1e9:.1f} | | 100 % |")
    print(f"| page cache to memory, {options.threads} threads | {cached / 1e9:.1f} | | {cached / bus:.0%} |")
    print(f"| {options.model.name}: {loads[0]['loaded_bytes'] / 1e9:.2f} GB of weights "
          f"| {rate / 1e9:.1f} | {seconds:.3f} | {rate / bus:.0%} |\n")
    print_stages(stages(options.shunt, options.model, options.device))


if __name__ == "__main__":
    main()
