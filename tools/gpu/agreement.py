#!/usr/bin/env python3
"""Checks that models of many architectures and weight types give the same results on devices as on cpu:scalar.

agreement.py SHUNT [--devices vulkan:0,vulkan:1] [--models trained,gemma3] [--types F16,Q8_0,Q4_K_M] [--tokens 48]

Needs only Python 3 and a folder with the program and its data: a bundle, or a clone after ./dev build. Prints a table
in Markdown: a row per model, type and device, with the commands that made it below. The exit code is 0 if every row is
ok. The models are the trained one (trained), the tiny ones of each architecture, whose rows are too short for blocks of
256 and get blocks of 32 instead, and random ones with rows of 256 (micro, micro-moe).
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

RANDOM = ("micro", "micro-moe")


class Agreement:
    def __init__(self, shunt: str, folder: pathlib.Path, tokens: int) -> None:
        self.shunt, self.folder, self.tokens = shunt, folder, tokens
        root = pathlib.Path(__file__).resolve().parent.parent
        self.data = next((data for data in (root / "data", root.parent / "tests/data") if data.exists()), None)
        if self.data is None:
            sys.exit(f"agreement.py: neither {root / 'data'} nor {root.parent / 'tests/data'} is there")

    def models(self) -> list:
        return ["trained", *sorted(path.stem for path in (self.data / "architectures").glob("*.gguf")), *RANDOM]

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        done = subprocess.run([self.shunt, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0 and not done.stdout.strip():
            raise RuntimeError(done.stderr.strip() or f"exit {done.returncode}")
        return done

    def file(self, model: str, kind: str) -> str:
        made = self.folder / f"{model}-{kind}.gguf"
        if model in RANDOM:
            self.run("make-model", model, kind, str(made), "--json")
        else:
            source = self.data / ("tiny-llama-f16.gguf" if model == "trained" else f"architectures/{model}.gguf")
            self.run("quantize", str(source), str(made), kind, "--json")
        return str(made)

    def ids(self, model: str, file: str) -> list:
        """Returns tokens that the model was trained on, those that come with it, or others."""
        if model == "trained":
            prompt = json.loads((self.data / "tiny-llama-reference.json").read_text(encoding="utf-8"))["prompts"][0]
            given = prompt["ids"] + prompt["greedy_ids"]
        else:
            lines = json.loads(self.run("inspect", file, "--json").stdout)["metadata"]
            given = next((line["value"] for line in lines if line["key"] == "shunt.reference.tokens"), [])
        return [*given, *((37 * i + 11) % 259 for i in range(len(given), self.tokens))][:self.tokens]

    def row(self, file: str, ids: list, device: str) -> dict:
        return json.loads(self.run("eval", file, "--tokens", " ".join(map(str, ids)), "-c", "128", "--devices", device,
                                   "--against", "cpu:scalar", "--json").stdout)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("shunt")
    parser.add_argument("--devices", help="ids with commas between them; without it those of Vulkan that are found")
    parser.add_argument("--models", help="names with commas between them; without it all that there are")
    parser.add_argument("--types", default="F16,Q8_0,Q4_K_M")
    parser.add_argument("--tokens", type=int, default=48)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = Agreement(options.shunt, pathlib.Path(folder), options.tokens)
        names = {device["id"]: device["name"] for device in json.loads(table.run("devices", "--json").stdout)["devices"]}
        devices = (options.devices.split(",") if options.devices
                   else [device for device in names if device.startswith("vulkan:")])
        if not devices:
            sys.exit("agreement.py: there is no device of Vulkan; --devices names others (shunt devices)")
        print(f"| model | type | {' | '.join(f'{device}: {names.get(device, chr(63))}' for device in devices)} |")
        print(f"|---|---|{'---|' * len(devices)}")
        wrong = 0
        for model in options.models.split(",") if options.models else table.models():
            for kind in options.types.split(","):
                file = table.file(model, kind)
                ids = table.ids(model, file)
                cells = []
                for device in devices:
                    try:
                        row = table.row(file, ids, device)
                        cells.append(f"{row['nmse']:.1e}, {row['same']} of {row['decided']}{'' if row['ok'] else ' WRONG'}")
                        wrong += not row["ok"]
                    except RuntimeError as error:
                        cells.append(str(error))
                        wrong += 1
                print(f"| {model} | {kind} | {' | '.join(cells)} |", flush=True)
    print(f"\n{options.tokens} tokens each, the last four one by one. NMSE of the logits, and tokens with the same best "
          "successor of those whose\ntwo best are more than 0.2 apart on cpu:scalar, by these commands:\n\n"
          "    shunt quantize MODEL FILE TYPE, or shunt make-model micro TYPE FILE\n"
          "    shunt eval FILE --tokens IDS -c 128 --devices DEVICE --against cpu:scalar")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
