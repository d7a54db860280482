#!/usr/bin/env python3
"""Makes docs/support.md and the tables of README.md from the records of devices in docs/support.json and from what the
tests of architectures and tokenizers report.

support.py MODELS_TEST [--check]
support.py --record SHUNT [--devices LIST] [--ops LIST] [--to FILE]

The first form writes the files; with --check it fails if they differ. Differences of logits vary among processors, so
they are given as powers of ten that they stay below.

The second form writes a record of each device: how many cases of `shunt verify` were right, declined and failed, by op
and dtype; with --ops it replaces only these in the existing record. It needs only Python 3 and the program, so a
machine with a GPU can do it. The tests that compare devices with the reference compare their counts with the record of
the device's kind.
"""
import argparse
import difflib
import functools
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILE = ROOT / "docs/support.md"
RECORDS = ROOT / "docs/support.json"
README = ROOT / "README.md"
MARKS = ("<!-- made by tools/support.py -->\n", "<!-- end of what tools/support.py made -->\n")
TESTS = "*Architectures.*:*ReferenceTokenizers.HardStrings*"
# The device that runs every op, with which others are compared. It comes first after the processor's other one.
REFERENCE = "cpu:scalar"
PROCESSOR = ("cpu:simd", REFERENCE)
INTRODUCTION = """# What runs where

Made by `tools/support.py build/release/tests/models_test` from the records of devices in [support.json](support.json)
and from what tests compute; a test compares. [measurements/](measurements/README.md) has the trained model on each device.

"""
ARCHITECTURES = """## Model architectures

Tiny random models against Hugging Face transformers: the largest difference of a logit, relative to the largest logit,
with exact numerics, as the power of ten above twice what was found. [models.md](models.md) says more.

"""
TOKENIZERS = """
## Tokenizers

Small trained tokenizers against the libraries that models are trained with: all ids of each string are equal.
[tokenizers.md](tokenizers.md) says more.

"""
DEVICES = """
## Devices

Each record says what `shunt verify --devices DEVICE` counted on a device: cases of ops, on awkward shapes and views, that
gave the reference's result, that the device declined with a reason, and that were wrong. The tests that hold devices
against the reference fail where one of them counts otherwise than the record of its kind, or has none.
`tools/support.py --record SHUNT --devices DEVICE` makes a record, on other machines too.

Every row is of the hardware that it names. No GPU of AMD's or Apple's has run Shunt: the records of hip and metal are of
calls passed on to NVIDIA's driver and of simulations. [gpu-checks.md](gpu-checks.md) has what else ran on GPUs, and
[architecture.md](architecture.md) how the code for AMD's is checked without one.

"""
OPS = """
## Ops and dtypes

The dtypes, as an operand or as the result, with which each op runs. *in part*: the device declines some cases with that
dtype, each with a reason that `shunt verify` and `shunt plan --explain` show; a dash: it declines all; *not
tried*: the record is older than the op. Devices that run the same share a column.

"""
# The name of a kind of dtypes when all of them are meant.
KIND_NAMES = {"floating": "floats", "integer": "integers", "quantized": "blocks"}
# (beginning of a label, the remark it needs, the API's name if all of its devices are like this)
REMARKS = (
    ("sim ", "a device that is made up, with the reference's kernels", ""),
    ("cuda simulated", "a driver of the tests, with kernels compiled for the CPU", "simulated"),
    ("hip simulated", "a driver of the tests, with kernels compiled for the CPU", "simulated"),
    ("hip NVIDIA", "calls of HIP passed on to CUDA's driver, not a GPU of AMD", "on CUDA"),
    ("metal Metal on the CPU", "a Metal of the tests, with kernels compiled for the CPU", "simulated"),
    ("webgl2 llvmpipe", "in the tests, on OpenGL ES", ""),
    ("webgl2 ANGLE", "in Chromium", ""),
    ("webgpu google", "in Chromium", ""),
)


