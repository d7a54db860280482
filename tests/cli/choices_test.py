"""tools/gpu/choices.py: it measures the automatic choice and those by hand, and compares them.

Run by ctest as: python3 choices_test.py PROGRAM
"""

import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import types
import unittest

from program import MODEL, PROGRAM, SECONDS

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools" / "gpu"
sys.path.insert(0, str(TOOLS))
import choices  # noqa: E402 (its folder is known only now)


def measured(*times_ms, why=""):
    choice = choices.Choice([])
    choice.why = why
    choice.rounds = [{"prompt": 1.0, "generate": 1.0, "ms": float(ms), "devices": "cpu:simd"} for ms in times_ms]
    return choice


class Choices(unittest.TestCase):
    def compare(self, program, *arguments):
        return subprocess.run([sys.executable, TOOLS / "choices.py", program, "--models", MODEL, "--prompt", "8", "--generate", "2",
                               "--rounds", "2", *arguments], capture_output=True, text=True, timeout=SECONDS, check=False)

    def test_each_choice_is_measured_and_one_that_fails_says_why(self):
        result = self.compare(PROGRAM, "--devices", "sim:0,cpu:simd,cuda:99", "--threads", "1", "--parts", "0.5")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", result.stdout, re.MULTILINE))
        self.assertEqual({name for name in rows if "cuda:99" not in name},
                         {"tiny-llama-f16.gguf", "automatic", "sim:0", "cpu:simd", "cpu:simd, 1 thread", "sim:0 and cpu:simd",
                          "sim:0 for 50% of weights, cpu:simd", "sim:0 and cpu:simd by layers", "sim:0 first, cpu:simd"})
        self.assertEqual((rows["sim:0"], rows["cpu:simd, 1 thread"]), ("sim:0", "cpu:simd"))
        self.assertEqual(set(rows["sim:0 and cpu:simd by layers"].split(", ")), {"sim:0", "cpu:simd"})
        self.assertRegex(rows["cuda:99"], "^failed: .*cuda:99")
        self.assertRegex(result.stdout, r"\nautomatic / best \(.+\): \d+\.\d{3} \(\d+\.\d{3} \.\. \d+\.\d{3}\)\n")

    def test_the_automatic_choice_has_no_option_and_takes_turns_with_the_others(self):
        with tempfile.TemporaryDirectory() as folder:
            calls = pathlib.Path(folder, "calls")
            program = pathlib.Path(folder, "shunt")
            program.write_text(f"#!/bin/sh\necho \"$@\" >>'{calls}'\nexec '{pathlib.Path(PROGRAM).resolve()}' \"$@\"\n")
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
            result = self.compare(program, "--devices", "cpu:simd", "--threads", "1")
            self.assertEqual(result.returncode, 0, result.stderr)
            common = f"bench model {MODEL} -c 10 --prompt 8 --generate 2 --repetitions 1"
            round_of_calls = [f"{common} --json", f"{common} --devices cpu:simd --json", f"{common} --devices cpu:simd --threads 1 --json"]
            self.assertEqual(calls.read_text().splitlines(), 2 * round_of_calls)

    def test_a_budget_holds_for_every_choice_with_a_gpu(self):
        found = choices.choices_of(["sim:0", "cpu:simd"], [2], [0.5], 1000, 600)
        self.assertEqual(found["automatic"], ["--budget", "sim:0=600B"])
        self.assertEqual(found["sim:0"], ["--devices", "sim:0", "--budget", "sim:0=600B"])
        self.assertEqual(found["cpu:simd, 2 threads"], ["--devices", "cpu:simd", "--threads", "2"])
        both = ["--devices", "sim:0,cpu:simd", "--budget"]
        self.assertEqual(found["sim:0 for 50% of the budget, cpu:simd"], [*both, "sim:0=300B"])
        self.assertEqual(found["sim:0 first, cpu:simd"], [*both, "sim:0=600B", "--strategy", "gpu"])

    def test_the_ratio_is_that_of_the_best_by_hand_round_by_round(self):
        found = {"automatic": measured(10, 20, 30), "a": measured(8, 18, 33), "b": measured(40, 40, 40), "c": measured(1, why="lost")}
        self.assertEqual(choices.verdict_of(found), "automatic / best (a): 0.900 (0.800 .. 1.100)")
        self.assertEqual(choices.verdict_of({"automatic": measured(1), "a": measured(why="no memory")}),
                         "nothing to compare: every choice by hand failed")
        self.assertEqual(choices.verdict_of({"automatic": measured(why="no memory"), "a": measured(1)}), "nothing to compare: no memory")
        table = choices.table_of("m", found, types.SimpleNamespace(prompt=8, generate=2)).splitlines()
        self.assertEqual([line.split(" | ")[0] for line in table[2:]], ["| a", "| automatic", "| b", "| c"])
        self.assertIn("| failed: lost |", table[-1])


if __name__ == "__main__":
    unittest.main()
