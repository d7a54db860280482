"""What users of llama.cpp type, and typing errors: it works, or one sentence says what to do.

Run by ctest as: python3 habits_test.py PROGRAM
"""

import os
import pathlib
import random
import re
import tempfile
import unittest

from program import ALONE, COMMANDS, CommandLine, MODEL, shunt

TABLE = pathlib.Path(__file__).resolve().parents[2] / "cli" / "habits.def"
ROWS = re.findall(r'^(SHUNT_HABIT\w*)\(((?:[^()"]|"(?:[^"\\]|\\.)*")*)\)', TABLE.read_text(), re.MULTILINE)
FAST = ("--devices", "cpu:simd", *ALONE)


def texts_of(row):
    """The strings of a row; adjacent literals are joined."""
    return ["".join(re.findall(r'"((?:[^"\\]|\\.)*)"', part)).replace('\\"', '"')
            for part in re.split(r',(?=\s*")', row)]


class Habits(CommandLine):
    def same(self, ours, theirs):
        one, other = shunt(*ours), shunt(*theirs)
        self.assertEqual(one.returncode, 0, one.stderr)
        self.assertEqual((other.returncode, other.stdout), (0, one.stdout), f"{theirs}: {other.stderr}")

    def test_a_call_of_llama_cli_gives_the_same_text(self):
        ours = ("run", MODEL, "Once upon", "--tokens", "4", "--seed", "3", "--temperature", "0.5", "--context", "64",
                "--cache-type", "F32", "--strategy", "cpu", *FAST)
        self.same(ours, ("run", "-m", MODEL, "-p", "Once upon", "-n", "4", "-s", "3", "--temp", "0.5", "-c", "64", "-ctk", "f32",
                         "-ctv", "f32", "-ngl", "0", "-t", "1", "-dev", "cpu:simd"))
        self.same(ours, ("run", "--prompt=Once upon", "--n-predict", "4", "--seed=3", "--temp=0.5", "--ctx-size=64", "--model", MODEL,
                         "--cache-type-k=f32", "-fa", "on", "--no-mmap", "-b", "512", "--mlock", *FAST))

    def test_the_prompt_may_come_from_a_file_and_may_begin_with_a_dash(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "prompt.txt")
            pathlib.Path(path).write_text("-n is once\n")
            for words in (("-f", path), ("--file", path), ("-p", "-n is once"), ("--", "-n is once")):
                result = shunt("run", "-m", MODEL, "-n", "1", "--greedy", *FAST, *words)
                self.assertTrue(result.stdout.startswith("-n is once"), result.stderr)
            self.refused(1, "nothing.txt", "run", MODEL, "-f", "nothing.txt")
            self.refused(2, "PROMPT", "run", MODEL, "Once", "-f", path)
        self.refused(2, "-p needs a value", "run", MODEL, "-p")

    def test_what_follows_an_option_of_ours_is_its_value(self):
        result = shunt("run", MODEL, "Once", "-n", "1", "--greedy", "--stop", "-ngl", *FAST)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("-ngl", result.stderr)

    def test_each_row_is_understood_or_answered_with_one_sentence(self):
        self.assertGreater(len(ROWS), 40)
        for kind, row in ROWS:
            spellings, takes, sentence = (texts_of(row) + [""])[:3]
            for name in spellings.split():
                words = [name]
                if kind in ("SHUNT_HABIT", "SHUNT_HABIT_VALUE"):
                    continue
                if takes:
                    words.append("1" if takes == "N" else takes.split()[0])
                result = shunt("run", "nothing.gguf", "x", *words, *FAST)
                self.assertEqual(result.stdout, "")
                self.assertIn(f"{name}: {sentence}", result.stderr)
                if kind == "SHUNT_HABIT_ABSENT":
                    self.assertEqual(result.returncode, 2)
                    self.assertLessEqual(len(result.stderr.splitlines()), 2)
                else:
                    self.assertEqual(result.returncode, 1)
                    self.assertIn("nothing.gguf", result.stderr.splitlines()[1])
                break  # the other spellings are in the same row

    def test_bench_and_quantize_have_theirs(self):
        result = self.data("bench", "model", "-m", MODEL, "-p", "8", "-n", "2", "-r", "1", "-t", "1", *FAST[:2])
        self.assertEqual((result["prompt"] if "prompt" in result else 8, result["threads"]), (8, 1))
        self.refused(2, "no option is named -ngl", "devices", "-ngl", "3")