def steady(label: str) -> str:
    """The start of a label that is the same on every machine with such a device: no versions, addresses or buses."""
    angle = re.match(r"\S+ ANGLE \([^(]*\([^(]*", label)
    return (angle.group() if angle else re.sub(r" \((?!simulated).*|/.*", "", label)).strip()


def ops_in_order() -> list:
    """None outside a clone, where only the script and the program exist."""
    path = ROOT / "src/ops/ops.def"
    return re.findall(r"^SHUNT_[A-Z_]+\((\w+), \(", path.read_text(encoding="utf-8"), re.MULTILINE) if path.exists() else []


def read_records(path: pathlib.Path) -> list:
    """[{label, emulated, ops: {op: counts}}] of a file with a line per op, in which devices with equal counts are
    grouped."""
    if not path.exists():
        return []
    text = json.loads(path.read_text(encoding="utf-8"))
    records = [device | {"ops": {}} for device in text["devices"]]
    for op, groups in text["ops"].items():
        for devices, counts in groups:
            for device in devices:
                records[device]["ops"][op] = counts
    return records


def write_records(path: pathlib.Path, records: list) -> None:
    records.sort(key=lambda found: found["label"])
    known = ops_in_order()
    lines = []
    ops = list(dict.fromkeys(op for found in records for op in found["ops"]))
    for op in sorted(ops, key=lambda op: known.index(op) if op in known else len(known)):
        groups: dict = {}
        for number, found in enumerate(records):
            if op in found["ops"]:
                groups.setdefault(json.dumps(found["ops"][op]), []).append(number)
        lines.append(f"{json.dumps(op)}: [{', '.join(f'[{devices}, {counts}]' for counts, devices in groups.items())}]")
    devices = [json.dumps({"label": found["label"], "emulated": found["emulated"]}) for found in records]
    between = ",\n  "
    path.write_text(f'{{"devices": [\n  {between.join(devices)}\n],\n"ops": {{\n  {between.join(lines)}\n}}}}\n', encoding="utf-8")


