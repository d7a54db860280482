#!/usr/bin/env python3
"""Checks how close the results of models of many architectures and weight types are to exact ones of cpu:scalar.

agreement.py SHUNT [--devices vulkan:0,vulkan:1] [--models trained,gemma3] [--types F16,Q4_K_M] [--numerics exact,fast]
             [--tokens 48]

Needs only Python 3 and a folder with the program and its data: a bundle, or a clone after ./dev build. Prints a table
in Markdown: a row per model, type, device and numerics, with the commands that made it below. The models are the
trained one (trained), the tiny ones of each architecture, whose rows are too short for blocks of 256 and get blocks of
32 instead, and random ones with rows of 256 (micro, micro-moe).

The last column is what `shunt eval --against` says (docs/numerics.md). The exit code is 0 if all rows are ok that count:
those of exact numerics and of the trained model. What auto and fast may change is bounded for trained models alone: in
random ones two experts may be so nearly equal that rounding sends a token to another.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

RANDOM = ("micro", "micro-moe")
COLUMNS = ("model", "type (types of its weights)", "device", "numerics", "tokens", "NMSE", "mean KL", "largest KL",
           "perplexity", "same best token", "")


class Agreement:
    def __init__(self, shunt: str, folder: pathlib.Path, tokens: int) -> None:
        self.shunt, self.folder, self.tokens = shunt, folder, tokens
        root = pathlib.Path(__file__).resolve().parent.parent
        self.data = next((data for data in (root / "data", root.parent / "tests/data") if data.exists()), None)
        if self.data is None:
            sys.exit(f"agreement.py: neither {root / 'data'} nor {root.parent / 'tests/data'} is there")
        text = json.loads((self.data / "tiny-llama-reference.json").read_text(encoding="utf-8"))["perplexity"]["text"]
        self.text = self.run("tokenize", str(self.data / "tiny-llama-f16.gguf"), text)["tokens"]

    def models(self) -> list:
        return ["trained", *sorted(path.stem for path in (self.data / "architectures").glob("*.gguf")), *RANDOM]

    def run(self, *arguments: str) -> dict:
        done = subprocess.run([self.shunt, *arguments, "--json"], capture_output=True, text=True, check=False)
        if not done.stdout.strip():
            raise RuntimeError(" ".join(done.stderr.split()) or f"exit {done.returncode}")
        return json.loads(done.stdout)

    def file(self, model: str, kind: str) -> str:
        made = self.folder / f"{model}-{kind}.gguf"
        if model in RANDOM:
            self.run("make-model", model, kind, str(made))
        else:
            source = self.data / ("tiny-llama-f16.gguf" if model == "trained" else f"architectures/{model}.gguf")
            self.run("quantize", str(source), str(made), kind)
        return str(made)

    def ids(self, model: str, inspected: dict) -> list:
        """Returns a text of what the model was trained on, or the tokens that come with it, continued by others."""
        if model == "trained":
            return self.text[:self.tokens]
        given = next((line["value"] for line in inspected["metadata"] if line["key"] == "shunt.reference.tokens"), [])
        count = self.tokens or 48
        return [*given, *((37 * i + 11) % 259 for i in range(len(given), count))][:count]

    def row(self, file: str, ids: list, device: str, numerics: str) -> dict:
        return self.run("eval", file, "--tokens", " ".join(map(str, ids)), "-c", str(len(ids)), "--devices", device,
                        "--numerics", numerics, "--against", "cpu:scalar")


def cells(row: dict) -> list:
    return [str(row["tokens"]), f"{row['nmse']:.1e}", f"{row['mean_kl']:.1e}", f"{row['largest_kl']:.1e}",
            f"{row['perplexity']:.5g}, {row['perplexity'] / row['exact_perplexity'] - 1:+.1e}",
            f"{row['same_best']}; {row['same']} of {row['decided']}", "ok" if row["ok"] else "TOO FAR"]


def with_types(kind: str, inspected: dict) -> str:
    """Returns the name of a file's type, with the types of its matrices if they are others."""
    kinds = [row["dtype"] for row in inspected["dtypes"] if row["dtype"] != "F32"]
    return kind if kinds == [kind] else f"{kind} ({', '.join(kinds)})"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("shunt")
    parser.add_argument("--devices", help="ids with commas between them; without it those of Vulkan that are found")
    parser.add_argument("--models", help="names with commas between them; without it all that there are")
    parser.add_argument("--types", default="F16,Q8_0,Q6_K,Q4_0,Q4_K_M")
    parser.add_argument("--numerics", default="exact,auto,fast")
    parser.add_argument("--tokens", type=int, help="without it the text of the trained model, and 48 for others")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = Agreement(options.shunt, pathlib.Path(folder), options.tokens)
        names = {device["id"]: device["name"] for device in table.run("devices")["devices"]}
        devices = (options.devices.split(",") if options.devices
                   else [device for device in names if device.startswith("vulkan:")])
        if not devices:
            sys.exit("agreement.py: there is no device of Vulkan; --devices names others (shunt devices)")
        for device in filter(names.get, devices):
            print(f"{device}: {names[device]}\n")
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
        wrong = 0
        for model in options.models.split(",") if options.models else table.models():
            for kind in options.types.split(","):
                file = table.file(model, kind)
                inspected = table.run("inspect", file)
                ids = table.ids(model, inspected)
                for device, numerics in ((device, each) for device in devices for each in options.numerics.split(",")):
                    try:
                        row = table.row(file, ids, device, numerics)
                        result = cells(row)
                        wrong += not row["ok"] and (numerics == "exact" or model == "trained")
                    except RuntimeError as error:
                        result = [str(error)]
                        wrong += 1
                    first = [model, with_types(kind, inspected), device, numerics]
                    print(f"| {' | '.join(first + result)} |", flush=True)
    print("\nThe last four tokens run one by one. NMSE is of the logits; KL divergence in nats, of the next token from the "
          "exact one; perplexity, and by\nwhich share it changed; tokens with the same best successor of all, and of those "
          "whose two best logits are more than 0.2 apart. Commands:\n\n"
          "    shunt quantize MODEL FILE TYPE, or shunt make-model micro TYPE FILE\n"
          "    shunt eval FILE --tokens IDS -c TOKENS --devices DEVICE --numerics NUMERICS --against cpu:scalar")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