class Mistakes(CommandLine):
    def test_an_unknown_command_takes_three_lines(self):
        result = shunt("nonsense")
        self.assertEqual((result.returncode, len(result.stderr.splitlines())), (2, 3), result.stderr)
        for command in COMMANDS:
            self.assertIn(command, result.stderr)
        self.refused(2, 'no command is named "inspekt" (did you mean inspect?)', "inspekt")
        self.refused(2, 'no command is named "bench modle" (did you mean bench model?)', "bench", "modle")

    def test_each_command_is_found_with_two_letters_swapped(self):
        seed = random.randrange(2**32)
        print(f"seed {seed}")
        numbers = random.Random(seed)
        for command in [each for each in COMMANDS if " " not in each and len(each) > 3]:
            place = numbers.choice([i for i in range(len(command) - 1) if command[i] != command[i + 1]])
            typo = command[:place] + command[place + 1] + command[place] + command[place + 2:]
            self.refused(2, f"did you mean {command}?", typo)

    def test_names_that_are_nearly_right_are_named(self):
        for words, meant in ((("run", MODEL, "x", "--temprature", "1"), "--temperature"),
                             (("run", MODEL, "x", "--strategy", "gpus"), "gpu"),
                             (("run", MODEL, "x", "--devices", "cpu:smid"), "cpu:simd"),
                             (("run", MODEL, "x", "--cache-type", "BF17"), "BF16"),
                             (("run", MODEL, "x", "--chat", "--template", "lama3"), "llama3"),
                             (("quantize", MODEL, "/nonexistent/x", "Q4_K_N"), "Q4_K_S"),
                             (("make-model", "nanno", "F16", "/nonexistent/x"), "nano"),
                             (("verify", "linearr"), "linear")):
            self.refused(2, f"(did you mean {meant}?)", *words)

    def test_types_are_known_in_any_case(self):
        with tempfile.TemporaryDirectory() as folder:
            for typed, known in (("q8_0", "Q8_0"), ("Bf16", "BF16"), ("q4_k_m", "Q4_K_M"), ("q4_k", "Q4_K_M")):
                path = os.path.join(folder, typed)
                self.assertEqual(self.data("quantize", MODEL, path, typed)["type"], known)
                self.assertEqual(self.data("inspect", path)["file_type"], known)

    def test_numbers_that_are_none_are_refused(self):
        for option in ("--margin", "--timeout", "--temperature", "--top-p", "--min-p", "--repeat-penalty"):
            for number in ("nan", "-nan", "inf", "-inf", "1e999", "x", "1x"):
                self.refused(2, f"{option}: \"{number}\" is not a number", "run", MODEL, "x", f"{option}={number}")

    def test_options_that_contradict_each_other_are_refused(self):
        for words in (("--greedy", "--temperature", "0.5"), ("--greedy", "--top-k", "3"), ("--greedy", "--top-p", "0.5"),
                      ("--greedy", "--min-p", "0.1"), ("--chat", "--raw"), ("--system", "Be brief.", "--raw"),
                      ("--template", "chatml", "--raw"), ("--strategy", "only:cpu:simd", "--devices", "cpu")):
            result = shunt("run", MODEL, "x", *words)
            self.assertEqual(result.returncode, 2, words)
            self.assertIn(words[0], result.stderr)
            self.assertIn([word for word in words if word.startswith("--")][-1], result.stderr)
        self.assertEqual(shunt("run", MODEL, "x", "-n", "1", "--greedy", "--temperature", "0", "--seed", "1", *FAST).returncode, 0)

    def test_faults_that_are_not_understood_are_named(self):
        result = shunt("run", MODEL, "x", *FAST, env={"SHUNT_FAULTS": "cpu:simd explodes"})
        self.assertEqual(result.returncode, 2)
        self.assertIn('SHUNT_FAULTS: the fault "cpu:simd explodes" is not understood', result.stderr)
        self.assertNotIn("--devices", result.stderr)


if __name__ == "__main__":
    unittest.main()