def verified(shunt: str, device: str, ops: list) -> dict | None:
    """Returns None, with an error on stderr, if the program does not get that far."""
    done = subprocess.run([shunt, "verify", *ops, "--devices", device, "--json"], capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        print(f"support.py: {shunt} verify --devices {device}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def record(shunt: str, device: str, chosen: list, path: pathlib.Path) -> bool:
    """Returns whether all cases were right."""
    report = verified(shunt, device, chosen)
    if report is None:
        return False
    for failure in report["failures"]:
        print(f"{failure['device']} FAILED {failure['call']}\n  {failure['what']}\n  once more: {failure['again']}")
    records = {kept["label"]: kept for kept in read_records(path)}
    for found in report["devices"]:
        label = steady(found["label"])
        before = records[label]["ops"] if chosen and label in records else {}
        records[label] = {"label": label, "emulated": found["emulated"], "ops": before | found["ops"]}
        passed, declined, failed = totals(found, list(found["ops"]))
        print(f"{label}: {passed} cases right, {declined} declined, {failed} failed")
    write_records(path, list(records.values()))
    return report["ok"]


def totals(found: dict, ops: list) -> list:
    return [sum(found["ops"][op]["cases"][which] for op in ops if op in found["ops"]) for which in range(3)]


def kept_records() -> list:
    """The processor's records first, then those of each API together."""
    records = read_records(RECORDS)
    labels = [found["label"] for found in records]
    for label in PROCESSOR:
        if label not in labels:
            sys.exit(f"support.py: docs/support.json has no record of {label}; support.py --record SHUNT --devices {label}")
    return sorted(records, key=lambda found: (PROCESSOR + (found["label"],)).index(found["label"]))


def recorded(models_test: str) -> list:
    """Results that the tests of architectures and tokenizers recorded, in order."""
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


@functools.cache
def dtypes_by_kind() -> dict:
    """{kind: dtypes}, in order."""
    text = (ROOT / "src/ops/dtypes.def").read_text(encoding="utf-8")
    kinds: dict = {}
    for name, kind in re.findall(r"^SHUNT_DTYPE\((\w+),.*, (\w+)\)$", text, re.MULTILINE):
        kinds.setdefault(kind, []).append(name)
    return kinds


def in_words(chosen: list) -> str:
    words = []
    for kind, names in dtypes_by_kind().items():
        of_kind = [name for name in names if name in chosen]
        words += [KIND_NAMES[kind]] if of_kind == names else of_kind
    return ", ".join(words)


def outcome(counts: list) -> str:
    passed, declined, failed = counts
    return "wrong" if failed else "declined" if passed == 0 else "in part" if declined else "right"


def cell(found: dict, op: str) -> str:
    if op not in found["ops"]:
        return "not tried"
    dtypes: dict = {}
    for dtype, counts in found["ops"][op].items():
        if dtype != "cases":
            dtypes.setdefault(outcome(counts), []).append(dtype)
    parts = [prefix + in_words(dtypes[what]) for what, prefix in (("wrong", "WRONG: "), ("right", ""), ("in part", "in part "))
             if what in dtypes]
    return "; ".join(parts) or "-"


def api_of(label: str) -> str:
    return label.split(" ")[0]


def remarks_on(label: str) -> list:
    """[(words, name)], see REMARKS."""
    return [(words, name) for beginning, words, name in REMARKS if label.startswith(beginning)]


def api_in_words(api: str, records: list) -> str:
    """The API's name, with what its devices really are if none is the real thing."""
    names = [[name for _, name in remarks_on(found["label"]) if name] for found in records if api_of(found["label"]) == api]
    return f"{api} ({', '.join(dict.fromkeys(sum(names, [])))})" if all(names) else api


def columns_of(records: list, cells_of: typing.Callable) -> dict:
    """{title: cells}: one column for all records with the same cells."""
    alike: dict = {}
    for found in records:
        alike.setdefault(tuple(cells_of(found)), []).append(found)
    return {column_title(group, records): cells for cells, group in alike.items()}


def column_title(group: list, records: list) -> str:
    """Names of APIs whose devices are all in the group, and whole labels of other devices."""
    labels = [found["label"] for found in group]
    strangers = {api_of(found["label"]) for found in records if found["label"] not in labels}
    return ", ".join(dict.fromkeys(label if api_of(label) in strangers else api_in_words(api_of(label), records)
                                   for label in labels))


def ops_table(records: list, ops: list) -> str:
    columns = columns_of(records, lambda found: [cell(found, op) for op in ops])
    return table(["op", *columns], [[op, *cells] for op, *cells in zip(ops, *columns.values())])


def counts_table(records: list, ops: list) -> str:
    """How many ops run with each dtype, counting ops that every record has."""
    ops = [op for op in ops if all(op in found["ops"] for found in records)]
    dtypes = [dtype for names in dtypes_by_kind().values() for dtype in names]
    columns = columns_of(records, lambda found: [str(sum(found["ops"].get(op, {}).get(dtype, [0])[0] > 0 for op in ops))
                                                 for dtype in dtypes])
    alike: dict = {}
    for dtype, *counts in zip(dtypes, *columns.values()):
        alike.setdefault(tuple(counts), []).append(dtype)
    return table(["dtypes", *(f"ops on {title}, of {len(ops)}" for title in columns)],
                 [[", ".join(names), *counts] for counts, names in alike.items() if set(counts) != {"0"}])


def devices_table(records: list, ops: list) -> str:
    rows = []
    for found in records:
        label = found["label"]
        remarks = [words for words, _ in remarks_on(label)]
        if found["emulated"]:
            remarks.insert(0, "emulated on the CPU")
        api, _, name = label.partition(" ")
        name += ")" * (name.count("(") - name.count(")"))
        rows.append([api.split(":")[0], name or label, *map(str, totals(found, ops)), "; ".join(remarks)])
    return table(["API", "device", "right", "declined", "wrong", "remark"], rows)


class Bounds:
    """Exponents of ten that differences stay below: those of `stated` if they hold, so that they need not be equal on
    every processor; otherwise of twice what was found."""

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
    return table(["architecture", "models", *PROCESSOR, "file of `tests/data/architectures`"], rows)


def short_tables(architectures: list, tokenizers: list, bounds: Bounds, counts: str) -> str:
    models: dict = {}
    for test in architectures:
        names, exponent = models.get(test["architecture"], ([], -99))
        models[test["architecture"]] = ([*names, test["models"]], max(exponent, *bounds.of(test)))
    methods: dict = {}
    for test in tokenizers:
        methods.setdefault((test["model"], test["strings"], test["reference"]), []).append(test["tokenizer"])
    return "\n".join([
        table(["architecture", "models", "logits differ from transformers' by"],
              [[name, "; ".join(names), f"<= 1e{exponent} of the largest"] for name, (names, exponent) in models.items()]),
        table(["`tokenizer.ggml.model`", "tokenizers", "strings each", "same ids as"],
              [[model, ", ".join(names), strings, reference] for (model, strings, reference), names in methods.items()]),
        counts,
    ])


def between_marks(text: str, made: str) -> str:
    begin, end = MARKS
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"support.py: README.md needs the lines {begin!r} and {end!r} once each")
    return text[:text.index(begin)] + begin + "\n" + made + "\n" + text[text.index(end):]


def make(models_test: str, check: bool) -> None:
    tests = recorded(models_test)
    architectures = [test for test in tests if "architecture" in test]
    tokenizers = [test for test in tests if "tokenizer" in test]
    records = kept_records()
    reference = next(found for found in records if found["label"] == REFERENCE)
    ops = [op for op in ops_in_order() if op in reference["ops"]]
    before = {path: path.read_text(encoding="utf-8") for path in (FILE, README)}
    bounds = Bounds(before[FILE])
    names = ", ".join(f"*{KIND_NAMES[kind]}*: {' '.join(names)}" for kind, names in dtypes_by_kind().items())
    made = {
        FILE: (INTRODUCTION + ARCHITECTURES + architectures_table(architectures, bounds) + TOKENIZERS +
               table(["tokenizer", "`tokenizer.ggml.model`", "strings", "reference"],
                     [[test["tokenizer"], test["model"], test["strings"], test["reference"]] for test in tokenizers]) +
               DEVICES + devices_table(records, ops) + OPS + names + ".\n\n" + ops_table(records, ops)),
        README: between_marks(before[README], short_tables(architectures, tokenizers, bounds,
                                                           counts_table(records, ops))),
    }
    wrong = []
    for path, text in made.items():
        if not check:
            path.write_text(text, encoding="utf-8")
        elif text != before[path]:
            name = str(path.relative_to(ROOT))
            print("\n".join(difflib.unified_diff(before[path].splitlines(), text.splitlines(), name, "as it is", lineterm="")))
            wrong.append(name)
    if wrong:
        sys.exit(f"support.py: {' and '.join(wrong)} do not say what is there; run tools/support.py MODELS_TEST")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models_test", nargs="?")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--record", metavar="SHUNT")
    parser.add_argument("--devices", metavar="LIST", help="ids with commas between them; without it all that are found")
    parser.add_argument("--ops", metavar="LIST", default="", help="names with commas between them; without it all")
    parser.add_argument("--to", metavar="FILE", type=pathlib.Path, default=RECORDS)
    options = parser.parse_args()
    if (options.models_test is None) == (options.record is None):
        parser.error("give MODELS_TEST or --record SHUNT")
    if options.models_test:
        make(options.models_test, options.check)
        return
    if options.devices:
        devices = options.devices.split(",")
    else:
        done = subprocess.run([options.record, "devices", "--json"], capture_output=True, text=True, check=True)
        devices = [device["id"] for device in json.loads(done.stdout)["devices"]]
    # Tries all, whatever the first one does.
    if not all([record(options.record, device, [op for op in options.ops.split(",") if op], options.to) for device in devices]):
        sys.exit(1)


if __name__ == "__main__":
    main()
