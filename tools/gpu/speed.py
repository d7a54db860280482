#!/usr/bin/env python3
"""Measures how fast models of random weights run on a GPU; prints a table in Markdown.

speed.py SHUNT [--devices vulkan:0,cuda:0] [--models 1b:Q8_0,1b:Q4_0,8b:Q8_0] [--prompt 512] [--generate 128]
[--repetitions 5] [--folder FOLDER]

Needs only Python 3 and the program: a bundle, or a clone after ./dev build. Models are made in FOLDER, which must have
room for them, and stay there. Devices take turns on each model; figures are medians.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile


def answer(*command: str) -> dict:
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"speed.py: {' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def model_file(shunt: str, model: str, folder: pathlib.Path) -> pathlib.Path:
    shape, _, dtype = model.partition(":")
    path = folder / f"{shape}-{dtype}.gguf"
    if not path.exists():
        answer(shunt, "make-model", shape, dtype, str(path))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("--devices", default="vulkan:0")
    parser.add_argument("--models", default="1b:Q8_0,1b:Q4_0,8b:Q8_0")
    parser.add_argument("--prompt", default="512")
    parser.add_argument("--generate", default="128")
    parser.add_argument("--repetitions", default="5")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    options = parser.parse_args()
    names = {row["id"]: row["name"] for row in answer(options.shunt, "devices")["devices"]}
    print(f"| model | device | name | prompt {options.prompt}, tokens/s | generate {options.generate}, tokens/s | GB/s of weights |")
    print("|---|---|---|---|---|---|")
    for model in options.models.split(","):
        file = model_file(options.shunt, model, options.folder)
        for device in options.devices.split(","):
            result = answer(options.shunt, "bench", "model", str(file), "--devices", device, "--prompt", options.prompt,
                            "--generate", options.generate, "--repetitions", options.repetitions)
            prompt, generate = (result[f"{phase}_tokens_per_s"]["median"] for phase in ("prompt", "generate"))
            weights = generate * result["bytes_per_token"] / 1e9
            print(f"| {model} | {device} | {names.get(device, 'absent')} | {prompt:.0f} | {generate:.0f} | {weights:.0f} |",
                  flush=True)


if __name__ == "__main__":
    main()
