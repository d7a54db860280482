"""Shared by the tests of docs/adding-*.md: a copy of the sources, in which a page's shell block is run and the result
is compiled as the build compiles files of the same kind.

A test's command line is TEST.py COMPILE_COMMANDS LIBRARY [LINK_ARGUMENT...].
"""

import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALONE = "src/ops/copy/copy.cpp"  # a source of the library that no build compiles together with others


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class WalkThrough(unittest.TestCase):
    compile_commands: pathlib.Path
    link: list

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.copy = pathlib.Path(folder.name)
        for name in ("include", "src"):
            shutil.copytree(ROOT / name, self.copy / name)

    def follow(self, page):
        """Runs the first shell block of a page; returns the files that it changed or made."""
        before = self.files()
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        run(["bash", "-euc", re.search(r"```sh\n(.*?)```", text, re.DOTALL)[1]], self.copy)
        after = self.files()
        return [str(path) for path in sorted(after) if after[path] != before.get(path)]

    def files(self):
        return {path.relative_to(self.copy): path.read_bytes() for path in self.copy.rglob("*") if path.is_file()}

    def lines_added(self, path):
        return (self.copy / path).read_bytes().count(b"\n") - (ROOT / path).read_bytes().count(b"\n")

    def program(self, sources):
        """Compiles sources of the copy as the build compiles the library, and links them with it. The library's own
        objects are of several sources each, so they have some of these too; the linker takes the first."""
        objects = []
        for source in sources:
            compiler, flags, target = self.compile(self.copy / source)
            objects.append(str(target))
        run([*compiler, *flags, "-Wl,--allow-multiple-definition", *objects, *self.link, "-o", "program"], self.copy)
        return self.copy / "program"

    def compile(self, source):
        entry = next(entry for entry in json.loads(self.compile_commands.read_text()) if entry["file"].endswith("/" + ALONE))
        root = re.escape(entry["file"].removesuffix("/" + ALONE))
        words = shlex.split(entry["command"])
        target = source.with_suffix(".o")
        words[words.index("-o") + 1] = str(target)
        words[words.index("-c") + 1] = str(source)
        words = [re.sub(rf"^-I{root}/(src|include)$", rf"-I{self.copy}/\1", word) for word in words]
        first = next(number for number, word in enumerate(words) if word.startswith("-I"))
        words.insert(first, f"-I{self.copy}/generated")  # before those of the build
        run(words, self.copy)
        compiler = words[: next(number for number, word in enumerate(words) if word.startswith("-"))]
        return compiler, [word for word in words if word.startswith(("-fsanitize", "-O"))], target


def main():
    WalkThrough.compile_commands = pathlib.Path(sys.argv.pop(1))
    WalkThrough.link = sys.argv[1:]
    del sys.argv[1:]
    unittest.main()
