"""The program as users meet it: exit codes, stdout and stderr, JSON keys, real answers.

Run by ctest as: python3 cli_test.py PROGRAM
"""

import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from program import ALONE, COMMANDS, CommandLine, MODEL, PROGRAM, REFERENCE, SECONDS, STORY, TABLE, shunt

class Usage(CommandLine):
    def test_every_command_has_help_with_an_example_and_json(self):
        overview = shunt("--help").stdout
        self.assertIn("run", COMMANDS)
        for command in COMMANDS:
            text = shunt(*command.split(), "--help")
            self.assertEqual(text.returncode, 0)
            self.assertIn("Example:\n  shunt " + command, text.stdout)
            self.assertIn("--json", text.stdout, command)
            self.assertIn(f"\n  {command} ", overview)

    def test_help_pages_are_plain(self):
        for command in COMMANDS:
            page = shunt(*command.split(), "--help").stdout
            for noise in ("UINT", "REQUIRED", "Excludes", "->", " in [", "Option Group", "default:", "\n\n\n"):
                self.assertNotIn(noise, page, command)
            for line in page.splitlines():
                self.assertLessEqual(len(line), 100, line)
                self.assertEqual(line, line.rstrip())
        page = shunt("run", "--help").stdout
        self.assertIn("Usage: shunt run MODEL [PROMPT] [OPTIONS]\n", page)
        self.assertIn("\n  -n, --tokens N ", page)
        self.assertIn("Dtype of the KV cache: F32, F16, BF16, Q8_0 [F16]\n", page)

    def test_help_before_a_command_shows_its_page(self):
        for command in COMMANDS:
            self.assertEqual(shunt("help", *command.split()).stdout, shunt(*command.split(), "--help").stdout)
        self.assertEqual(shunt("help", "bench").stdout, shunt("bench", "--help").stdout)
        self.assertEqual(shunt("help").stdout, shunt("--help").stdout)
        self.refused(2, "no command is named \"nonsense\"", "help", "nonsense")

    def test_version(self):
        self.assertRegex(shunt("--version").stdout, r"^shunt \d+\.\d+\.\d+\n$")

    def test_a_group_of_commands_lists_them(self):
        self.assertIn("bench model", shunt("bench", "--help").stdout)
        self.refused(2, "bench model", "bench")
        self.refused(2, "bench fly", "bench", "fly")

    def test_wrong_usage_exits_with_2_and_names_the_mistake(self):
        self.refused(2, "a command is missing")
        self.refused(2, "no command is named \"nonsense\"", "nonsense")
        self.refused(2, "MODEL", "run")
        self.refused(2, "no option is named --fast", "run", MODEL, "x", "--fast", "3")
        self.refused(2, "unexpected argument \"time\"", "run", MODEL, "Once", "time", "there")
        self.refused(2, "--top-k: \"many\" is not a number from 0 to", "run", MODEL, "x", "--top-k", "many")
        self.refused(2, "--top-k: \"-1\" is not a number from 0 to", "run", MODEL, "x", "--top-k", "-1")
        self.refused(2, "--threads: \"0\" is not a number from 1 to 1024", "run", MODEL, "x", "--threads", "0")
        self.refused(2, "--temperature: \"hot\" is not a number", "run", MODEL, "x", "--temperature", "hot")
        self.refused(2, "--temperature is -1; it must be 0", "run", MODEL, "x", "--temperature", "-1")
        self.refused(2, "--top-p is 2; it must be above 0", "run", MODEL, "x", "--top-p", "2")
        self.refused(2, "-n, --tokens: \"0\" is not a number from 1 to", "run", MODEL, "x", "-n", "0")
        self.refused(2, "-c, --context: \"4k\" is not a number from 1 to", "run", MODEL, "x", "-c", "4k")
        self.refused(2, "-n, --tokens needs a value: N", "run", MODEL, "x", "-n")
        self.refused(2, "-n, --tokens is given 2 times", "run", MODEL, "x", "-n", "3", "-n", "4")
        self.refused(2, "unexpected argument \"-n\"", "run", MODEL, "--", "-x", "-n", "3")
        self.refused(2, "--seed: \"-1\" is not a number", "run", MODEL, "x", "--seed", "-1")
        self.refused(2, "--seed: \"x\" is not a number", "make-model", "nano", "F16", "/nonexistent/x", "--seed", "x")
        self.refused(2, "\"Q3\" is not one of F32, F16, BF16, Q8_0", "run", MODEL, "x", "--cache-type", "Q3")
        self.refused(2, "--top: \"0\" is not a number from 1", "eval", MODEL, "--text", "x", "--top", "0")
        self.refused(2, "stop text", "run", MODEL, "x", "--stop", "")
        self.refused(2, "--raw", "run", MODEL, "x", "--chat", "--raw")
        self.refused(2, "--chat", "run", MODEL, "x", "--system", "Be brief.")
        self.refused(2, "--chat", "run", MODEL, "x", "--template", "chatml")
        self.refused(2, "--raw", "run", MODEL, "x", "--template", "chatml", "--raw")
        self.refused(2, "\"alpaca\" is not one of gpt-oss, llama3, ", "run", MODEL, "x", "--chat", "--template", "alpaca")
        self.refused(1, "<|start_header_id|>", "run", MODEL, "x", "--chat", "--template", "llama3")
        self.refused(1, "the text is not UTF-8: byte 0xFF at offset 1", "tokenize", MODEL, b"x\xff")
        self.refused(2, "unknown device \"gpu\"", "run", MODEL, "x", "--devices", "gpu")
        self.refused(2, "unknown strategy \"fast\"; choose from: auto gpu cpu layers", "run", MODEL, "x", "--strategy", "fast")
        self.refused(2, "unknown numerics \"exakt\" (did you mean exact?)", "run", MODEL, "x", "--numerics", "exakt")
        self.refused(1, "device \"sim:x\" is absent", "run", MODEL, "x", "--devices", "cpu,sim:x")
        self.refused(2, "rms_norm", "bench", "ops", "nonsense")
        self.refused(2, "reshape", "bench", "ops", "reshape")
        self.refused(2, "168m", "bench", "ops", "add", "--shape", "huge")
        self.refused(2, "unknown device \"gpu\"", "bench", "ops", "add", "--devices", "gpu")
        self.refused(2, "rms_norm", "bench", "check", "nonsense")
        self.refused(2, "no gate", "bench", "check", "swiglu")
        self.refused(2, "--text", "eval", MODEL)
        self.refused(2, "--text", "eval", MODEL, "--text", "x", "--tokens", "1")
        self.refused(2, "\"x\" is not a token id", "eval", MODEL, "--tokens", "1 x")
        self.refused(2, "\"-2\" is not a token id", "eval", MODEL, "--tokens", "1 -2")
        self.refused(2, "no tokens are given", "eval", MODEL, "--tokens", "")
        self.refused(2, "two tokens", "eval", MODEL, "--tokens", "1", "--perplexity")
        self.refused(2, "--against", "eval", MODEL, "--tokens", "1 2", "--perplexity", "--against", "cpu:scalar")
        self.refused(2, "--against: unknown device \"gpu\"", "eval", MODEL, "--tokens", "1 2", "--against", "gpu")
        self.refused(2, "Q9", "quantize", MODEL, "/nonexistent/never.gguf", "Q9")
        self.refused(2, "168m", "make-model", "huge", "F16", "/nonexistent/never.gguf")
        self.refused(2, "Q4_K_M", "make-model", "nano", "Q9", "/nonexistent/never.gguf")
        self.refused(2, "rms_norm", "verify", "normalise")
        self.refused(2, "rms_norm", "verify", "reshape")
        self.refused(2, "3.0.1", "verify", "linear", "--case", "3.x")
        self.refused(2, "--case", "verify", "--case", "3.0.1")

    def test_errors_while_running_exit_with_1_and_say_what_is_wrong(self):
        for command in (["run", "nothing.gguf", "x"], ["inspect", "nothing.gguf"], ["tokenize", "nothing.gguf", "x"],
                        ["eval", "nothing.gguf", "--text", "x"], ["plan", "nothing.gguf"],
                        ["bench", "model", "nothing.gguf"], ["quantize", "nothing.gguf", "/tmp/never.gguf", "Q8_0"]):
            self.refused(1, "nothing.gguf", *command)
        self.refused(1, "GGUF", "inspect", __file__)
        self.refused(1, "outside the vocabulary", "eval", MODEL, "--tokens", "1 5000")
        self.refused(1, "/nonexistent/never.gguf", "quantize", MODEL, "/nonexistent/never.gguf", "Q8_0")
        self.refused(1, "/nonexistent/never.gguf", "make-model", "nano", "F16", "/nonexistent/never.gguf")
        self.refused(1, "stdin is empty", "run", MODEL)

    def test_a_reader_that_leaves_ends_the_program_quietly(self):
        process = subprocess.Popen([PROGRAM, "run", MODEL, STORY, "-n", "500", "--ignore-eos"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        process.stdout.close()
        self.assertNotIn("shunt:", process.stderr.read())
        self.assertEqual(process.wait(SECONDS), 0)
        process.stderr.close()

    def test_a_closed_stdout_is_an_error(self):
        result = subprocess.run(f'"{PROGRAM}" devices >&-', shell=True, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write to stdout", result.stderr)


class Tokens(CommandLine):
    def test_tokenize_gives_the_references_ids(self):
        self.assertEqual(len(REFERENCE["prompts"]), 9)
        for prompt in REFERENCE["prompts"]:
            result = self.data("tokenize", MODEL, prompt["text"])
            self.assertEqual(result["tokens"], prompt["ids"])
            self.assertEqual(len(result["pieces"]), len(prompt["ids"]))

    def test_tokenize_reads_stdin_and_lists_a_token_per_line(self):
        lines = shunt("tokenize", MODEL, stdin=STORY + "\n").stdout.splitlines()
        self.assertEqual([int(line.split()[0]) for line in lines], REFERENCE["prompts"][0]["ids"])

    def test_a_text_may_be_the_name_of_a_command(self):
        self.assertIn("tokens", self.data("tokenize", MODEL, "devices"))

    def test_there_is_never_a_second_bos(self):
        once = self.data("tokenize", MODEL, "Hello")["tokens"]
        self.assertEqual(self.data("tokenize", MODEL, "<s>Hello")["tokens"], once)

    def test_eval_gives_the_references_logits(self):
        for prompt in REFERENCE["prompts"]:
            for devices, cache, tolerance in (("cpu:scalar", "F32", 1e-4), ("cpu", "F16", 1e-2), ("cpu", "q8_0", 1e-1)):
                result = self.data("eval", MODEL, "--text", prompt["text"], "--top", "20", "--devices", devices,
                                   "--cache-type", cache)
                self.assertEqual(result["tokens"], prompt["ids"])
                self.assertEqual(len(result["top"]), 20)
                logits = {entry["id"]: entry["logit"] for entry in result["top"]}
                for token, logit in zip(prompt["top_ids"][:10], prompt["top_logits"]):
                    self.assertAlmostEqual(logits[token], logit, delta=tolerance)

    def test_eval_every_has_a_list_per_position(self):
        tokens = REFERENCE["prompts"][0]["ids"]
        ids = " ".join(map(str, tokens))
        every = self.data("eval", MODEL, "--tokens", ids, "--every", "--top", "2")
        self.assertEqual([len(top) for top in every["top"]], [2] * len(tokens))
        last = self.data("eval", MODEL, "--tokens", ids, "--top", "2")
        self.assertEqual(every["top"][-1][0]["id"], last["top"][0]["id"])
        self.assertEqual((last["mean_nll"], last["perplexity"]), (None, None))

    def test_eval_has_the_references_perplexity(self):
        expected = REFERENCE["perplexity"]
        ids = " ".join(map(str, expected["ids"]))
        result = self.data("eval", MODEL, "--tokens", ids, "--perplexity")
        self.assertAlmostEqual(result["mean_nll"], expected["mean_nll"], delta=1e-3)
        self.assertAlmostEqual(result["perplexity"], expected["ppl"], delta=3e-3)
        self.assertIn("perplexity", shunt("eval", MODEL, "--tokens", ids, "--perplexity").stdout)

    def test_eval_holds_devices_against_others(self):
        for devices in ("cpu:simd", "cpu:scalar"):
            result = self.data("eval", MODEL, "--text", STORY, "--devices", devices, "--against", "cpu:scalar", *ALONE)
            self.assertTrue(result["ok"])
            self.assertEqual(result["tokens"], len(REFERENCE["prompts"][0]["ids"]))
            self.assertEqual(result["same"], result["decided"])
            self.assertGreater(result["decided"], 0)
            self.assertEqual(result["nmse"] == 0, devices == "cpu:scalar")
            self.assertEqual(result["largest_kl"] == 0, devices == "cpu:scalar")
            self.assertLess(result["mean_kl"], 1e-6)
            self.assertAlmostEqual(result["perplexity"], result["exact_perplexity"], delta=1e-3)
        words = shunt("eval", MODEL, "--text", STORY, "--devices", "cpu:simd", "--against", "cpu:scalar", *ALONE).stdout
        self.assertRegex(words, r"^auto numerics against exact ones of cpu:scalar, 10 tokens:\n"
                                r"  mean KL divergence  \S+ nats \(allowed: 0.00015\); largest \S+\n"
                                r"  perplexity          \S+, exact \S+; relative change \S+\n"
                                r"  same best token     10 of 10; (\d+) of the \1 whose two best logits are more than 0.2 apart\n"
                                r"  NMSE of the logits  \S+\n$")

    def test_eval_holds_numerics_against_exact_ones(self):
        for numerics in ("exact", "auto", "fast"):
            call = ("eval", MODEL, "--text", STORY, "--devices", "cpu:simd", "--numerics", numerics, "--against", "exact", *ALONE)
            result = self.data(*call)
            self.assertEqual((result["numerics"], result["ok"], result["same_best"]), (numerics, True, 10))
            words = shunt(*call).stdout
            self.assertIn(f"{numerics} numerics against exact ones of the same devices", words)
            self.assertEqual("NMSE of the logits  0 (allowed: 0.0001)" in words, numerics == "exact")
            self.assertEqual("(allowed: 0.003)" in words, numerics == "fast")
        one = self.data("eval", MODEL, "--tokens", "1", "--against", "exact", *ALONE)
        self.assertEqual((one["perplexity"], one["exact_perplexity"], one["ok"]), (None, None, True))
        self.assertNotIn("perplexity", shunt("eval", MODEL, "--tokens", "1", "--against", "exact", *ALONE).stdout)

    def test_products_of_bytes_change_results_little(self):
        ids = " ".join(map(str, REFERENCE["perplexity"]["ids"]))
        with tempfile.TemporaryDirectory() as folder:
            for dtype in ("Q4_0", "Q4_K_M"):
                path = os.path.join(folder, f"{dtype}.gguf")
                shunt("quantize", MODEL, path, dtype)
                result = self.data("eval", path, "--tokens", ids, "-c", "1100", "--devices", "cpu:simd", "--against", "exact",
                                   *ALONE)
                self.assertTrue(result["ok"], result)
                self.assertLess(result["mean_kl"], 1.5e-4)
                self.assertEqual(result["nmse"] > 0, platform.machine() == "x86_64", "F32 products elsewhere")

    def test_eval_reads_its_text_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "text.txt")
            pathlib.Path(path).write_text(STORY + "\n")
            for option in ("-f", "--file"):
                self.assertEqual(self.data("eval", MODEL, option, path), self.data("eval", MODEL, "--text", STORY))
            self.refused(2, "--file", "eval", MODEL, "-f", path, "--text", "x")
            self.refused(2, "--file", "eval", MODEL, "-f", path, "--tokens", "1")
            pathlib.Path(path).write_text("\n")
            self.refused(1, "text.txt is empty", "eval", MODEL, "-f", path)
            self.refused(1, "text.txt is empty", "run", MODEL, "-f", path)
        self.refused(1, "nothing.txt", "eval", MODEL, "-f", "nothing.txt")

    def test_eval_refuses_what_does_not_fit(self):
        self.refused(1, "do not fit the context of 4", "eval", MODEL, "--tokens", "1 2 3 4 5", "-c", "4")


class Run(CommandLine):
    def test_json_has_the_promised_keys_and_the_references_tokens(self):
        prompt = REFERENCE["prompts"][1]
        result = self.data("run", MODEL, prompt["text"], "--greedy", "-n", "9")
        self.assertEqual(result["prompt_tokens"], prompt["ids"])
        self.assertEqual(result["tokens"], prompt["greedy_ids"][:9])
        self.assertLessEqual({"text", "timings", "devices", "stop", "seed", "context"}, set(result))
        self.assertEqual(set(result["timings"]), {"load_s", "prompt_s", "generate_s", "prompt_tokens_per_s",
                                                  "generate_tokens_per_s"})
        self.assertEqual(result["devices"], ["cpu:simd"])

    def test_layers_in_turn_on_several_devices_give_the_same_tokens(self):
        spread = ("--devices", "cpu:simd,sim:0,sim:1", "--strategy", "layers")
        prompt = REFERENCE["prompts"][0]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            result = self.data("run", MODEL, prompt["text"], "--greedy", "-n", "8", *spread, "--trace", path)
            with open(path, encoding="utf-8") as file:
                events = json.load(file)["traceEvents"]
        self.assertEqual(result["tokens"], prompt["greedy_ids"][:8])
        self.assertEqual(result["devices"], ["cpu:simd", "sim:0", "sim:1"])
        self.assertTrue(any(event["name"].startswith("copy blk.0.") for event in events))
        plan = shunt("plan", MODEL, "--explain", *spread).stdout
        self.assertRegex(plan, r"copy blk\.0\..* from cpu:simd to sim:0")
        self.assertIn("sim:0: placed by hand", plan)

    def test_chat_adds_from_every_file_type(self):
        with tempfile.TemporaryDirectory() as folder:
            for kind in ("F16", "Q8_0", "Q4_K_M"):
                path = os.path.join(folder, kind + ".gguf")
                self.assertEqual(shunt("quantize", MODEL, path, kind).returncode, 0)
                result = shunt("run", path, "--chat", "What is 17 plus 25?", "--greedy", *ALONE)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("42", result.stdout, kind)
                self.assertFalse(result.stdout.startswith(" "))

    def test_a_message_cannot_write_special_tokens(self):
        plain = self.data("run", MODEL, "--chat", "Hello", "-n", "1")["prompt_tokens"]
        end = self.data("tokenize", MODEL, "<|im_end|>")["tokens"][-1]
        tricky = self.data("run", MODEL, "--chat", "Hello<|im_end|>", "-n", "1")["prompt_tokens"]
        self.assertEqual(tricky.count(end), plain.count(end))

    def test_a_template_can_be_chosen(self):
        def prompt(*template):
            return self.data("run", MODEL, "--chat", "Hello", "-n", "1", *template)["prompt_tokens"]

        self.assertEqual(prompt("--template", "chatml"), prompt())
        self.assertNotEqual(prompt("--template", "mistral"), prompt())

    def test_a_system_message_comes_first(self):
        result = self.data("run", MODEL, "Hello", "--chat", "--system", "Be brief.", "-n", "1")
        alone = self.data("run", MODEL, "Hello", "--chat", "-n", "1")
        self.assertGreater(len(result["prompt_tokens"]), len(alone["prompt_tokens"]))

    def test_text_goes_to_stdout_and_the_summary_to_stderr(self):
        result = shunt("run", MODEL, STORY, "-n", "4", "--greedy")
        self.assertEqual(result.returncode, 0)
        self.assertTrue(result.stdout.startswith(STORY))
        self.assertNotIn("tokens/s", result.stdout)
        self.assertIn("cpu:simd, 1 thread\n", shunt("run", MODEL, STORY, "-n", "1", *ALONE).stderr)
        for words in ("cpu:simd", "tokens/s", "context", "ended by: length"):
            self.assertIn(words, result.stderr)
        self.assertNotIn("\033", result.stderr)

    def test_the_seed_is_shown_so_that_a_run_can_be_repeated(self):
        self.assertIn("generated  1 token; ended by: length", shunt("run", MODEL, STORY, "-n", "1").stderr)
        self.assertRegex(shunt("run", MODEL, STORY, "-n", "2").stderr, r"(?m)^seed +\d+$")
        self.assertIn("context    64 tokens (-c)", shunt("run", MODEL, STORY, "-n", "2", "-c", "64").stderr)

    def test_the_prompt_may_come_from_stdin(self):
        result = self.data("run", MODEL, "--greedy", "-n", "2", stdin=STORY + "\n")
        self.assertEqual(result["prompt_tokens"], REFERENCE["prompts"][0]["ids"])

    def test_a_seed_repeats_the_text_and_another_changes_it(self):
        texts = [self.data("run", MODEL, "Once upon a time", "-n", "40", "--temperature", "1.5", "--ignore-eos",
                           "--seed", seed, *ALONE)["text"] for seed in ("7", "7", "8")]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_stop_strings_end_the_text_before_them(self):
        result = self.data("run", MODEL, STORY, "-n", "50", "--greedy", *ALONE, "--stop", "never said", "--stop", " ribbon")
        self.assertEqual(result["stop"], "stop string")
        self.assertTrue(result["text"].endswith("a silver"), result["text"])

    def test_end_tokens_end_the_text_unless_ignored(self):
        chat = ("run", MODEL, "--chat", "What is 17 plus 25?", "--greedy", "-n", "30", *ALONE)
        self.assertEqual(self.data(*chat)["stop"], "end token")
        ignored = self.data(*chat, "--ignore-eos")
        self.assertEqual((ignored["stop"], len(ignored["tokens"])), ("length", 30))

    def test_a_full_context_is_a_clear_error(self):
        result = shunt("run", MODEL, "Once upon a time", "-c", "16", "--ignore-eos", "--greedy")
        self.assertEqual(result.returncode, 1)
        self.assertIn("the context of 16 tokens is full; choose a larger one with -c, or generate fewer with -n",
                      result.stderr)
        self.refused(1, "the context holds 16", "run", MODEL, "word " * 40, "-c", "16")

    def test_a_context_beyond_the_models_is_noted(self):
        result = shunt("run", MODEL, "Once", "-c", "4096", "-n", "1")
        self.assertEqual(result.returncode, 0)
        self.assertIn("made for 2048 tokens", result.stderr)

    def test_interrupt_ends_with_the_summary(self):
        process = subprocess.Popen([PROGRAM, "run", MODEL, "Once", "--ignore-eos", "-c", "2048"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.read(8)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=SECONDS)
        self.assertIn("ended by: interrupted", words)
        self.assertEqual(process.returncode, 130)

    def test_a_trace_is_json_with_every_step_and_every_op(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            self.data("run", MODEL, "Once", "-n", "3", "--greedy", "--trace", path)
            events = json.loads(pathlib.Path(path).read_text())["traceEvents"]
            kinds = [event["cat"] for event in events if event["ph"] == "X"]
            self.assertEqual(kinds.count("program"), 3, set(kinds))
            names = [event["name"] for event in events if event["ph"] == "X" and event["cat"] == "op"]
            self.assertEqual(len(names) % 3, 0)
            self.assertGreater(len(names), 3 * 20)
        self.refused(1, "/nonexistent/trace.json", "run", MODEL, "Once", "-n", "3", "--trace", "/nonexistent/trace.json")

    def test_a_trace_replaces_no_model_and_stays_away_after_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            model, link, kept = (os.path.join(folder, name) for name in ("y.gguf", "link.gguf", "kept.json"))
            shutil.copy(MODEL, model)
            os.symlink(model, link)
            pathlib.Path(kept).write_text("kept")
            for trace in (model, link):
                for command in (("run", model, "Once"), ("eval", model, "--text", "Once"), ("bench", "model", model)):
                    self.refused(2, "--trace and MODEL are the same file", *command, "--trace", trace)
            for trace in (kept, os.path.join(folder, "new.json")):
                self.refused(1, "no-such.gguf", "run", "no-such.gguf", "Once", "--trace", trace)
            self.refused(1, "not a regular file", "run", model, "Once", "--trace", folder)
            self.assertEqual(sorted(os.listdir(folder)), ["kept.json", "link.gguf", "y.gguf"])
            self.assertEqual(pathlib.Path(kept).read_text(), "kept")
            self.assertEqual(pathlib.Path(model).read_bytes(), pathlib.Path(MODEL).read_bytes())

    def test_a_trace_replaces_a_file_that_a_link_names(self):
        with tempfile.TemporaryDirectory() as folder:
            target, link = (os.path.join(folder, name) for name in ("target.json", "link.json"))
            pathlib.Path(target).write_text("old")
            os.symlink(target, link)
            self.data("run", MODEL, "Once", "-n", "3", "--greedy", "--trace", link)
            self.assertTrue(os.path.islink(link))
            self.assertIn("traceEvents", json.loads(pathlib.Path(target).read_text()))
            self.assertEqual(sorted(os.listdir(folder)), ["link.json", "target.json"])


class Files(CommandLine):
    def test_devices_says_what_is_there_and_what_is_not(self):
        result = self.data("devices")
        self.assertEqual([device["id"] for device in result["devices"]][:2], ["cpu:simd", "cpu:scalar"])
        for key in ("name", "type", "memory_bytes", "compute_units", "features", "emulated", "driver"):
            self.assertIn(key, result["devices"][0])
        absent = {row["api"]: row["reason"] for row in result["absent"]}
        self.assertIn("sim:0", absent["sim"])
        apis = {device["id"].split(":")[0] for device in result["devices"]} | set(absent)
        self.assertGreaterEqual(apis, {"cpu", "cuda", "hip", "vulkan", "gl", "gles", "webgpu", "sim"})
        self.assertTrue(all(absent.values()))
        self.assertIn("cpu:simd", shunt("devices").stdout)

    def test_inspect_shows_metadata_and_tensors(self):
        result = self.data("inspect", MODEL)
        self.assertEqual((result["architecture"], result["version"], len(result["tensors"]) > 50), ("llama", 3, True))
        self.assertEqual(sum(tensor["bytes"] for tensor in result["tensors"]), result["tensor_bytes"])
        text = shunt("inspect", MODEL).stdout
        self.assertIn("llama.block_count", text)
        self.assertIn(", ...]", text)
        self.assertNotIn("blk.0.attn_q.weight", text)
        self.assertIn("blk.0.attn_q.weight", shunt("inspect", MODEL, "--tensors").stdout)

    def test_inspect_shows_files_of_types_that_shunt_does_not_compute_with(self):
        data = pathlib.Path(MODEL).read_bytes()
        place = data.index(b"blk.0.attn_q.weight") + len(b"blk.0.attn_q.weight")
        rank = int.from_bytes(data[place:place + 4], "little")
        place += 4 + 8 * rank
        names = re.findall(r'^SHUNT_FOREIGN_TYPE\("([^"]+)", (\d+), (\d+), (\d+)\)',
                           (TABLE.parents[1] / "src/models/gguf/foreign_types.def").read_text(), re.MULTILINE)
        self.assertGreater(len(names), 20)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "foreign.gguf")
            for name, number, _, block_bytes in [*names, ("type 99", "99", "1", "0")]:
                pathlib.Path(path).write_bytes(data[:place] + int(number).to_bytes(4, "little") + data[place + 4:])
                result = self.data("inspect", path)
                tensor = next(each for each in result["tensors"] if each["name"] == "blk.0.attn_q.weight")
                self.assertEqual(tensor["dtype"], name)
                self.assertEqual(tensor["bytes"] > 0, block_bytes != "0")
                self.assertEqual([each["dtype"] for each in result["dtypes"] if not each["computed"]], [name])
                self.refused(1, f'tensor "blk.0.attn_q.weight" is of {name if name == "type 99" else "type " + name}: ', "tokenize", path, "x")
            self.assertIn("Shunt does not compute with this type", shunt("inspect", path).stdout)

    def test_inspect_bounds_its_columns_so_that_one_long_name_widens_no_other_line(self):
        def text(content):
            return len(content).to_bytes(8, "little") + content

        long = b"k" * 60000
        tensors = [b"t" * 60000] + [b"t%d" % i for i in range(2000)]
        keys = [long] + [b"k%d" % i for i in range(8000)]
        data = b"GGUF" + (3).to_bytes(4, "little") + len(tensors).to_bytes(8, "little") + len(keys).to_bytes(8, "little")
        data += b"".join(text(key) + (7).to_bytes(4, "little") + b"\x01" for key in keys)
        for i, name in enumerate(tensors):
            data += text(name) + (1).to_bytes(4, "little") + (8).to_bytes(8, "little") + bytes(4) + (32 * i).to_bytes(8, "little")
        data += bytes(-len(data) % 32 + 32 * len(tensors))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "wide.gguf")
            pathlib.Path(path).write_bytes(data)
            done = shunt("inspect", path, "--tensors")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLess(len(done.stdout), 4 * len(data))
            self.assertLess(max(map(len, done.stdout.splitlines())), 200)
            self.assertIn("k" * 61 + "...  true\n", done.stdout)
            self.assertIn("\nk7999" + 59 * " " + "  true\n", done.stdout)
            self.assertIn("\n" + "t" * 61 + "...  F32 ", done.stdout)
            whole = self.data("inspect", path)
            self.assertEqual(whole["metadata"][0]["key"], long.decode())
            self.assertEqual(whole["tensors"][0]["name"], "t" * 60000)

    def test_inspect_json_has_the_values_of_metadata_typed_and_whole(self):
        values = {entry["key"]: entry["value"] for entry in self.data("inspect", MODEL)["metadata"]}
        self.assertEqual(values["general.name"], "tiny-llama")
        self.assertEqual(values["llama.block_count"], 6)
        self.assertAlmostEqual(values["llama.attention.layer_norm_rms_epsilon"], 1e-5)
        self.assertIs(values["tokenizer.ggml.add_bos_token"], True)
        self.assertEqual(values["tokenizer.ggml.tokens"][:3], ["<unk>", "<s>", "</s>"])
        for key, kind in (("tokens", str), ("scores", float), ("token_type", int)):
            self.assertEqual([type(value) for value in values["tokenizer.ggml." + key]], [kind] * 1991)
        self.assertNotIn("...", values["tokenizer.chat_template"])

    def test_plan_explains_each_op_and_puts_none_on_the_scalar_device(self):
        plan = self.data("plan", MODEL, "-c", "1024")
        self.assertEqual(plan["context"], 1024)
        for phase in ("prompt", "generation"):
            self.assertEqual({unit["device"] for unit in plan[phase]["units"]}, {"cpu:simd"})
            for unit in plan[phase]["units"]:
                self.assertEqual(len(unit["candidates"]), 2)
        self.assertEqual(plan["predicted_peak_bytes"], sum(plan["memory"].values()))
        self.assertEqual(plan["memory"]["cache_bytes"], 6 * 2 * 1024 * 128 * 2)
        self.assertIn("cpu:scalar: higher predicted cost", shunt("plan", MODEL, "--explain").stdout)

    def test_quantize_writes_a_smaller_file_and_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "small.gguf")
            result = self.data("quantize", MODEL, path, "Q4_0", "--threads", "2")
            self.assertEqual(result["bytes_out"], os.path.getsize(path))
            self.assertEqual(result["bytes_in"], os.path.getsize(MODEL))
            self.assertLess(result["bytes_out"], result["bytes_in"] / 2)
            self.assertEqual(self.data("inspect", path)["file_type"], "Q4_0")
            self.assertEqual(os.listdir(folder), ["small.gguf"])
            self.assertGreater(result["converted_tensors"], 40)

    def test_quantize_says_when_there_was_nothing_to_convert(self):
        with tempfile.TemporaryDirectory() as folder:
            again = shunt("quantize", MODEL, os.path.join(folder, "same.gguf"), "F16")
            self.assertEqual(again.returncode, 0)
            self.assertIn("No tensor was converted", again.stderr)
            smaller = shunt("quantize", MODEL, os.path.join(folder, "small.gguf"), "Q8_0")
            self.assertNotIn("No tensor was converted", smaller.stderr)

    def test_quantize_replaces_neither_its_source_nor_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.gguf")
            os.symlink(MODEL, path)
            before = pathlib.Path(MODEL).read_bytes()
            self.refused(2, "the same file", "quantize", MODEL, path, "Q8_0")
            self.refused(2, "the same file", "quantize", MODEL, MODEL, "Q8_0")
            self.refused(1, "is not a regular file", "quantize", MODEL, folder, "Q8_0")
            self.assertEqual(pathlib.Path(MODEL).read_bytes(), before)

    def test_a_full_disk_is_a_clear_error_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            command = ["sh", "-c", "ulimit -f 100; trap '' XFSZ; exec \"$@\"", "sh", PROGRAM]
            for arguments in (["make-model", "168m", "Q8_0"], ["quantize", MODEL]):
                path = os.path.join(folder, "model.gguf")
                order = [path, "Q8_0"] if arguments[0] == "quantize" else [path]
                result = subprocess.run([*command, *arguments, *order], capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(f"{path}: cannot write beyond byte", result.stderr)
                self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
