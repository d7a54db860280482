#!/usr/bin/env python3
"""Compares what Shunt chooses by itself with every choice by hand, as tables in Markdown.

choices.py SHUNT [--models 168m:Q8_0,1b:Q8_0,FILE.gguf] [--devices cuda:0,vulkan:0,cpu:simd] [--threads 1,2,4]
[--parts 0.25,0.5,0.75] [--budgets 0.5,0.9] [--rounds 5] [--prompt 128] [--generate 32] [--folder FOLDER] [--calibrate]

Each model reads a prompt and generates, once for each choice in each round, with `bench model`. The automatic choice has
no option but, with --budgets, a budget for each GPU of --devices: these parts of the model's weights, one after the other. By hand
there are:

- each device alone, of every API (--devices; otherwise all but emulated ones);
- the processor with fewer threads (--threads; otherwise 1, 2, 4 and so on);
- each GPU with the processor: with memory for these parts of the weights, or of the budget (--parts), by `--strategy
  layers`, and by `--strategy gpu`.

A choice that fails, for lack of memory say, is not run again. The tables have medians over
the rounds. `automatic / best` is the speed of the automatic choice in relation to the best one by hand: the median over
the rounds, and its 95 % confidence interval (rank interval; with fewer than 6 rounds it spans all of them and is less
sure). Needs only Python 3 and the program.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from speed import answer, model_file, numbers

AUTOMATIC = "automatic"
HOST = "cpu:"  # what the ids of processors begin with


def interval(values: list[float]) -> tuple[float, float]:
    """The median's confidence interval, at least 95 % for 6 values or more."""
    ordered = sorted(values)
    count = len(ordered)
    outside, cut = 0.0, 0
    while cut < count // 2 and (outside := outside + 2 * math.comb(count, cut) / 2**count) <= 0.05:
        cut += 1
    return ordered[max(cut - 1, 0)], ordered[count - max(cut, 1)]


def devices_of(shunt: str) -> list[str]:
    """The devices that a user could name, without emulated ones and the scalar reference."""
    return [device["id"] for device in answer(shunt, "devices")["devices"]
            if not device["emulated"] and device["id"] != "cpu:scalar"]


def budget_of(gpu: str, most: int | None) -> list[str]:
    return [] if most is None else ["--budget", f"{gpu}={most}B"]


def choices_of(devices: list[str], threads: list[int], parts: list[float], weights: int, most: int | None) -> dict[str, list[str]]:
    """The options of each choice, by what the table calls it. GPUs have at most so many bytes."""
    processors = [device for device in devices if device.startswith(HOST)]
    gpus = [device for device in devices if device not in processors]
    choices = {AUTOMATIC: [option for gpu in gpus for option in budget_of(gpu, most)]}
    for device in devices:
        choices[device] = ["--devices", device, *(budget_of(device, most) if device in gpus else [])]
    for processor in processors[:1]:
        for count in threads:
            choices[f"{processor}, {count} thread{'' if count == 1 else 's'}"] = ["--devices", processor, "--threads", str(count)]
        for gpu in gpus:
            both = ["--devices", f"{gpu},{processor}"]
            choices[f"{gpu} and {processor}"] = [*both, *budget_of(gpu, most)]
            for part in parts:
                of_what = "weights" if most is None else "the budget"
                choices[f"{gpu} for {part:.0%} of {of_what}, {processor}"] = [*both, *budget_of(gpu, int(part * (most or weights)))]
            for strategy, name in (("layers", f"{gpu} and {processor} by layers"), ("gpu", f"{gpu} first, {processor}")):
                choices[name] = [*both, *budget_of(gpu, most), "--strategy", strategy]
    return choices


def fewer_threads() -> list[int]:
    most = len(os.sched_getaffinity(0))
    return [2**power for power in range(most.bit_length()) if 2**power < most]


