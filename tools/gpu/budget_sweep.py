#!/usr/bin/env python3
"""Runs a model with more and more of a GPU's memory, and checks that more is never slower and that budgets hold. Prints
a table in Markdown.

budget_sweep.py SHUNT [--model 1b:Q8_0] [--gpu vulkan:0] [--cpu cpu:simd] [--steps 20] [--rounds 5] [--prompt 256]
[--generate 64] [--folder FOLDER] [--calibrate]

Plans may use GPU memory from nothing to 1.3 times the weights, in that many steps. The steps take turns in each round;
figures are medians over the rounds. `both` is the time to read the prompt and to generate. The last column is the speed
relative to the best smaller budget. Ends with 1 if a plan takes more than its budget. Needs only Python 3 and the
program.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile

from speed import answer, model_file


def pool_of_host(shunt: str) -> str:
    return next(device["memory_pool"] for device in answer(shunt, "devices")["devices"] if device["type"] == "cpu")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("--model", default="1b:Q8_0")
    parser.add_argument("--gpu", default="vulkan:0")
    parser.add_argument("--cpu", default="cpu:simd")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompt", type=int, default=256)
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    parser.add_argument("--calibrate", action="store_true", help="measure the devices with the model's shapes before")
    options = parser.parse_args()
    file = str(model_file(options.shunt, options.model, options.folder))
    devices = f"{options.gpu},{options.cpu}"
    if options.calibrate:
        answer(options.shunt, "calibrate", file, "--quick", "--busy", "--devices", devices)
    weights = pathlib.Path(file).stat().st_size
    context = str(max(options.prompt, options.generate))
    host = pool_of_host(options.shunt)
    budgets = [int(1.3 * weights * step / (options.steps - 1)) for step in range(options.steps)]
    calls = {budget: (file, "-c", context, "--devices", devices, "--budget", f"{options.gpu}={budget}B") for budget in budgets}

    too_much = 0
    held = {}
    for budget, call in calls.items():
        plans = answer(options.shunt, "plan", *call)
        for phase in ("prompt", "generation"):
            on_gpu = sum(use["total_bytes"] for use in plans[phase]["memory"] if use["pool"] != host)
            too_much += on_gpu > budget
        held[budget] = sum(use["weight_bytes"] for use in plans["generation"]["memory"] if use["pool"] != host)

    rates = {budget: {"prompt": [], "generate": []} for budget in budgets}
    for done in range(options.rounds):
        print(f"round {done + 1} of {options.rounds}", file=sys.stderr, flush=True)
        for budget, call in calls.items():
            result = answer(options.shunt, "bench", "model", *call, "--prompt", str(options.prompt), "--generate",
                            str(options.generate), "--repetitions", "1")
            for phase, values in rates[budget].items():
                values.append(result[f"{phase}_tokens_per_s"]["median"])

    print(f"| {options.model}, budget | weights on the GPU | prompt {options.prompt}, tokens/s | generate {options.generate}, tokens/s | "
          "both, s | of the best smaller |")
    print("|---|---|---|---|---|---|")
    best = None
    for budget, values in rates.items():
        prompt, generate = (statistics.median(values[phase]) for phase in ("prompt", "generate"))
        seconds = statistics.median(options.prompt / one + options.generate / other
                                    for one, other in zip(values["prompt"], values["generate"]))
        share = "" if best is None else f"{best / seconds:.2f}"
        print(f"| {budget / weights:.2f} | {held[budget] / weights:.2f} | {prompt:.0f} | {generate:.1f} | {seconds:.3f} | {share} |")
        best = seconds if best is None else min(best, seconds)
    if too_much:
        print(f"{too_much} plans take more than their budget", file=sys.stderr)
    return 1 if too_much else 0


if __name__ == "__main__":
    sys.exit(main())
