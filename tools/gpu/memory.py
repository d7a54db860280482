#!/usr/bin/env python3
"""Compares the memory that models take on an NVIDIA GPU with what shunt plan says; prints a table in Markdown.

memory.py SHUNT [--models 1b:Q4_K_M,8b:Q4_K_M] [--context 4096] [--folder FOLDER]

Needs Python 3, the program and nvidia-smi. Models are made in FOLDER, which must have room for them, and stay there.
Each reads a prompt of 900 tokens or more and generates 200 tokens, while the memory of the process is looked at. That of
a tiny model is subtracted, which is nearly all the driver's own, so that weights, cache, values and scratch remain.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from speed import model_file, run

PROMPT = " ".join(["hello"] * 900)


def most_used(*command: str) -> int:
    """Returns the most MiB that nvidia-smi saw while the command ran."""
    most = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            words = run("nvidia-smi", "--query-compute-apps=used_memory", "--format=csv,noheader,nounits").split()
            most = max([most, *(int(word) for word in words if word.isdigit())])
            time.sleep(0.02)
        if process.returncode != 0:
            sys.exit(f"memory.py: {' '.join(command)}: {process.stderr.read().strip()}")
    return most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("--models", default="1b:Q4_K_M,8b:Q4_K_M")
    parser.add_argument("--context", default="4096")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    options = parser.parse_args()
    common = ("--devices", "cuda:0", "--ignore-eos")
    tiny = model_file(options.shunt, "micro:Q8_0", options.folder)
    driver = most_used(options.shunt, "run", tiny, "hello", "-n", "100", "-c", "256", *common)
    print("| model | MiB on the GPU, beside the driver's | planned | weights, cache and values | of the plan | of those |")
    print("|---|---|---|---|---|---|")
    for model in options.models.split(","):
        file = model_file(options.shunt, model, options.folder)
        taken = most_used(options.shunt, "run", file, PROMPT, "-n", "200", "-c", options.context, *common) - driver
        plan = json.loads(run(options.shunt, "plan", file, "--devices", "cuda:0", "-c", options.context, "--tokens", "2048",
                              "--json"))["memory"]
        needed = (plan["weights_bytes"] + plan["cache_bytes"] + plan["arena_bytes"]) / 2**20
        planned = needed + plan["scratch_bytes"] / 2**20
        print(f"| {model} | {taken} | {planned:.0f} | {needed:.0f} | {taken / planned:.3f} | {taken / needed:.3f} |", flush=True)


if __name__ == "__main__":
    main()
