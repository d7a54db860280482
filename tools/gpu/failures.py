#!/usr/bin/env python3
"""What becomes of a model's logits when its device fails: a table in Markdown.

failures.py SHUNT MODEL [--devices vulkan:0,cuda:0] [--beside cpu:simd] [--cases 20] [--tokens 48]

Each case lets the device fail in one of five phases, while the model reads a text, and
compares the logits along it with those of the scalar processor (shunt eval --against). Needs nothing but Python 3 and the program.
"""
import argparse
import os
import random
import re
import subprocess

PHASES = {
    "load": ("oom after {} allocations", "lost at transfer {}", "error at transfer {}"),
    "plan": ("lost at program 0", "error at program 0"),
    "transfer": ("lost at transfer {}", "error at transfer {}"),
    "prompt": ("lost at op {}", "hang at op {}", "error at op {}", "nonfinite at op {}"),
    "generation": ("lost at op {}", "hang at op {}", "error at op {}", "nonfinite at op {}"),
}
LEAST = {"load": 0, "plan": 0, "transfer": 80, "prompt": 0, "generation": 60}
RANGE = {"load": 8, "plan": 1, "transfer": 40, "prompt": 50, "generation": 400}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("model")
    parser.add_argument("--devices", default="vulkan:0,cuda:0")
    parser.add_argument("--beside", default="cpu:simd")
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=48)
    options = parser.parse_args()
    print("| device | phase | cases | failed as told | logits as they should be |")
    print("|---|---|---|---|---|")
    for device in options.devices.split(","):
        counts = {phase: [0, 0, 0] for phase in PHASES}
        for case in range(options.cases):
            chance = random.Random(case)
            phase = list(PHASES)[case % len(PHASES)]
            fault = chance.choice(PHASES[phase]).format(LEAST[phase] + chance.randrange(RANGE[phase]))
            tokens = " ".join(str(chance.randrange(10, 250)) for _ in range(options.tokens))
            result = subprocess.run(
                [options.shunt, "eval", options.model, "--tokens", tokens, "--against", "cpu:scalar", "--devices",
                 f"{device},{options.beside}", "--strategy", "layers" if case % 2 else "gpu", "--timeout", "5"],
                env={**os.environ, "SHUNT_FAULTS": f"{device} {fault}"}, capture_output=True, text=True, timeout=120, check=False)
            struck = re.search(" failed, |less to do", result.stderr) is not None
            counts[phase][0] += 1
            counts[phase][1] += struck
            counts[phase][2] += result.returncode == 0
            if result.returncode != 0:
                print(f"{device} {fault}: {result.stdout[-300:]} {result.stderr[-600:]}")
        for phase, (cases, struck, right) in counts.items():
            print(f"| {device} | {phase} | {cases} | {struck} | {right} |")


if __name__ == "__main__":
    main()
