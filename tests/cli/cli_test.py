"""The program as a user meets it: exit codes, what goes to stdout and stderr, JSON keys, real answers.

Run by ctest as: python3 cli_test.py PROGRAM
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
MODEL = str(DATA / "tiny-llama-f16.gguf")
REFERENCE = json.loads((DATA / "tiny-llama-reference.json").read_text())
COMMANDS = ["run", "devices", "inspect", "tokenize", "eval", "quantize", "plan", "make-model", "bench"]


def shunt(*arguments, stdin="", env=None):
    return subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, text=True, timeout=500,
                          env={**os.environ, **(env or {})})


class CommandLine(unittest.TestCase):
    def data(self, *arguments, **keywords):
        result = shunt(*arguments, "--json", **keywords)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def refused(self, code, words, *arguments, **keywords):
        result = shunt(*arguments, **keywords)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertIn(words, result.stderr)


class Usage(CommandLine):
    def test_every_command_has_help_with_an_example_and_json(self):
        for command in COMMANDS:
            text = shunt(command, "--help")
            self.assertEqual(text.returncode, 0)
            self.assertIn("Example:\n  shunt " + command, text.stdout)
            if command != "bench":
                self.assertIn("--json", text.stdout, command)
        self.assertIn("--json", shunt("bench", "model", "--help").stdout)
        overview = shunt("--help").stdout
        for command in COMMANDS:
            self.assertIn(command, overview)

    def test_wrong_usage_exits_with_2(self):
        self.refused(2, "", "nonsense")
        self.refused(2, "", )
        self.refused(2, "--top-k", "run", MODEL, "x", "--top-k", "many")
        self.refused(2, "--threads", "run", MODEL, "x", "--threads", "0")
        self.refused(2, "", "eval", MODEL)

    def test_errors_while_running_exit_with_1_and_say_what_is_wrong(self):
        self.refused(1, "nothing.gguf", "run", "nothing.gguf", "x")
        self.refused(1, "GGUF", "inspect", __file__)
        self.refused(1, "unknown device \"gpu\"", "run", MODEL, "x", "--devices", "gpu")
        self.refused(1, "temperature", "run", MODEL, "x", "--temperature", "-1")
        self.refused(1, "Q3", "run", MODEL, "x", "--cache-type", "Q3")
        self.refused(1, "no token id", "eval", MODEL, "--tokens", "1 x")
        self.refused(1, "outside the vocabulary", "eval", MODEL, "--tokens", "1 5000")
        self.refused(1, "Q9", "quantize", MODEL, "/tmp/never.gguf", "Q9")
        self.refused(1, "168m", "make-model", "huge", "F16", "/tmp/never.gguf")

    def test_a_closed_stdout_is_an_error_not_a_signal(self):
        process = subprocess.Popen([PROGRAM, "run", MODEL, "Once upon a time", "-n", "500", "--ignore-eos"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        process.stderr.read()
        self.assertEqual(process.wait(), 1)
        process.stderr.close()


class Tokens(CommandLine):
    def test_tokenize_gives_the_references_ids(self):
        self.assertEqual(len(REFERENCE["prompts"]), 9)
        for prompt in REFERENCE["prompts"]:
            self.assertEqual(self.data("tokenize", MODEL, prompt["text"])["tokens"], prompt["ids"])

    def test_eval_gives_the_references_logits(self):
        for prompt in REFERENCE["prompts"][:3]:
            for devices, cache, tolerance in (("cpu:scalar", "F32", 1e-4), ("cpu", "F16", 1e-2)):
                result = self.data("eval", MODEL, "--text", prompt["text"], "--top", "20", "--devices", devices,
                                   "--cache-type", cache)
                self.assertEqual(result["tokens"], prompt["ids"])
                logits = {entry["id"]: entry["logit"] for entry in result["top"]}
                for token, logit in zip(prompt["top_ids"][:10], prompt["top_logits"]):
                    self.assertAlmostEqual(logits[token], logit, delta=tolerance)

    def test_eval_every_has_a_list_per_position(self):
        result = self.data("eval", MODEL, "--tokens", "1 676 677", "--every", "--top", "2")
        self.assertEqual([len(top) for top in result["top"]], [2, 2, 2])

    def test_eval_has_the_references_perplexity(self):
        expected = REFERENCE["perplexity"]
        ids = " ".join(map(str, expected["ids"]))
        result = self.data("eval", MODEL, "--tokens", ids, "--perplexity")
        self.assertAlmostEqual(result["mean_nll"], expected["mean_nll"], delta=1e-3)
        self.assertAlmostEqual(result["perplexity"], expected["ppl"], delta=3e-3)


class Run(CommandLine):
    def test_json_has_the_promised_keys_and_the_references_tokens(self):
        prompt = REFERENCE["prompts"][1]
        result = self.data("run", MODEL, prompt["text"], "--greedy", "-n", "9")
        self.assertEqual(result["prompt_tokens"], prompt["ids"])
        self.assertEqual(result["tokens"], prompt["greedy_ids"][:9])
        for key in ("text", "timings", "devices", "stop", "seed", "context"):
            self.assertIn(key, result)
        self.assertEqual(result["devices"], ["cpu:simd"])

    def test_chat_adds_from_every_file_type(self):
        with tempfile.TemporaryDirectory() as folder:
            for kind in ("F16", "Q8_0", "Q4_K_M"):
                path = os.path.join(folder, kind + ".gguf")
                self.assertEqual(shunt("quantize", MODEL, path, kind).returncode, 0)
                result = shunt("run", path, "--chat", "What is 17 plus 25?", "--greedy")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("42", result.stdout, kind)

    def test_text_goes_to_stdout_and_the_summary_to_stderr(self):
        result = shunt("run", MODEL, "Once upon a time", "-n", "4", "--greedy")
        self.assertEqual(result.returncode, 0)
        self.assertTrue(result.stdout.startswith("Once upon a time"))
        self.assertNotIn("tokens/s", result.stdout)
        self.assertIn("tokens/s", result.stderr)
        self.assertIn("cpu:simd", result.stderr)
        self.assertNotIn("\033", result.stderr)

    def test_the_prompt_may_come_from_stdin(self):
        result = self.data("run", MODEL, "--greedy", "-n", "2", stdin=REFERENCE["prompts"][0]["text"] + "\n")
        self.assertEqual(result["prompt_tokens"], REFERENCE["prompts"][0]["ids"])

    def test_a_seed_repeats_the_text_and_another_changes_it(self):
        texts = [self.data("run", MODEL, "Once upon a time", "-n", "40", "--temperature", "1.5", "--ignore-eos",
                           "--seed", seed)["text"] for seed in ("7", "7", "8")]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_stop_strings_end_the_text_before_them(self):
        result = self.data("run", MODEL, REFERENCE["prompts"][0]["text"], "-n", "50", "--greedy", "--stop", " ribbon")
        self.assertEqual(result["stop"], "stop string")
        self.assertTrue(result["text"].endswith("a silver"))

    def test_end_tokens_end_the_text_unless_ignored(self):
        chat = ("run", MODEL, "--chat", "What is 17 plus 25?", "--greedy", "-n", "30")
        self.assertEqual(self.data(*chat)["stop"], "end token")
        ignored = self.data(*chat, "--ignore-eos")
        self.assertEqual((ignored["stop"], len(ignored["tokens"])), ("length", 30))

    def test_a_full_context_is_a_clear_error(self):
        result = shunt("run", MODEL, "Once upon a time", "-c", "16", "--ignore-eos", "--greedy")
        self.assertEqual(result.returncode, 1)
        self.assertIn("context of 16 tokens is full", result.stderr)
        self.refused(1, "do not fit", "run", MODEL, "word " * 40, "-c", "16")

    def test_interrupt_ends_with_the_summary(self):
        process = subprocess.Popen([PROGRAM, "run", MODEL, "Once", "--ignore-eos", "-c", "2048"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.read(8)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=100)
        self.assertIn("interrupted", words)
        self.assertEqual(process.returncode, 130)

    def test_a_trace_is_json_with_an_event_per_step(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            self.data("run", MODEL, "Once", "-n", "3", "--greedy", "--trace", path)
            events = json.loads(pathlib.Path(path).read_text())["traceEvents"]
            self.assertEqual(sum(event["ph"] == "X" for event in events), 3)


class Files(CommandLine):
    def test_devices_inspect_and_plan_have_their_keys(self):
        self.assertEqual([device["id"] for device in self.data("devices")["devices"]], ["cpu:simd", "cpu:scalar"])
        self.assertEqual(self.data("inspect", MODEL)["architecture"], "llama")
        plan = self.data("plan", MODEL)
        for phase in ("prompt", "generation"):
            self.assertEqual({unit["device"] for unit in plan[phase]["units"]}, {"cpu:simd"})
            for unit in plan[phase]["units"]:
                self.assertEqual(len(unit["candidates"]), 2)
        self.assertIn("cpu:scalar: higher predicted cost", shunt("plan", MODEL, "--explain").stdout)

    def test_bench_of_a_random_model(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "nano.gguf")
            self.assertEqual(shunt("make-model", "nano", "Q8_0", path).returncode, 0)
            result = self.data("bench", "model", path, "--prompt", "8", "--generate", "4", "--repetitions", "1")
            self.assertGreater(result["prompt_tokens_per_s"]["median"], 0)
            self.assertGreater(result["generate_tokens_per_s"]["median"], 0)


if __name__ == "__main__":
    unittest.main()