class Choice:
    """What was measured of a choice: by round, None if it failed."""

    def __init__(self, call: list[str]) -> None:
        self.call, self.rounds, self.why = call, [], ""

    def measure(self, options: argparse.Namespace) -> None:
        if self.why:
            return
        done = subprocess.run([*self.call, "--json"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.why = done.stderr.strip().removeprefix("shunt: ").splitlines()[0]
            return
        result = json.loads(done.stdout)
        rates = {phase: result[f"{phase}_tokens_per_s"]["median"] for phase in ("prompt", "generate")}
        both_ms = 1e3 * (options.prompt / rates["prompt"] + options.generate / rates["generate"])
        self.rounds.append({**rates, "ms": both_ms, "devices": ", ".join(result["devices"])})

    def median(self, what: str) -> float:
        return statistics.median(each[what] for each in self.rounds)


def table_of(model: str, choices: dict[str, Choice], options: argparse.Namespace) -> str:
    lines = [f"| {model} | ran on | prompt {options.prompt}, tokens/s | generate {options.generate}, tokens/s | both, ms |",
             "|---|---|---|---|---|"]
    whole = {name: choice for name, choice in choices.items() if not choice.why}
    for name, choice in sorted(whole.items(), key=lambda each: each[1].median("ms")):
        lines.append(f"| {name} | {choice.rounds[-1]['devices']} | {choice.median('prompt'):.1f} | {choice.median('generate'):.1f} | "
                     f"{choice.median('ms'):.1f} |")
    lines += [f"| {name} | failed: {choice.why} | | | |" for name, choice in choices.items() if choice.why]
    return "\n".join(lines)


def verdict_of(choices: dict[str, Choice]) -> str:
    automatic = choices[AUTOMATIC]
    by_hand = {name: choice for name, choice in choices.items() if name != AUTOMATIC and not choice.why}
    if automatic.why or not by_hand:
        return f"nothing to compare: {automatic.why or 'every choice by hand failed'}"
    best = min(by_hand, key=lambda name: by_hand[name].median("ms"))
    ratios = [hand["ms"] / own["ms"] for hand, own in zip(by_hand[best].rounds, automatic.rounds)]
    low, high = interval(ratios)
    return f"automatic / best ({best}): {statistics.median(ratios):.3f} ({low:.3f} .. {high:.3f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("--models", default="168m:Q8_0,1b:Q8_0")
    parser.add_argument("--devices")
    parser.add_argument("--threads", type=numbers, default=fewer_threads())
    parser.add_argument("--parts", type=lambda text: [float(part) for part in text.split(",") if part], default=[0.25, 0.5, 0.75])
    parser.add_argument("--budgets", type=lambda text: [float(part) for part in text.split(",")], default=[None])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    parser.add_argument("--calibrate", action="store_true", help="measure the devices with each model's shapes before")
    options = parser.parse_args()
    devices = options.devices.split(",") if options.devices else devices_of(options.shunt)
    failed = 0
    for model in options.models.split(","):
        file = model if model.endswith(".gguf") else model_file(options.shunt, model, options.folder)
        if options.calibrate:
            answer(options.shunt, "calibrate", file, "--quick", "--busy", "--devices", ",".join(devices))
        bench = [options.shunt, "bench", "model", file, "-c", str(options.prompt + options.generate), "--prompt", str(options.prompt),
                 "--generate", str(options.generate), "--repetitions", "1"]
        weights = pathlib.Path(file).stat().st_size
        for budget in options.budgets:
            most = None if budget is None else int(budget * weights)
            choices = {name: Choice([*bench, *given])
                       for name, given in choices_of(devices, options.threads, options.parts, weights, most).items()}
            title = pathlib.Path(model).name + ("" if budget is None else f", budget {budget:.0%} of the weights")
            for done in range(options.rounds):
                print(f"{title}: round {done + 1} of {options.rounds}", file=sys.stderr, flush=True)
                for choice in choices.values():
                    choice.measure(options)
            print(f"{table_of(title, choices, options)}\n\n{verdict_of(choices)}\n", flush=True)
            failed += bool(choices[AUTOMATIC].why)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
