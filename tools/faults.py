#!/usr/bin/env python3
"""Runs a model on devices with injected faults, and checks docs/failures.md: whatever fails, a run ends in time, with
its fault-free text or with an error that says why.

python3 tools/faults.py build/shunt --count 5000 --seed 1 --jobs 2

Each case has a number. From it and the seed it draws up to four devices of this machine, the strategy, budgets, a
timeout and up to three faults (SHUNT_FAULTS). --first repeats a failed case.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / "models/tiny-llama-q8_0.gguf"
RUN = ("run", str(MODEL), "Once", "-n", "4", "--greedy", "--threads", "1")
# Far above the time of any of these runs: one that is still running hangs.
SECONDS = 300
# Kinds and targets of docs/failures.md, with numbers up to about what one device reaches in a run. Silently wrong
# results are a separate kind, as only audits find them.
FAULTS = {
    "oom after {} allocations": 30,
    "lost at op {}": 2000,
    "hang at op {}": 2000,
    "error at op {}": 2000,
    "nonfinite at op {}": 2000,
    "lost at program {}": 6,
    "error at program {}": 6,
    "lost at transfer {}": 150,
    "error at transfer {}": 150,
}
MOST_DEVICES, MOST_FAULTS = 4, 3


def devices_here(program):
    answer = subprocess.run([program, "devices", "--json"], capture_output=True, text=True, timeout=SECONDS, check=True)
    # Simulated devices exist once they are named.
    return [device["id"] for device in json.loads(answer.stdout)["devices"]] + ["sim:0", "sim:1"]


def case(number, seed, here):
    """Returns the environment and the arguments of a case."""
    draw = random.Random(f"{seed}:{number}")
    chosen = draw.sample(here, min(len(here), 1 + draw.randrange(MOST_DEVICES)))
    arguments = ["--devices", ",".join(chosen)]
    if draw.random() < 0.05:
        # A device with only wrong results, while every step is audited.
        return {"SHUNT_FAULTS": "sim:0 wrong after 0 ops"}, ["--devices", "sim:0,cpu:scalar", "--strategy", "gpu", "--audit=1"]
    faults = []
    for _ in range(1 + draw.randrange(MOST_FAULTS)):
        fault, most = draw.choice(list(FAULTS.items()))
        faults.append(f"{draw.choice(chosen)} {fault.format(draw.randrange(draw.choice([min(most, 20), most])))}")
    strategy = draw.choice(["auto", "gpu", "cpu", "layers"])
    arguments += ["--strategy", strategy]
    if draw.random() < 0.3:
        arguments += ["--budget", f"{draw.choice(chosen)}={draw.choice([1, 3, 6, 20])}MiB"]
    hangs = any(" hang " in fault for fault in faults)
    if hangs or draw.random() < 0.2:
        # Short timeouts end programs that are really in flight.
        arguments += ["--timeout", draw.choice(["0.5", "2"] if hangs else ["0.02", "0.1", "1"])]
    if draw.random() < 0.2:
        arguments += ["--strict"]
    if draw.random() < 0.1:
        arguments += ["--audit"]
    return {"SHUNT_FAULTS": ", ".join(faults)}, arguments


def complaint_about(program, whole, faults, arguments):
    """Returns what is wrong with the run, or None, and how it ended."""
    try:
        done = subprocess.run([program, *RUN, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False,
                              env={**os.environ, **faults})
    except subprocess.TimeoutExpired:
        return f"it did not end within {SECONDS} s", "hung"
    if done.returncode == 0:
        return (None if done.stdout == whole else f"the text is {done.stdout!r}, must be {whole!r}"), "text"
    if done.returncode != 1:
        return f"it ended with {done.returncode}: {done.stderr[-2000:]}", "ended"
    # Standard error may begin with notices; the error comes last.
    return (None if "shunt: " in done.stderr else f"it does not say why it failed: {done.stderr!r}"), "error"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=100, help="how many cases [100]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case [0]")
    parser.add_argument("--devices", help="only these, with commas between [all here]")
    parser.add_argument("--jobs", type=int, default=1, help="cases at the same time [1]")
    options = parser.parse_args()
    here = options.devices.split(",") if options.devices else devices_here(options.program)
    healthy = subprocess.run([options.program, *RUN, "--devices", "cpu:scalar"], capture_output=True, text=True,
                             timeout=SECONDS, check=True)
    outcomes, wrong = collections.Counter(), 0

    def run(number):
        faults, arguments = case(number, options.seed, here)
        return number, faults, arguments, *complaint_about(options.program, healthy.stdout, faults, arguments)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for number, faults, arguments, complaint, outcome in pool.map(
                run, range(options.first, options.first + options.count)):
            outcomes[outcome] += 1
            if complaint is not None:
                wrong += 1
                print(f"case {number}: SHUNT_FAULTS='{faults['SHUNT_FAULTS']}' {options.program} {' '.join(RUN)} "
                      f"{' '.join(arguments)}\n  {complaint}", flush=True)
            if sum(outcomes.values()) % 500 == 0:
                print(f"{sum(outcomes.values())} cases, {wrong} wrong", flush=True)
    print(f"seed {options.seed}, {sum(outcomes.values())} cases on {', '.join(here)}: {outcomes['text']} ended with the "
          f"text, {outcomes['error']} with an error, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
