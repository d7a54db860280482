"""A new device API is one folder and one row: does what docs/adding-a-device.md says, and looks for the device.

add_device_test.py COMPILE_COMMANDS LIBRARY [LINK_ARGUMENT...]: how src/devices/discovery/registry.cpp is compiled, and what a
program links.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COMPILE_COMMANDS = sys.argv.pop(1)
LINK = sys.argv[1:]
del sys.argv[1:]

PROGRAM = """
#include <cstdio>
#include "devices/discovery/registry.h"
int main() {
  const auto registry = shunt::open_devices({.devices = "cpu,pretend", .threads = 1});
  if (!registry) return 1;
  for (const shunt::Device* device : registry->devices()) std::puts(device->info().id.c_str());
  return shunt::select_devices(*registry, "pretend:0").has_value() ? 0 : 1;
}
"""


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class AddDevice(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.copy = pathlib.Path(folder.name)
        for name in ("include", "src"):
            shutil.copytree(ROOT / name, self.copy / name)

    def files(self):
        return {path.relative_to(self.copy): path.read_bytes() for path in self.copy.rglob("*") if path.is_file()}

    def follow_the_walk_through(self):
        text = (ROOT / "docs/adding-a-device.md").read_text(encoding="utf-8")
        run(["bash", "-euc", re.search(r"```sh\n(.*?)```", text, re.DOTALL)[1]], self.copy)

    def compile(self, source):
        """Compiles as the build compiles the registry, but in the copy."""
        entry = next(entry for entry in json.loads(pathlib.Path(COMPILE_COMMANDS).read_text())
                     if entry["file"].endswith("/src/devices/registry.cpp"))
        root = re.escape(entry["file"].removesuffix("/src/devices/registry.cpp"))
        words = shlex.split(entry["command"])
        target = source.with_suffix(".o")
        words[words.index("-o") + 1] = str(target)
        words[words.index("-c") + 1] = str(source)
        words = [re.sub(rf"^-I{root}/(src|include)$", rf"-I{self.copy}/\1", word) for word in words]
        run(words, self.copy)
        compiler = words[: next(number for number, word in enumerate(words) if word.startswith("-"))]
        return compiler, [word for word in words if word.startswith(("-fsanitize", "-O"))], target

    def test_one_folder_and_one_row_make_a_device(self):
        before = self.files()
        self.follow_the_walk_through()
        after = self.files()
        changed = [str(path) for path in sorted(after) if after[path] != before.get(path)]
        self.assertEqual(changed, ["src/devices/backends.def", "src/devices/pretend/device.cpp"])
        self.assertEqual(after[pathlib.Path("src/devices/backends.def")].count(b"\n"),
                         before[pathlib.Path("src/devices/backends.def")].count(b"\n") + 1)

        (self.copy / "list.cpp").write_text(PROGRAM)
        objects = []
        for source in ("list.cpp", "src/devices/discovery/registry.cpp", "src/devices/pretend/device.cpp"):
            compiler, flags, target = self.compile(self.copy / source)
            objects.append(str(target))
        run([*compiler, *flags, *objects, *LINK, "-o", "list"], self.copy)
        self.assertEqual(run([self.copy / "list"], self.copy).split(), ["cpu:simd", "cpu:scalar", "pretend:0"])


if __name__ == "__main__":
    unittest.main()
