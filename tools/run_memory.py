#!/usr/bin/env python3
"""Measures the most memory that `shunt run` has resident, and of which kind; prints a table in MiB.

run_memory.py SHUNT MODEL.gguf... [--beside OTHER] [--prompt 512] [--generate 32] [--threads 2] [--repetitions 3]

Needs Python 3 and Linux. "all" is the peak that the system counts (ru_maxrss). Of it, pages of files (the model's, the
program's) are shared with other processes and given up when memory runs short; "anonymous" memory, the cache of keys
and values, scratch and heap, is not. Both kinds are sampled every two milliseconds. Builds take turns; figures are
medians.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time


def prompt_of(program: str, model: str, tokens: int) -> str:
    """Random words, the same in every run, of that many tokens or a few more."""
    random.seed(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(random.choices(letters, k=random.randint(1, 6))) for _ in range(tokens)]
    few, many = 1, len(words)
    while few < many:
        middle = (few + many) // 2
        done = subprocess.run([program, "tokenize", model, " ".join(words[:middle]), "--json"], capture_output=True,
                              text=True, check=True)
        few, many = (few, middle) if len(json.loads(done.stdout)["tokens"]) >= tokens else (middle + 1, many)
    return " ".join(words[:few])


def run(command: list[str]) -> dict[str, float]:
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        most = {"RssAnon": 0, "RssFile": 0}
        ended = 0
        while ended == 0:
            with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
                for line in status:
                    name, _, value = line.partition(":")
                    if name in most:
                        most[name] = max(most[name], int(value.split()[0]))
            time.sleep(0.002)
            ended, code, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode != 0:
        sys.exit(f"run_memory.py: {command[0]} run {command[2]} exits with {process.returncode}")
    return {"all": usage.ru_maxrss / 1024, "anonymous": most["RssAnon"] / 1024, "files": most["RssFile"] / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--beside", metavar="OTHER")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    programs = {"shunt": options.shunt} | ({"the other": options.beside} if options.beside else {})
    print("| model | build | all | anonymous | pages of files |")
    print("|---|---|---|---|---|")
    for model in options.models:
        prompt = prompt_of(options.shunt, model, options.prompt)
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
        for _ in range(options.repetitions):
            for name, program in programs.items():
                runs[name].append(run([program, "run", model, prompt, "-n", str(options.generate), "--ignore-eos",
                                       "--greedy", "--devices", "cpu:simd", "--threads", str(options.threads)]))
        for name, each in runs.items():
            figures = [statistics.median(one[kind] for one in each) for kind in ("all", "anonymous", "files")]
            print(f"| {os.path.basename(model)} | {name} | " + " | ".join(f"{figure:.1f}" for figure in figures) + " |")


if __name__ == "__main__":
    main()
