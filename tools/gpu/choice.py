#!/usr/bin/env python3
"""Compares the devices that Shunt chooses with each device alone, as a table in Markdown.

choice.py SHUNT [--models 168m:Q8_0,1b:Q8_0,FILE.gguf] [--gpu vulkan:0] [--cpu cpu:simd] [--rounds 7] [--prompt 128]
[--generate 32] [--folder FOLDER] [--calibrate]

Each model reads a prompt and generates: as Shunt chooses between both devices, on the GPU alone, and on the processor
alone. These three take turns in each round. `of the best` is the time of the better single device divided by the time
of the choice: the median over the rounds, and its 95 % confidence interval (rank interval; with 7 rounds it spans
all of them and misses in 2 %). Needs only Python 3 and the program.
"""
import argparse
import math
import pathlib
import statistics
import sys
import tempfile

from speed import answer, model_file


def interval(values: list[float]) -> tuple[float, float]:
    """The median's confidence interval, at least 95 % for 6 values or more."""
    ordered = sorted(values)
    count = len(ordered)
    outside, cut = 0.0, 0
    while cut < count // 2 and (outside := outside + 2 * math.comb(count, cut) / 2**count) <= 0.05:
        cut += 1
    return ordered[max(cut - 1, 0)], ordered[count - max(cut, 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("--models", default="168m:Q8_0,1b:Q8_0")
    parser.add_argument("--gpu", default="vulkan:0")
    parser.add_argument("--cpu", default="cpu:simd")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    parser.add_argument("--calibrate", action="store_true", help="measure the devices with each model's shapes before")
    options = parser.parse_args()
    both = f"{options.gpu},{options.cpu}"
    print(f"| model | ran on | chosen, ms | {options.gpu}, ms | {options.cpu}, ms | of the best | 95 % |")
    print("|---|---|---|---|---|---|---|")
    for model in options.models.split(","):
        file = model if model.endswith(".gguf") else str(model_file(options.shunt, model, options.folder))
        if options.calibrate:
            answer(options.shunt, "calibrate", file, "--quick", "--devices", both)
        times = {both: [], options.gpu: [], options.cpu: []}
        for done in range(options.rounds):
            print(f"{model}: round {done + 1} of {options.rounds}", file=sys.stderr, flush=True)
            for devices, values in times.items():
                result = answer(options.shunt, "bench", "model", file, "-c", str(options.prompt + options.generate), "--devices", devices,
                                "--prompt", str(options.prompt), "--generate", str(options.generate), "--repetitions", "1")
                if devices == both:
                    ran_on = ", ".join(result["devices"])
                values.append(1e3 * (options.prompt / result["prompt_tokens_per_s"]["median"] +
                                     options.generate / result["generate_tokens_per_s"]["median"]))
        chosen, gpu, cpu = (statistics.median(values) for values in times.values())
        best = times[options.gpu if gpu < cpu else options.cpu]
        shares = [alone / ours for alone, ours in zip(best, times[both])]
        low, high = interval(shares)
        print(f"| {pathlib.Path(model).name} | {ran_on} | {chosen:.1f} | {gpu:.1f} | {cpu:.1f} | {statistics.median(shares):.3f} | "
              f"{low:.3f} .. {high:.3f} |", flush=True)


if __name__ == "__main__":
    main()
