"""The program on a terminal: chats, colours, progress and Ctrl-C.

Run by ctest as: python3 terminal_test.py PROGRAM
"""

import os
import pathlib
import re
import signal
import tempfile
import unittest

from program import COMMANDS, CommandLine, MODEL, Terminal, shunt


class OnATerminal(CommandLine):
    def test_a_chat_remembers_and_ends_with_the_summary(self):
        chat = Terminal("run", MODEL, "--greedy")
        chat.wait_for("> ")
        chat.type("  \n")
        self.assertNotIn("\n", chat.wait_for("> ").replace("  \r\n", ""))
        chat.type("What is 17 plus 25?\n")
        self.assertIn("42", chat.wait_for("> "))
        chat.type("What is 3 plus 4?\n")
        self.assertIn("7", chat.wait_for("> "))
        chat.type("\x04")
        code, shown = chat.end()
        self.assertEqual(code, 0, shown)
        self.assertIn("tokens/s", shown)

    def test_a_message_that_does_not_fit_ends_a_chat_with_an_error(self):
        chat = Terminal("run", MODEL, "-c", "32")
        chat.wait_for("> ")
        chat.type("word " * 40 + "\n")
        code, shown = chat.end()
        self.assertEqual(code, 1, shown)
        self.assertIn("the context holds 32", shown)
        self.assertNotIn("tokens/s", shown)

    def test_a_full_context_ends_a_chat_with_the_summary_and_an_error(self):
        chat = Terminal("run", MODEL, "-c", "32", "--ignore-eos")
        chat.wait_for("> ")
        chat.type("Tell me a story.\n")
        code, shown = chat.end()
        self.assertEqual(code, 1, shown)
        self.assertIn("tokens/s", shown)
        self.assertIn("the context of 32 tokens is full; choose a larger one with -c, or begin a new chat", shown)

    def test_a_large_model_shows_that_it_is_read_and_ctrl_c_ends_that(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "large.gguf")
            self.assertEqual(shunt("make-model", "168m", "F16", path).returncode, 0)
            reader = Terminal("run", path, "Once", "--ignore-eos")
            reader.wait_for("reading " + path)
            reader.process.send_signal(signal.SIGINT)
            self.assertEqual(reader.end()[0], 130)
            self.assertNotIn("reading", shunt("run", path, "Once", "-n", "1").stderr)

    def test_notices_within_the_text_have_lines_of_their_own(self):
        for fault in (200, 300, 340):
            run = Terminal("run", MODEL, "Once upon a time", "-n", "12", "--greedy", "--devices", "sim:0,cpu:scalar",
                           "--strategy", "layers", env={"SHUNT_FAULTS": f"sim:0 lost at op {fault}", "NO_COLOR": "1"})
            code, shown = run.end()
            self.assertEqual(code, 0, shown)
            lines = [line.split("\x1b[K")[-1] for line in shown.splitlines() if "sim:0 failed" in line]
            self.assertEqual([line.index("sim:0 failed") for line in lines], [0], shown)

    def test_ctrl_c_at_the_prompt_ends_a_chat(self):
        for _ in range(20):  # the signal may arrive before the program waits, or during the wait
            chat = Terminal("run", MODEL)
            chat.wait_for("> ")
            chat.process.send_signal(signal.SIGINT)
            self.assertEqual(chat.end()[0], 130)

    def test_ctrl_c_ends_a_reply_and_the_chat_goes_on(self):
        chat = Terminal("run", MODEL, "--ignore-eos", "--greedy")
        chat.wait_for("> ")
        chat.type("Tell me a story.\n")
        chat.wait_for("\n")  # the echo of the input
        while len(chat.shown) < 8:
            chat.shown += os.read(chat.file, 1).decode(errors="replace")
        chat.process.send_signal(signal.SIGINT)
        chat.wait_for("> ")
        chat.type("\x04")
        self.assertEqual(chat.end()[0], 0)

    def test_colours_appear_unless_no_color_is_set(self):
        _, coloured = Terminal("run", MODEL, "Once", "-n", "1").end()
        self.assertIn("\033[2m", coloured)
        _, plain = Terminal("run", MODEL, "Once", "-n", "1", env={"NO_COLOR": "1"}).end()
        self.assertNotIn("\033[2m", plain)
        self.assertIn("tokens/s", plain)

    def test_a_model_without_a_template_says_what_to_do(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "no-template.gguf")
            content = pathlib.Path(MODEL).read_bytes()
            pathlib.Path(path).write_bytes(content.replace(b"tokenizer.chat_template", b"tokenizer.chat_nothing!", 1))
            code, shown = Terminal("run", path).end()
            self.assertEqual(code, 1)
            self.assertIn("--raw", shown)
            self.refused(1, "no chat template", "run", path, "Hello", "--chat")

    def test_an_interrupted_file_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.gguf")
            for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
                writer = Terminal("make-model", "1b", "F32", path)
                writer.wait_for("writing ")
                writer.process.send_signal(number)
                ended, shown = writer.end()
                self.assertEqual(ended, code, shown)
                self.assertIn("interrupted after", shown)
                self.assertEqual(os.listdir(folder), [])

    def test_nothing_from_a_file_or_an_argument_steers_a_terminal(self):
        hostile = "\x1b]0;t\x07\x1b[2J\x7f\r\x08\u009b\u202e\u2066"
        start = b"\x1b[2J\x07\r\x7f\xc2\x9b\xe2\x80\xae\xff"
        names = (b"blk.0.attn_q.weight", b"tokenizer.chat_template", b"general.architecture", b"llama.block_count")
        with tempfile.TemporaryDirectory() as folder:
            calls = [(command, f"{folder}/{hostile}") for command in COMMANDS]
            calls += [(hostile,), ("run", "--" + hostile), ("run", MODEL, hostile, "-n", "1", "--raw"),
                      ("tokenize", MODEL, hostile), ("devices", "--devices", hostile)]
            content = pathlib.Path(MODEL).read_bytes()
            for number, name in enumerate(names):
                self.assertIn(name, content)
                path = os.path.join(folder, f"{number}{hostile}.gguf")
                pathlib.Path(path).write_bytes(content.replace(name, start + name[len(start):]))
                calls += [("inspect", path), ("inspect", path, "--json"), ("plan", path), ("run", path, "Hi", "-n", "1"),
                          ("tokenize", path, "Hi"), ("quantize", path, folder + "/out.gguf", "Q8_0")]
            for call in calls:
                _, shown = Terminal(*call).end()
                shown = re.sub(r"\x1b\[(2m|1;31m|0m)|\r\x1b\[K", "", shown).replace("\r\n", "\n")
                steering = re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
                self.assertEqual(steering, [], (call, shown))


if __name__ == "__main__":
    unittest.main()
