#!/usr/bin/env python3
"""Shows which kernels take the time of a model's steps on an NVIDIA GPU, and what limits them; prints a table in Markdown.

kernels.py SHUNT MODEL.gguf [--phase prompt] [--prompt 512] [--depth 0] [--sequences 1] [--top 10] [--ncu PATH]

Needs Python 3, the program, and NVIDIA's profiler ncu with access to the counters. It counts the first step of a prompt,
or the kernels of some tokens that are generated. Kernels run one at a time under the profiler, so figures are those of
each alone, weights not in the cache of the one before; the time between kernels is not seen. The shares are those of
what the hardware can do at most: bytes of memory, of the L2 cache, of the L1 cache and shared memory, tensor cores busy,
and instructions issued. A wait is why a warp that had an instruction did not issue it most of the time.
"""
import argparse
import csv
import subprocess
import sys

TIME = "gpu__time_duration.sum"
SHARES = {"memory": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
          "L2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
          "L1": "l1tex__throughput.avg.pct_of_peak_sustained_active",
          "tensor": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
          "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active"}
WAITS = {"memory": "long_scoreboard", "shared memory": "short_scoreboard", "barrier": "barrier", "an instruction before": "wait",
         "a busy unit": "math_pipe_throttle", "instructions": "no_instruction", "its turn": "not_selected",
         "queue of memory": "lg_throttle", "queue of shared memory": "mio_throttle", "tensor cores": "gmma",
         "sleeping": "sleeping", "a fence": "membar", "a branch": "branch_resolving"}
METRIC_OF_WAIT = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


def profile(options: argparse.Namespace) -> list:
    """Returns a dict of metrics for each kernel that ran."""
    generates = options.phase == "generate"
    counted = ["--launch-skip", str(options.skip), "--launch-count", str(options.count)]
    command = [options.ncu, "--graph-profiling", "node", "--csv", "--page", "raw", "--clock-control", "none", "--print-units", "base",
               "--metrics", ",".join([TIME, *SHARES.values(), *map(METRIC_OF_WAIT.format, WAITS.values())]),
               "-k", "regex:^(?!shunt_rows_to_strips)", *counted, options.shunt, "bench", "model", options.model, "--devices", "cuda:0",
               "--numerics", "auto", "--prompt", "1" if generates else str(options.prompt), "--generate",
               "32" if generates else "1", "--depth", str(options.depth), "--sequences", str(options.sequences), "--repetitions", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [line for line in done.stdout.splitlines() if line.startswith('"')]
    kernels = [row for row in csv.DictReader(rows) if row["ID"]]
    if not kernels:
        sys.exit(f"kernels.py: {' '.join(command)}: no kernel was profiled: {done.stderr.strip() or done.stdout.strip()[-500:]}")
    return kernels


def number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("model")
    parser.add_argument("--phase", choices=("prompt", "generate"), default="generate")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--sequences", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="kernels before those that count")
    parser.add_argument("--count", type=int, default=400, help="kernels that count")
    parser.add_argument("--top", type=int, default=10)
    parser.add_argument("--ncu", default="ncu")
    options = parser.parse_args()
    by_name = {}
    for kernel in profile(options):
        by_name.setdefault(kernel["Kernel Name"].removeprefix("shunt_"), []).append(kernel)
    time_of = {name: sum(number(each[TIME]) for each in group) for name, group in by_name.items()}
    total = sum(time_of.values())

    def mean(group: list, metric: str) -> float:
        """Weighed by time."""
        return sum(number(each[metric]) * number(each[TIME]) for each in group) / sum(number(each[TIME]) for each in group)

    print("| kernel | runs | us each | of the time | " + " | ".join(SHARES) + " | waits for |")
    print("|---" * (5 + len(SHARES)) + "|")
    for name in sorted(time_of, key=time_of.get, reverse=True)[:options.top]:
        group = by_name[name]
        cells = [f"{mean(group, metric):.0f} %" for metric in SHARES.values()]
        waits = {wait: mean(group, METRIC_OF_WAIT.format(metric)) for wait, metric in WAITS.items() if METRIC_OF_WAIT.format(metric) in group[0]}
        print(f"| {name} | {len(group)} | {time_of[name] / len(group) / 1e3:.1f} | {time_of[name] / total:.0%} | {' | '.join(cells)} "
              f"| {max(waits, key=waits.get) if waits else ''} |")
    print(f"\n{sum(map(len, by_name.values()))} kernels, {total / 1e6:.2f} ms")


if __name__ == "__main__":
    main()
