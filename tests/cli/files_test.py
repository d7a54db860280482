#!/usr/bin/env python3
"""files_test.py SHUNT: no command overwrites what it reads, and output files appear whole or not at all."""

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest

from program import DATA, MODEL, PROGRAM, CommandLine, Terminal, shunt

ONNX = DATA / "onnx"
MACHINE = DATA.parents[1] / "examples/machines/two-unequal-gpus.json"
CPU = ("--devices", "cpu", "--threads", "1")

# Commands with OUT for their output, and the inputs that OUT must not name: one word of the command each.
COMMANDS = [
    (("run", "model.gguf", "-f", "prompt.txt", "-n", "1", *CPU, "--trace", "OUT"), ("model.gguf", "prompt.txt")),
    (("run", "model.gguf", "Once", "-n", "1", "--machine", "machine.json", "--trace", "OUT"), ("machine.json",)),
    (("eval", "model.gguf", "-f", "prompt.txt", *CPU, "--trace", "OUT"), ("model.gguf", "prompt.txt")),
    (("bench", "model", "model.gguf", *CPU, "--trace", "OUT"), ("model.gguf",)),
    (("quantize", "model.gguf", "OUT", "Q8_0"), ("model.gguf",)),
    (("quantize", "split-00001-of-00002.gguf", "OUT", "Q8_0"), ("split-00001-of-00002.gguf", "split-00002-of-00002.gguf")),
    (("run", "split-00002-of-00002.gguf", "Once", *CPU, "--trace", "OUT"), ("split-00001-of-00002.gguf",)),
    (("report", "trace.json", "-o", "OUT"), ("trace.json",)),
    (("run-graph", "external.onnx", "--input", "x.npy", *CPU, "--output", "OUT"), ("external.onnx", "x.npy", "external.bin")),
    (("run-graph", "external.onnx", "--input", "x=x.npy", *CPU, "--output", "OUT"), ("x.npy",)),
    (("run-graph", "external.onnx", "--input", "x.npy", *CPU, "--trace", "OUT"), ("external.onnx", "x.npy", "external.bin")),
]


class Files(CommandLine):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        shutil.copy(MODEL, self.folder / "model.gguf")
        for part in ("split-00001-of-00002.gguf", "split-00002-of-00002.gguf"):
            (self.folder / part).write_bytes(b"GGUF, the name is enough")
        (self.folder / "prompt.txt").write_text("Once")
        for name, source in (("external.onnx", "external.onnx"), ("external.bin", "external.bin"),
                             ("x.npy", "external.x.npy")):
            shutil.copy(ONNX / source, self.folder / name)
        shutil.copy(MACHINE, self.folder / "machine.json")
        made = self.call("run", "model.gguf", "Once", "-n", "1", *CPU, "--trace", "trace.json")
        self.assertEqual(made.returncode, 0, made.stderr)

    def call(self, *words, env=None, **keywords):
        return subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, **keywords)

    def content(self):
        return {path.name: path.read_bytes() for path in self.folder.iterdir() if path.exists()}

    def test_what_is_read_is_not_written_over(self):
        before = self.content()
        for command, inputs in COMMANDS:
            for name in inputs:
                for way in ("itself", "symlink", "hard link"):
                    out = self.folder / ("out" if way != "itself" else name)
                    if way == "symlink":
                        out.symlink_to(self.folder / name)
                    elif way == "hard link":
                        os.link(self.folder / name, out)
                    with self.subTest(command=command, name=name, way=way):
                        words = [str(out) if word == "OUT" else word for word in command]
                        done = self.call(*words)
                        self.assertEqual(done.returncode, 2, done.stderr)
                        self.assertIn("are the same file", done.stderr)
                        self.assertIn(name, done.stderr)
                    if way != "itself":
                        out.unlink()
                    self.assertEqual(self.content(), before)

    def test_two_outputs_are_two_files(self):
        (self.folder / "y.npy").write_text("kept")
        (self.folder / "link.npy").symlink_to("y.npy")
        (self.folder / "link-to-new.npy").symlink_to("new.npy")
        before = self.content()
        graph = ("run-graph", "external.onnx", "--input", "x.npy", *CPU)
        for one, other in (("y.npy", "link.npy"), ("new.npy", "./new.npy"), ("new.npy", "link-to-new.npy"),
                           ("y.npy", "y.npy")):
            for options in (("--output", one, "--output", other), ("--output", one, "--trace", other)):
                done = self.call(*graph, *options)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("are the same file", done.stderr)
        self.assertEqual(self.content(), before)

    def test_measurements_do_not_replace_the_model(self):
        cache = self.folder / "cache"
        cache.mkdir()
        os.link(self.folder / "model.gguf", cache / "calibration.json")
        done = self.call("calibrate", "model.gguf", "--quick", "--busy", "--devices", "cpu:scalar", env={"SHUNT_CACHE_DIR": str(cache)})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("are the same file", done.stderr)
        self.assertEqual(os.listdir(cache), ["calibration.json"])

    def test_a_full_disk_leaves_what_there_was(self):
        for command, out in (
                (("run-graph", "external.onnx", "--input", "x.npy", *CPU, "--output", "OUT"), "y.npy"),
                (("run", "model.gguf", "Once", "-n", "1", *CPU, "--trace", "OUT"), "t.json"),
                (("report", "trace.json", "-o", "OUT"), "page.html"),
                (("quantize", "model.gguf", "OUT", "Q8_0"), "small.gguf"),
                (("make-model", "nano", "Q8_0", "OUT"), "nano.gguf")):
            for earlier in (None, "what there was"):
                path = self.folder / out
                if earlier:
                    path.write_text(earlier)
                before = self.content()
                with self.subTest(command=command, earlier=earlier):
                    done = self.call(*[out if word == "OUT" else word for word in command],
                                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)))
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertIn(f"{out}: cannot write beyond byte", done.stderr)
                    self.assertEqual(self.content(), before)

    def test_a_link_stays_one(self):
        for target in ("there.npy", "not-yet.npy"):
            link = self.folder / f"link-{target}"
            link.symlink_to(target)
        (self.folder / "there.npy").write_text("old")
        for target in ("there.npy", "not-yet.npy"):
            done = self.call("run-graph", "external.onnx", "--input", "x.npy", *CPU, "--output", f"link-{target}")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue((self.folder / f"link-{target}").is_symlink())
            self.assertTrue((self.folder / target).read_bytes().startswith(b"\x93NUMPY"))

    def test_a_second_signal_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            writer = Terminal("make-model", "1b", "F32", os.path.join(folder, "model.gguf"))
            writer.wait_for("writing ")
            self.assertEqual(len(os.listdir(folder)), 1)
            # Both signals stay pending while the process is stopped, so no work happens between them.
            for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
                writer.process.send_signal(number)
            ended, shown = writer.end()
            self.assertEqual(ended, -signal.SIGTERM, shown)
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
