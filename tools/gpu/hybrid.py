#!/usr/bin/env python3
"""Runs models that do not fit a GPU's memory on the GPU and the processor together, and a rival that is split by hand
beside them; prints a table in Markdown.

hybrid.py SHUNT [--rival llama.cpp=FOLDER] [--models 8b:Q4_K_M] [--gpu vulkan:0] [--cpu cpu:simd] [--parts 0.25,0.5,0.75]
[--prompts 512] [--generate 64] [--rounds 3] [--folder FOLDER] [--calibrate]

Plans may use GPU memory for these parts of the model's weights, in which Shunt's cache must find place as well. The rival,
whose FOLDER has llama-bench, gets as many layers as these bytes hold (-ngl), or all layers and as many layers' experts
(-ncmoe), with memory beside them for its cache and for the values of a whole prompt, which it reads in one batch. Both
take turns in each round; figures are medians over the rounds.
`of the bound` is the share that `shunt bench hybrid` gives. Needs only Python 3 and the programs.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile

from speed import answer, model_file, numbers, run


class Weights:
    """The bytes of a model's weights, by layer."""

    def __init__(self, shunt: str, file: str) -> None:
        self.layers, self.experts, self.others = [], [], 0
        for tensor in answer(shunt, "inspect", file)["tensors"]:
            block = re.match(r"blk\.(\d+)\.", tensor["name"])
            if block is None:
                self.others += tensor["bytes"]
                continue
            missing = int(block[1]) + 1 - len(self.layers)
            self.layers += [0] * missing
            self.experts += [0] * missing
            (self.experts if "_exps." in tensor["name"] else self.layers)[int(block[1])] += tensor["bytes"]
        self.total = self.others + sum(self.layers) + sum(self.experts)

    def by_hand(self, most: int) -> list[str]:
        """llama.cpp's options that put most of the weights on the GPU within these bytes."""
        count = len(self.layers)
        if sum(self.experts) > 0 and self.others + sum(self.layers) <= most:
            on_host = next(n for n in range(count + 1) if self.total - sum(self.experts[:n]) <= most)
            return ["-ngl", "99", "-ncmoe", str(on_host)]
        sizes = [dense + experts for dense, experts in zip(self.layers, self.experts)]
        if self.total <= most:
            return ["-ngl", "99"]
        return ["-ngl", str(next(n for n in range(count, -1, -1) if sum(sizes[count - n:]) <= most))]


def by_rival(folder: str, file: str, prompt: int, generate: int, given: list[str]) -> dict[str, float]:
    bench = str(pathlib.Path(folder) / "llama-bench")
    rows = json.loads(run(bench, "-m", file, *given, "-fa", "1", "-t", str(os.cpu_count()), "-b", str(prompt), "-ub", str(prompt),
                          "-p", str(prompt), "-n", str(generate), "-r", "1", "-o", "json"))
    return {"prompt" if row["n_gen"] == 0 else "generation": row["avg_ts"] for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("--rival", help="as in llama.cpp=FOLDER")
    parser.add_argument("--models", default="8b:Q4_K_M")
    parser.add_argument("--gpu", default="vulkan:0")
    parser.add_argument("--cpu", default="cpu:simd")
    parser.add_argument("--parts", type=lambda text: [float(part) for part in text.split(",")], default=[0.25, 0.5, 0.75])
    parser.add_argument("--prompts", type=numbers, default=[512])
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    parser.add_argument("--calibrate", action="store_true", help="measure the devices with each model's shapes before")
    options = parser.parse_args()
    rival, _, folder = (options.rival or "").partition("=")
    devices = f"{options.gpu},{options.cpu}"
    print(f"| model | part | tokens/s of | Shunt | of the bound |{f' {rival} | by | ratio |' if rival else ''}")
    print("|---" * (8 if rival else 5) + "|")
    for model in options.models.split(","):
        file = model_file(options.shunt, model, options.folder)
        weights = Weights(options.shunt, file)
        if options.calibrate:
            answer(options.shunt, "calibrate", file, "--quick", "--busy", "--devices", devices)
        for part in options.parts:
            budget = int(part * weights.total)
            given = weights.by_hand(budget)
            for prompt in options.prompts:
                rates, bounds, rivals = [], [], []
                for _ in range(options.rounds):
                    result = answer(options.shunt, "bench", "hybrid", file, "--devices", devices, "--budget",
                                    f"{options.gpu}={budget}B", "-c", str(max(options.prompts) + options.generate), "--prompt",
                                    str(prompt), "--generate", str(options.generate), "--repetitions", "1")
                    steps = {phase: result[phase] for phase in ("prompt", "generation")}
                    rates.append({phase: 1e6 * step["tokens"] / step["us"] for phase, step in steps.items()})
                    bounds.append({phase: step["parts"][0]["us"] / step["us"] for phase, step in steps.items()})
                    if rival:
                        rivals.append(by_rival(folder, file, prompt, options.generate, given))
                for phase in ("prompt", "generation"):
                    own, bound = (statistics.median(each[phase] for each in all_of_it) for all_of_it in (rates, bounds))
                    row = f"| {model} | {part:g} | {f'prompt {prompt}' if phase == 'prompt' else f'generate {options.generate}'} | " \
                          f"{own:.1f} | {bound:.0%} |"
                    if rival:
                        beside = statistics.median(each[phase] for each in rivals)
                        row += f" {beside:.1f} | {' '.join(given)} | {own / beside:.2f} |"
                    print(row, flush=True)


if __name__ == "__main__":
    sys.exit(main())
