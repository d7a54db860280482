#!/usr/bin/env python3
"""What runs where: docs/support.md and the tables of README.md, made from what `shunt verify` and the tests of
architectures and tokenizers say.

support.py SHUNT MODELS_TEST [--check]

Without --check writes the files; with it, fails where they say anything else. Differences of logits are not the same on
every processor, so they are tabled as powers of ten that they stay under.
"""
import argparse
import difflib
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILE = ROOT / "docs/support.md"
README = ROOT / "README.md"
MARKS = ("<!-- made by tools/support.py -->\n", "<!-- end of what tools/support.py made -->\n")
DEVICES = ("cpu:simd", "cpu:scalar")
TESTS = "*Architectures.*:*ReferenceTokenizers.HardStrings*"
INTRODUCTION = """# What runs where

Made by `tools/support.py build/release/cli/shunt build/release/tests/models_test` from what is computed here; a test
compares. [devices.md](devices.md) has other devices than the processor.

"""
ARCHITECTURES = """## Model architectures

Tiny random models against Hugging Face transformers: the largest difference of a logit, relative to the largest logit, in
F32, as the power of ten above twice what was found. [models.md](models.md) says more.

"""
TOKENIZERS = """
## Tokenizers

Small trained tokenizers against the libraries that models are trained with: all ids of each string are equal.
[tokenizers.md](tokenizers.md) says more.

"""
OPS = """
## Ops and dtypes

From what `shunt verify` says on each device. *all*: every case of the op with that dtype as an operand or result gave the
reference's result; *some*: the device declines others, each with a reason that `shunt plan --explain` shows; empty: the op
does not take that dtype, or the device declines it.
"""


def verified(shunt: str, device: str) -> dict:
    """{op: {dtype: (cases passed, others)}}"""
    done = subprocess.run([shunt, "verify", "--devices", device, "--json"], capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        sys.exit(f"support.py: {shunt} verify: {done.stderr.strip()}")
    found = {}
    for tally in json.loads(done.stdout)["tallies"]:
        dtypes = found.setdefault(tally["op"], {})
        for dtype in set(re.findall(r"[A-Z]\w*", tally["dtypes"])):
            passed, others = dtypes.get(dtype, (0, 0))
            dtypes[dtype] = (passed + tally["passed"], others + tally["declined"] + tally["failed"])
    return found


def recorded(models_test: str) -> list:
    """What the tests of architectures and tokenizers recorded, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tests.json"
        done = subprocess.run([models_test, f"--gtest_filter={TESTS}", f"--gtest_output=json:{path}"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"support.py: {models_test} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        suites = json.loads(path.read_text(encoding="utf-8"))["testsuites"]
    return [test for suite in suites for test in suite["testsuite"]]


def table(header: list, rows: list) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def dtypes_in_order() -> list:
    text = (ROOT / "src/ops/dtypes.def").read_text(encoding="utf-8")
    return re.findall(r"^SHUNT_DTYPE\((\w+),", text, re.MULTILINE)


def ops_table(device: str, found: dict) -> str:
    dtypes = [name for name in dtypes_in_order() if any(of.get(name, (0, 0))[0] for of in found.values())]

    def cell(op: str, dtype: str) -> str:
        passed, others = found[op].get(dtype, (0, 0))
        return "" if passed == 0 else "all" if others == 0 else "some"

    rows = [[op, *(cell(op, dtype) for dtype in dtypes)] for op in found]
    return f"\n### {device}\n\n" + table(["op", *dtypes], rows)


class Bounds:
    """Exponents of ten that differences stay under: those of `stated` where they hold, so that they need not be equal on
    every processor, else of twice what was found."""

    def __init__(self, stated: str):
        rows = re.findall(r"\| <= 1e(-\d+) \| <= 1e(-\d+) \| `([\w-]+)\.gguf` \|", stated)
        self.stated = {name: (int(simd), int(scalar)) for simd, scalar, name in rows}

    def of(self, test: dict) -> list:
        stated = self.stated.get(test["model_file"], (None, None))
        found = [float(test[device]) for device in ("simd", "scalar")]
        return [bound if bound is not None and difference <= 10.0 ** bound else math.ceil(math.log10(2 * difference + 1e-30))
                for difference, bound in zip(found, stated)]


def architectures_table(tests: list, bounds: Bounds) -> str:
    rows = [[test["architecture"], test["models"], *(f"<= 1e{bound}" for bound in bounds.of(test)),
             f"`{test['model_file']}.gguf`"] for test in tests]
    return table(["architecture", "models", *DEVICES, "file of `tests/data/architectures`"], rows)


def short_tables(architectures: list, tokenizers: list, bounds: Bounds, ops: dict) -> str:
    models = {}
    for test in architectures:
        names, exponent = models.get(test["architecture"], ([], -99))
        models[test["architecture"]] = ([*names, test["models"]], max(exponent, *bounds.of(test)))
    methods = {}
    for test in tokenizers:
        methods.setdefault((test["model"], test["strings"], test["reference"]), []).append(test["tokenizer"])

    def counts(dtype: str) -> list:
        return [str(sum(of.get(dtype, (0, 0))[0] > 0 for of in ops[device].values())) for device in DEVICES]

    alike = {}
    for dtype in dtypes_in_order():
        alike.setdefault(tuple(counts(dtype)), []).append(dtype)
    taken = [[", ".join(dtypes), *count] for count, dtypes in alike.items() if set(count) != {"0"}]
    return "\n".join([
        table(["architecture", "models", "logits differ from transformers' by"],
              [[name, "; ".join(names), f"<= 1e{exponent} of the largest"] for name, (names, exponent) in models.items()]),
        table(["`tokenizer.ggml.model`", "tokenizers", "strings each", "same ids as"],
              [[model, ", ".join(names), strings, reference] for (model, strings, reference), names in methods.items()]),
        table(["dtypes", *(f"ops on {device}, of {len(ops[device])}" for device in DEVICES)], taken),
    ])


def between_marks(text: str, made: str) -> str:
    begin, end = MARKS
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"support.py: README.md needs the lines {begin!r} and {end!r} once each")
    return text[:text.index(begin)] + begin + "\n" + made + "\n" + text[text.index(end):]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("models_test")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()

    tests = recorded(options.models_test)
    architectures = [test for test in tests if "architecture" in test]
    tokenizers = [test for test in tests if "tokenizer" in test]
    ops = {device: verified(options.shunt, device) for device in DEVICES}
    before = {path: path.read_text(encoding="utf-8") for path in (FILE, README)}
    bounds = Bounds(before[FILE] if options.check else "")
    made = {
        FILE: (INTRODUCTION + ARCHITECTURES + architectures_table(architectures, bounds) + TOKENIZERS +
               table(["tokenizer", "`tokenizer.ggml.model`", "strings", "reference"],
                     [[test["tokenizer"], test["model"], test["strings"], test["reference"]] for test in tokenizers]) +
               OPS + "".join(ops_table(device, found) for device, found in ops.items())),
        README: between_marks(before[README], short_tables(architectures, tokenizers, bounds, ops)),
    }
    wrong = []
    for path, text in made.items():
        if not options.check:
            path.write_text(text, encoding="utf-8")
        elif text != before[path]:
            name = str(path.relative_to(ROOT))
            print("\n".join(difflib.unified_diff(before[path].splitlines(), text.splitlines(), name, "as it is", lineterm="")))
            wrong.append(name)
    if wrong:
        sys.exit(f"support.py: {' and '.join(wrong)} do not say what is there; run tools/support.py SHUNT MODELS_TEST")


if __name__ == "__main__":
    main()
