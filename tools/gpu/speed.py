#!/usr/bin/env python3
"""Measures how fast models of random weights run, and llama.cpp or its forks beside it; prints a table in Markdown.

speed.py SHUNT [--rival llama.cpp=FOLDER] [--devices cuda:0,vulkan:0] [--models 1b:Q8_0,1b:Q4_0,8b:Q8_0] [--prompt 512]
[--generate 128] [--depths 4096] [--sequences 8,32] [--threads 16] [--rounds 3] [--repetitions 3] [--folder FOLDER]

Needs only Python 3 and the program: a bundle, or a clone after ./dev build. --rival may be repeated; its FOLDER has
llama-bench and, for several sequences, llama-batched-bench. Rivals use all GPUs that they find, with flash attention;
beside the processor they must be built without GPUs, and choose their attention. Models are made in FOLDER of --folder, which must have room for them, and stay there. In each
round the devices and the rivals take turns; figures are medians over the rounds, and the last columns are the ratios to
the fastest rival. Several sequences generate after a prompt of --generate tokens each.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"speed.py: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def answer(*command: str) -> dict:
    return json.loads(run(*command, "--json"))


def model_file(shunt: str, model: str, folder: pathlib.Path) -> str:
    shape, _, dtype = model.partition(":")
    path = folder / f"{shape}-{dtype}.gguf"
    if not path.exists():
        answer(shunt, "make-model", shape, dtype, str(path))
    return str(path)


class Work:
    """A prompt and tokens generated after it, of one sequence or of several."""

    def __init__(self, prompt: int, generate: int, depth: int = 0, sequences: int = 1) -> None:
        self.prompt, self.generate, self.depth, self.sequences = prompt, generate, depth, sequences

    def by_shunt(self, options: argparse.Namespace, file: str, device: str) -> dict:
        """Returns tokens per second by phase."""
        threads = ["--threads", str(options.threads)] if options.threads else []
        result = answer(options.shunt, "bench", "model", file, "--devices", device, "--numerics", "auto", "--prompt",
                        str(self.prompt), "--generate", str(self.generate), "--depth", str(self.depth), "--sequences",
                        str(self.sequences), "--repetitions", str(options.repetitions), *threads)
        return {self.name(phase): result[f"{phase}_tokens_per_s"]["median"] for phase in self.phases()}

    def by_rival(self, options: argparse.Namespace, file: str, folder: str) -> dict:
        given = ["-m", file, *([] if options.devices.startswith("cpu") else ["-ngl", "99", "-fa", "1"])]
        if options.threads:
            given += ["-t", str(options.threads)]
        if self.sequences > 1:
            context = self.sequences * (self.depth + self.generate)
            lines = run(str(pathlib.Path(folder) / "llama-batched-bench"), *given, "-c", str(context), "-npp", str(self.depth),
                        "-ntg", str(self.generate), "-npl", str(self.sequences), "--output-format", "jsonl")
            result = json.loads(next(line for line in lines.splitlines() if line.startswith("{")))
            return {self.name("generate"): result["speed_tg"]}
        bench = str(pathlib.Path(folder) / "llama-bench")
        rows = json.loads(run(bench, *given, *self.shape_for(bench), "-r", str(options.repetitions), "-o", "json"))
        return {self.name("prompt" if row["n_gen"] == 0 else "generate"): row["avg_ts"] for row in rows}

    def shape_for(self, bench: str) -> list:
        if self.depth == 0:
            return ["-p", str(self.prompt), "-n", str(self.generate)]
        if "--n-depth" in run(bench, "--help"):
            return ["-p", "0", "-n", str(self.generate), "-d", str(self.depth)]
        return ["-p", "0", "-n", "0", "-gp", f"{self.depth},{self.generate}"]  # forks from before that option

    def phases(self) -> tuple:
        return ("prompt", "generate") if self.depth == 0 else ("generate",)

    def name(self, phase: str) -> str:
        if phase == "prompt":
            return f"prompt {self.prompt}"
        if self.sequences > 1:
            return f"generate {self.sequences} x {self.generate}"
        return f"generate {self.generate}" + (f" at depth {self.depth}" if self.depth else "")


def numbers(text: str) -> list:
    return [int(word) for word in text.split(",") if word]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("--rival", action="append", default=[])
    parser.add_argument("--devices", default="cuda:0")
    parser.add_argument("--models", default="1b:Q8_0,1b:Q4_0,8b:Q8_0")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument("--depths", type=numbers, default=[])
    parser.add_argument("--sequences", type=numbers, default=[])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    options = parser.parse_args()
    works = [Work(options.prompt, options.generate),
             *(Work(1, options.generate, depth) for depth in options.depths),
             *(Work(1, options.generate, options.generate, count) for count in options.sequences)]
    devices = options.devices.split(",")
    rivals = dict(rival.split("=", 1) for rival in options.rival)
    ratios = [f"{device} / rival" for device in devices] if rivals else []
    columns = [*devices, *rivals, *ratios]
    print("| model | tokens/s of | " + " | ".join(columns) + " |")
    print("|---" * (2 + len(columns)) + "|")
    for model in options.models.split(","):
        file = model_file(options.shunt, model, options.folder)
        for work in works:
            rates = {}
            for _ in range(options.rounds):
                turns = {device: work.by_shunt(options, file, device) for device in devices}
                turns |= {rival: work.by_rival(options, file, folder) for rival, folder in rivals.items()}
                for who, measured in turns.items():
                    for what, rate in measured.items():
                        rates.setdefault(what, {}).setdefault(who, []).append(rate)
            for what, all_of_it in rates.items():
                row = {who: statistics.median(each) for who, each in all_of_it.items()}
                cells = [f"{rate:.0f}" for rate in row.values()]
                if rivals:
                    best = max(row[rival] for rival in rivals)
                    cells += [f"{row[device] / best:.2f}" for device in devices]
                print(f"| {model} | {what} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
