#!/usr/bin/env python3
"""Generates beside processes that keep processors busy, with the threads of the automatic choice and with fewer.

busy.py SHUNT [--models 1b:Q4_K_M] [--busy 0,1,4,8] [--rounds 5] [--prompt 64] [--generate 48]
[--folder FOLDER]

For each number of busy processes, all threads, as Shunt takes them, and some smaller numbers of threads take turns in
each round. `of the best` is the median, over the rounds, of the automatic choice's tokens/s divided by those of the best
number of threads, which is the one with the best median. Needs only Python 3, Linux and the program.
"""
import argparse
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import typing

from speed import answer, model_file


@contextlib.contextmanager
def busy_processes(count: int) -> typing.Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def rates_of(options: argparse.Namespace, model: str, threads: list[str]) -> dict[str, float]:
    """Returns tokens per second by phase."""
    found = answer(options.shunt, "bench", "model", model, "--devices", "cpu:simd", "--numerics", "auto", "--prompt",
                   str(options.prompt), "--generate", str(options.generate), "--repetitions", "2", *threads)
    return {phase: found[f"{phase}_tokens_per_s"]["median"] for phase in ("prompt", "generate")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("--models", default="1b:Q4_K_M")
    parser.add_argument("--busy", default="0,1,4,8")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--generate", type=int, default=48)
    parser.add_argument("--folder")
    options = parser.parse_args()
    processors = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.folder or temporary)
        print("| model | busy processes of " + str(processors) + " | phase | automatic | best number of threads | its tokens/s "
              "| of the best |\n|---|---|---|---|---|---|---|")
        for name in options.models.split(","):
            model = model_file(options.shunt, name, folder)
            for busy in map(int, options.busy.split(",")):
                by_hand = sorted({max(1, count) for count in (processors - 1, processors - busy, processors * 3 // 4,
                                                              processors // 2)} - {processors}, reverse=True)
                rates: dict[tuple[str, int], list[float]] = {}
                with busy_processes(busy):
                    for _ in range(options.rounds):
                        for threads in [processors, *by_hand]:
                            found = rates_of(options, model, [] if threads == processors else ["--threads", str(threads)])
                            for phase, rate in found.items():
                                rates.setdefault((phase, threads), []).append(rate)
                for phase in ("prompt", "generate"):
                    best = max([processors, *by_hand], key=lambda threads: statistics.median(rates[phase, threads]))
                    ratio = statistics.median(a / b for a, b in zip(rates[phase, processors], rates[phase, best]))
                    print(f"| {name} | {busy} | {phase} | {statistics.median(rates[phase, processors]):.1f} | {best} | "
                          f"{statistics.median(rates[phase, best]):.1f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
