#!/usr/bin/env python3
"""What runs where: docs/support.md, made from what `shunt verify` and the tests of architectures and tokenizers say.

support.py SHUNT [--check]

Without --check writes the file; with it, fails where the file says anything else.
"""
import argparse
import difflib
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILE = ROOT / "docs/support.md"
DEVICES = ("cpu:simd", "cpu:scalar")
INTRODUCTION = """# What runs where

Made by `tools/support.py build/shunt` from what `shunt verify` says on each device; a test compares. *all*: every case of the
op with that dtype as an operand or result gave the reference's result; *some*: the device declines others, each with a
reason that `shunt plan --explain` shows; empty: the op does not take that dtype, or the device declines it.
[devices.md](devices.md) has other devices than the processor.
"""


def verified(shunt: str, device: str) -> list:
    done = subprocess.run([shunt, "verify", "--devices", device, "--json"], capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        sys.exit(f"support.py: {shunt} verify: {done.stderr.strip()}")
    return json.loads(done.stdout)["tallies"]


def rows_of(path: pathlib.Path, macro: str) -> list:
    return re.findall(rf"^{macro}\((\w+),", path.read_text(encoding="utf-8"), re.MULTILINE)


def table_of(device: str, tallies: list) -> str:
    found = {}
    for tally in tallies:
        for dtype in set(re.findall(r"[A-Z]\w*", tally["dtypes"])):
            passed, others = found.get((tally["op"], dtype), (0, 0))
            found[tally["op"], dtype] = (passed + tally["passed"], others + tally["declined"] + tally["failed"])
    ops = list(dict.fromkeys(tally["op"] for tally in tallies))
    dtypes = [name for name in rows_of(ROOT / "src/ops/dtypes.def", "SHUNT_DTYPE")
              if any(passed for (_, dtype), (passed, _) in found.items() if dtype == name)]

    def cell(op: str, dtype: str) -> str:
        passed, others = found.get((op, dtype), (0, 0))
        return "" if passed == 0 else "all" if others == 0 else "some"

    lines = [f"## {device}", "", f"| op | {' | '.join(dtypes)} |", "|---" * (len(dtypes) + 1) + "|"]
    lines += [f"| {op} | {' | '.join(cell(op, dtype) for dtype in dtypes)} |" for op in ops]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = INTRODUCTION
    for device in DEVICES:
        text += "\n" + table_of(device, verified(options.shunt, device))
    if not options.check:
        FILE.write_text(text, encoding="utf-8")
        return
    difference = list(difflib.unified_diff(FILE.read_text(encoding="utf-8").splitlines(), text.splitlines(), "docs/support.md",
                                           "as it is", lineterm=""))
    if difference:
        print("\n".join(difference))
        sys.exit("support.py: docs/support.md is not what is there; run tools/support.py build/shunt")


if __name__ == "__main__":
    main()
