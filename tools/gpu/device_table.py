#!/usr/bin/env python3
"""Runs the trained model on every device: a row per device and file, as a table in Markdown or as JSON.

device_table.py SHUNT [--devices gl:0,cpu:simd+vulkan:0] [--prompts 2] [--tokens 8] [--json FILE]

Devices joined by + take the layers of the model in turn; their ops are in other rows.

Needs only Python 3 and a folder with the program and its data: a bundle, or a clone after ./dev build. The commands
that made each row follow the table:
greedy          prompts whose first tokens equal those of Hugging Face transformers (F16) or of cpu:scalar
                (other files)
teacher-forced  tokens with the same best successor, if the two best logits of cpu:scalar are more than 0.01
                apart, and the mean negative log likelihood less that of cpu:scalar
verify          cases of all ops that match the reference, that fail, and that the device declines
"""
import argparse
import json
import pathlib
import subprocess
import sys

MARGIN = 1e-2


def on(devices: str) -> list:
    """Returns the options for a row's devices."""
    return ["--devices", devices.replace("+", ","), *(["--strategy", "layers"] if "+" in devices else [])]


def first_that_exists(*candidates: pathlib.Path) -> pathlib.Path:
    for candidate in candidates:
        if candidate.exists():
            return candidate
    sys.exit(f"device_table.py: none of these is there: {', '.join(map(str, candidates))}")


class Table:
    def __init__(self, shunt: str, prompts: int, tokens: int) -> None:
        self.shunt, self.tokens = shunt, tokens
        root = pathlib.Path(__file__).resolve().parent.parent
        data = first_that_exists(root / "data", root.parent / "tests/data")
        self.files = {"F16": data / "tiny-llama-f16.gguf",
                      "Q8_0": first_that_exists(root / "models", root.parent / "models") / "tiny-llama-q8_0.gguf"}
        reference = json.loads((data / "tiny-llama-reference.json").read_text(encoding="utf-8"))
        # The shortest first, since many devices are slow.
        self.prompts = sorted(reference["prompts"], key=lambda prompt: len(prompt["ids"]))[:prompts]
        self.exact: dict[str, list] = {}

    def run(self, *arguments: str) -> dict:
        done = subprocess.run([self.shunt, *arguments, "--json"], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1) or not done.stdout.strip():
            raise RuntimeError(done.stderr.strip() or f"exit {done.returncode}")
        return json.loads(done.stdout.splitlines()[-1])

    def evaluate(self, file: str, device: str, ids: list) -> dict:
        return self.run("eval", str(self.files[file]), "--tokens", " ".join(map(str, ids)), "--every", "--top", "2",
                        "--perplexity", "-c", "128", *on(device))

    def greedy(self, file: str, device: str, prompt: dict) -> list:
        answer = self.run("run", str(self.files[file]), prompt["text"], "-n", str(self.tokens), "--greedy", "--ignore-eos",
                          "-c", "128", *on(device))
        if answer["prompt_tokens"] != prompt["ids"]:
            raise RuntimeError(f"the prompt {prompt['text']!r} gave other token ids than the reference's")
        return answer["tokens"]

    def expected(self, file: str) -> list:
        if file not in self.exact:
            chosen = [prompt["greedy_ids"][:self.tokens] if file == "F16" else self.greedy(file, "cpu:scalar", prompt)
                      for prompt in self.prompts]
            forced = [self.evaluate(file, "cpu:scalar", prompt["ids"] + tokens)
                      for prompt, tokens in zip(self.prompts, chosen)]
            self.exact[file] = list(zip(self.prompts, chosen, forced))
        return self.exact[file]

    def row(self, file: str, device: dict) -> dict:
        same = compared = agreeing = 0
        difference = 0.0
        for prompt, tokens, forced in self.expected(file):
            same += self.greedy(file, device["id"], prompt) == tokens
            mine = self.evaluate(file, device["id"], prompt["ids"] + tokens)
            difference = max(difference, abs(mine["mean_nll"] - forced["mean_nll"]))
            for ours, theirs in zip(mine["top"], forced["top"]):
                if theirs[0]["logit"] - theirs[1]["logit"] < MARGIN:
                    continue
                compared += 1
                agreeing += ours[0]["id"] == theirs[0]["id"]
        return {"greedy": f"{same} of {len(self.prompts)}", "teacher_forced": f"{agreeing} of {compared}",
                "nll_difference": difference, "ok": same == len(self.prompts) and agreeing == compared}

    def verify(self, device: dict) -> dict:
        if "+" in device["id"]:
            return {}
        tallies = self.run("verify", *on(device["id"]))["tallies"]
        return {key: sum(tally[key] for tally in tallies) for key in ("passed", "failed", "declined")}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("shunt")
    parser.add_argument("--devices", help="ids with commas between them; without it all that are found")
    parser.add_argument("--prompts", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--json", help="also write the rows to this file")
    options = parser.parse_args()
    table = Table(options.shunt, options.prompts, options.tokens)
    found = table.run("devices")
    wanted = options.devices.split(",") if options.devices else [device["id"] for device in found["devices"]]
    names = {device["id"]: device["name"] for device in found["devices"]}
    # A simulated device exists once it is named.
    names |= {name: "simulated" for name in wanted if name.startswith("sim:")}
    devices = [{"id": name, "name": " + ".join(names.get(part, "absent") for part in name.split("+"))} for name in wanted]
    rows = []
    for device in devices:
        try:
            checked = table.verify(device)
        except RuntimeError as error:
            checked = {"passed": 0, "failed": 1, "declined": 0, "error": str(error)}
        for file in table.files:
            print(f"{device['id']} {file} ...", file=sys.stderr, flush=True)
            row = {"device": device["id"], "name": device["name"], "file": file, "verify": checked}
            try:
                row |= table.row(file, device)
            except RuntimeError as error:
                row |= {"greedy": "-", "teacher_forced": "-", "nll_difference": None, "ok": False, "error": str(error)}
            row["ok"] = row["ok"] and checked.get("failed", 0) == 0
            if "error" in checked:
                row.setdefault("error", f"verify: {checked['error']}")
            rows.append(row)
    print("| device | name | file | greedy | teacher-forced | difference of NLL | verify: right, failed, declined | |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        difference = "-" if row["nll_difference"] is None else f"{row['nll_difference']:.1e}"
        checked = ", ".join(str(row["verify"][key]) for key in ("passed", "failed", "declined") if row["verify"]) or "-"
        print(f"| {row['device']} | {row['name']} | {row['file']} | {row['greedy']} | {row['teacher_forced']} | "
              f"{difference} | {checked} | "
              f"{'ok' if row['ok'] else row.get('error', 'WRONG')} |")
    for absent in found["absent"]:
        print(f"\n{absent['api']}: absent, {absent['reason']}")
    print(f"\nEach row: {len(table.prompts)} prompts, {table.tokens} tokens each, by these commands:\n\n"
          f"    shunt run FILE PROMPT -n {table.tokens} --greedy --ignore-eos -c 128 --devices DEVICE\n"
          f"    shunt eval FILE --tokens IDS --every --top 2 --perplexity -c 128 --devices DEVICE\n"
          f"    shunt verify --devices DEVICE\n\n"
          f"Devices with + between them: --devices A,B --strategy layers.")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0 if rows and all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
