"""The program under test (the tests' first argument): functions to call it and to check its results."""

import json
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)
DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
MODEL = str(DATA / "tiny-llama-f16.gguf")
REFERENCE = json.loads((DATA / "tiny-llama-reference.json").read_text())
STORY = REFERENCE["prompts"][0]["text"]
SECONDS = 120
TABLE = pathlib.Path(__file__).resolve().parents[2] / "cli" / "commands.def"
COMMANDS = re.findall(r'^SHUNT_COMMAND\(\w+, "([^"]+)"', TABLE.read_text(), re.MULTILINE)
# Two threads wait for each other at every op, which takes long on a busy machine.
ALONE = ("--threads", "1")


def shunt(*arguments, stdin="", env=None):
    return subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, text=True, timeout=SECONDS,
                          env={**os.environ, **(env or {})}, check=False)


class Terminal:
    """The program on a terminal that merges stdout and stderr."""

    def __init__(self, *arguments, env=None):
        own, its = pty.openpty()
        self.file = own
        self.process = subprocess.Popen([PROGRAM, *arguments], stdin=its, stdout=its, stderr=its,
                                        env={**os.environ, "TERM": "xterm", **(env or {})}, start_new_session=True)
        os.close(its)
        self.shown = ""

    def wait_for(self, text):
        """Reads until `text` appears (with None, until the program ends), and discards the output up to there."""
        while text is None or text not in self.shown:
            ready, _, _ = select.select([self.file], [], [], SECONDS)
            if not ready:
                self.process.kill()
                raise AssertionError(f"waited {SECONDS} s for {text!r}; this showed: {self.shown!r}")
            try:
                piece = os.read(self.file, 4096)
            except OSError:  # the other end is closed
                piece = b""
            if not piece:
                break
            self.shown += piece.decode(errors="replace")
        if text is None:
            return self.shown
        before, found, self.shown = self.shown.partition(text)
        if not found:
            raise AssertionError(f"{text!r} never showed; this did: {before!r}")
        return before

    def type(self, text):
        os.write(self.file, text.encode())

    def end(self):
        shown = self.wait_for(None)
        os.close(self.file)
        return self.process.wait(SECONDS), shown


class CommandLine(unittest.TestCase):
    def data(self, *arguments, **keywords):
        result = shunt(*arguments, "--json", **keywords)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def refused(self, code, words, *arguments, **keywords):
        result = shunt(*arguments, **keywords)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr.startswith("shunt: "), result.stderr)
        self.assertIn(words, result.stderr)
