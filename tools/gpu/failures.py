#!/usr/bin/env python3
"""Compares a model's text when its device fails with the text without failures, as a table in Markdown.

failures.py SHUNT MODEL [--devices vulkan:0,cuda:0] [--beside cpu:simd] [--cases 20] [--tokens 40]

Each case makes the device fail in one of five phases while it generates greedily, and compares the text with that of
the scalar processor. Needs only Python 3 and the program.
"""
import argparse
import os
import random
import re
import subprocess
import sys

OP_FAULTS = ("lost at op {}", "hang at op {}", "error at op {}", "nonfinite at op {}")
# Faults by phase, with the highest numbers they take.
PHASES = {
    "load": (("oom after {} allocations", "lost at transfer {}", "error at transfer {}"), range(0, 8)),
    "plan": (("lost at program {}", "error at program {}"), range(0, 2)),
    "transfer": (("lost at transfer {}", "error at transfer {}"), range(70, 110)),
    "prompt": (OP_FAULTS, range(0, 30)),
    "generation": (OP_FAULTS, range(150, 900)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("model")
    parser.add_argument("--devices", default="vulkan:0,cuda:0")
    parser.add_argument("--beside", default="cpu:simd")
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=40)
    options = parser.parse_args()

    def run(devices: str, *more: str, faults: str = "") -> subprocess.CompletedProcess:
        return subprocess.run(
            [options.shunt, "run", options.model, "Once upon a time", "-n", str(options.tokens), "--greedy", "--devices", devices,
             "--timeout", "5", *more],
            env={**os.environ, "SHUNT_FAULTS": faults}, capture_output=True, text=True, timeout=120, check=False)

    exact = run("cpu:scalar")
    if exact.returncode != 0 or not exact.stdout.strip():
        sys.exit(f"failures.py: cpu:scalar gives no text to compare with: {exact.stderr.strip()}")
    text = exact.stdout
    print("| device | phase | cases | failed as told | text of cpu:scalar |")
    print("|---|---|---|---|---|")
    for device in options.devices.split(","):
        counts = {phase: [0, 0, 0] for phase in PHASES}
        for case in range(options.cases):
            chance = random.Random(case)
            phase = list(PHASES)[case % len(PHASES)]
            faults, numbers = PHASES[phase]
            fault = f"{device} " + chance.choice(faults).format(chance.choice(numbers))
            result = run(f"{device},{options.beside}", "--strategy", "layers" if case % 2 else "gpu", faults=fault)
            struck = re.search(" failed, |less to do", result.stderr) is not None
            counts[phase][0] += 1
            counts[phase][1] += struck
            counts[phase][2] += result.stdout == text
            if result.stdout != text:
                print(f"{fault}: {result.stdout} {result.stderr}")
        for phase, (cases, struck, right) in counts.items():
            print(f"| {device} | {phase} | {cases} | {struck} | {right} |")


if __name__ == "__main__":
    main()
