"""Checks the commands, options and outputs that the documents show.

An indented block is output if the paragraph before it is the one word `prints` or `printed`. The commands of the block
before are run in an empty folder, and the last one must print that block, in which a line of three dots stands for any
lines. In all other blocks, and in code within a paragraph, each command and its options must be known to `--help`.

Run by ctest as: python3 docs_test.py PROGRAM
"""

import functools
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import textwrap
import unittest

from program import COMMANDS, PROGRAM, SECONDS, shunt

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/measurements").glob("*.md"))]
# Output that depends on the test machine: the memory of the process itself, and the total that includes it.
OF_THE_MACHINE = (r"(?<=\+ )[\d.]+ \w+(?= the process itself)", r"(?<=with a full context: )[\d.]+ \w+")
# This program's options end at a pipe or a semicolon.
CALL = re.compile(r"^(?:\$ )?(?:\w+=(?:\"[^\"]*\"|\S+) )*(?:[\w./]+/)?shunt (?P<rest>.+)")


def blocks(text):
    """Yields paragraphs and code blocks as pairs (is code, lines)."""
    text = re.sub(r"^```\w*\n(.*?)^```$", lambda fenced: "\n" + textwrap.indent(fenced[1], "    "), text,
                  flags=re.DOTALL | re.MULTILINE)
    lines, code = [], False
    for line in text.splitlines() + [""]:
        is_code = line.startswith("    ") and (code or not lines)
        if line and is_code == code:
            lines.append(line)
        elif not line and code and lines:
            lines.append("")  # an empty line continues a block if the next line is indented
        else:
            if lines:
                yield code, trimmed(lines) if code else lines
            lines, code = ([line], is_code) if line else ([], False)
    if lines:
        yield code, trimmed(lines) if code else lines


def trimmed(lines):
    return "\n".join(line[4:] for line in lines).strip("\n").splitlines()


def whole_commands(lines):
    """Yields each command with its backslash continuations and without comments."""
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        yield re.sub(r"\s#\s.*", "", line).strip()


def examples():
    """Yields each shown output: its document, the commands before it, and its lines."""
    for document in DOCUMENTS:
        seen = list(blocks(document.read_text(encoding="utf-8")))
        for before, between, shown in zip(seen, seen[1:], seen[2:]):
            if between[1] in (["prints"], ["printed"]) and before[0] and shown[0]:
                yield document, list(whole_commands(before[1])), shown[1]


def calls():
    """Yields each call of the program that a document shows: the document, and what follows the program's name."""
    for document in DOCUMENTS:
        for code, lines in blocks(document.read_text(encoding="utf-8")):
            spans = whole_commands(lines) if code else re.findall(r"`([^`]+)`", " ".join(lines))
            for span in spans:
                found = CALL.match(span)
                if found:
                    yield document, re.split(r"[|;>]| && ", found["rest"])[0]


@functools.cache
def options_of(command):
    """The options that --help lists."""
    result = shunt(*command.split(), "--help")
    assert result.returncode == 0, result.stderr
    return set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", result.stdout))


def command_in(words):
    """The longest command name that the words begin with."""
    for count in (2, 1):
        if " ".join(words[:count]) in COMMANDS:
            return " ".join(words[:count])
    return None


def without_the_machine(lines):
    text = "\n".join(line.rstrip() for line in lines)
    for pattern in OF_THE_MACHINE:
        text = re.sub(pattern, "*", text)
    return text


class Documents(unittest.TestCase):
    maxDiff = None

    def test_output_is_what_is_shown(self):
        checked = 0
        for document, commands, shown in examples():
            with self.subTest(document=document.name, command=commands[-1]), tempfile.TemporaryDirectory() as folder:
                for name in ("models", "examples"):
                    os.symlink(ROOT / name, pathlib.Path(folder, name))
                os.mkdir(pathlib.Path(folder, "build"))
                os.symlink(os.path.abspath(PROGRAM), pathlib.Path(folder, "build", "shunt"))
                for command in commands:
                    result = subprocess.run(shlex.split(command), cwd=folder, capture_output=True, text=True,
                                            timeout=SECONDS, check=False)
                    self.assertEqual(result.returncode, 0, result.stderr)
                printed, wanted = without_the_machine(result.stdout.splitlines()), without_the_machine(shown)
                if "..." not in shown:
                    self.assertEqual(printed, wanted)
                at = 0
                for part in (part.strip("\n") for part in wanted.split("...") if part.strip()):
                    at = printed.find(part, at) + len(part)
                    self.assertGreaterEqual(at, len(part), f"{commands[-1]} does not print, or not in this order:\n{part}")
                checked += 1
        self.assertGreaterEqual(checked, 2)

    def test_commands_and_options_are_there(self):
        checked = 0
        for document, rest in calls():
            with self.subTest(document=document.name, call=rest):
                words = re.sub(r"[\[\]]", " ", rest).replace("'", "").split()
                if words[0].startswith("-"):
                    continue
                command = command_in(words) or ("help" if words[0] == "help" else None)
                self.assertIsNotNone(command, "there is no such command")
                given = {word.split("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)}
                self.assertEqual(given - options_of(command), set(), "there are no such options")
                checked += 1
        self.assertGreater(checked, 40)

    def test_a_document_that_is_wrong_would_be_found(self):
        text = "Text with `shunt run MODEL --no-such`:\n\n    build/shunt plan X \\\n      --json  # all\n\nprints\n\n    a\n\n      b\n\nand more\n"
        found = list(blocks(text))
        self.assertEqual([code for code, _ in found], [False, True, False, True, False])
        self.assertEqual(list(whole_commands(found[1][1])), ["build/shunt plan X    --json"])
        self.assertEqual(found[3][1], ["a", "", "  b"])
        self.assertEqual(CALL.match("SHUNT_FAULTS=\"a b\" build/shunt run x")["rest"], "run x")
        self.assertNotIn("--no-such", options_of("run"))
        self.assertIn("--strategy", options_of("run"))


if __name__ == "__main__":
    unittest.main()
