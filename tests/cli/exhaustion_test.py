#!/usr/bin/env python3
"""exhaustion_test.py SHUNT LIBRARY: runs each command with its Nth allocation, thread or file operation failing, one
N at a time (tests/c/exhaustion.cpp). It must end with 0 and its whole result, or with 1, a message and no files left
behind."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SHUNT = sys.argv[1]
LIBRARY = sys.argv[2]
DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
MODEL = DATA / "tiny-llama-f16.gguf"
CPU = ("--devices", "cpu", "--threads", "2")
SECONDS = 60
FIRST = 16  # every N up to here; then N doubles
KINDS = ("allocation", "thread", "open", "write", "sync", "close", "rename")

# The arguments of each command; OUT is the file it writes, TRACE the trace of a run. Commands in SAME always print the
# same to stdout.
COMMANDS = {
    "run": ("run", MODEL, "Once upon", "-n", "2", "--greedy", "-c", "64", *CPU, "--trace", "OUT"),
    "eval": ("eval", MODEL, "--text", "Once upon", "--top", "2", *CPU),
    "plan": ("plan", MODEL, "-c", "64", *CPU),
    "inspect": ("inspect", MODEL, "--tensors"),
    "tokenize": ("tokenize", MODEL, "Hello world"),
    "quantize": ("quantize", MODEL, "OUT", "Q8_0", "--threads", "2"),
    "make-model": ("make-model", "nano", "Q8_0", "OUT"),
    "run-graph": ("run-graph", DATA / "onnx/external.onnx", "--input", DATA / "onnx/external.x.npy", "--output", "OUT", *CPU),
    "report": ("report", "TRACE", "-o", "OUT"),
    "replay": ("replay", "TRACE", *CPU),
    "devices": ("devices",),
    "completions": ("completions", "bash"),
    "calibrate": ("calibrate", "NANO", "--quick", "--busy", "--devices", "cpu:simd", "--threads", "2"),
}
# These take seconds, so N grows eightfold, at most so often.
SLOW = ("calibrate",)
SLOW_TIMES = 4
SAME = ("run", "eval", "inspect", "tokenize", "make-model", "run-graph", "completions")


class Exhaustion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.trace = os.path.join(cls.folder.name, "trace.json")
        cls.cache = os.path.join(cls.folder.name, "cache")
        cls.nano = os.path.join(cls.folder.name, "nano.gguf")
        assert cls.call(("make-model", "nano", "Q8_0", cls.nano), "").returncode == 0
        made = cls.call(COMMANDS["run"], cls.trace)
        assert made.returncode == 0, made.stderr
        assert cls.call(COMMANDS["devices"], "").returncode == 0  # fills the cache with what it found

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def call(cls, command, out, **variables):
        words = [{"OUT": out, "TRACE": cls.trace, "NANO": cls.nano}.get(word, str(word)) for word in command]
        return subprocess.run([SHUNT, *words], capture_output=True, text=True, check=False, timeout=SECONDS,
                              stdin=subprocess.DEVNULL,
                              env={**os.environ, "SHUNT_CACHE_DIR": f"{cls.cache}-of-{words[0]}" if words[0] in SLOW else cls.cache,
                                   "LD_PRELOAD": LIBRARY, **variables})

    def expect(self, name, wish, whole):
        """Runs the command with that failure; returns whether the failure happened."""
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as marks:
            out, mark = os.path.join(folder, "out"), os.path.join(marks, "failed")
            done = self.call(COMMANDS[name], out, SHUNT_TEST_EXHAUSTION=wish, SHUNT_TEST_EXHAUSTED=mark)
            said = f"{name} with {wish}: {done.stderr}"
            self.assertIn(done.returncode, (0, 1), said)
            if done.returncode == 1:
                self.assertRegex(done.stderr, r"(^|\n)shunt: \S", said)
            elif name in SAME:
                self.assertEqual(done.stdout, whole.stdout, said)
            written = {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
            if done.returncode == 0 or written:
                self.assertEqual(set(written), set(whole.files), said)
                if name in ("quantize", "make-model", "run-graph"):
                    self.assertEqual(written, whole.files, said)
            return os.path.exists(mark)

    def whole(self, name):
        """Runs the command without a failure; says how many calls of each kind there were."""
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as marks:
            counts = pathlib.Path(marks, "counts")
            whole = self.call(COMMANDS[name], os.path.join(folder, "out"), SHUNT_TEST_EXHAUSTION_COUNTS=counts)
            self.assertEqual(whole.returncode, 0, whole.stderr)
            whole.files = {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
            processes = [[int(number) for number in line.split()] for line in counts.read_text().splitlines()]
        whole.counts = dict(zip(KINDS, (max(of_kind) for of_kind in zip(*processes)), strict=True))
        return whole

    def sweep(self, name, kind, whole):
        """Returns how many runs met a failure."""
        nth, runs, met = 1, 0, 0
        while nth <= whole.counts[kind] and not (name in SLOW and runs == SLOW_TIMES):
            met += self.expect(name, f"{kind}:{nth}{'+' if runs % 4 == 3 else ''}", whole)
            runs += 1
            nth += nth * 7 if name in SLOW else 1 if nth < FIRST else nth
        return met

    def test_each_command_ends_with_a_result_or_a_message(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            whole = dict(zip(COMMANDS, pool.map(self.whole, COMMANDS)))
            sweeps = {(name, kind): pool.submit(self.sweep, name, kind, whole[name]) for kind in KINDS for name in COMMANDS}
            concurrent.futures.wait(sweeps.values())
        wrong = [str(future.exception()) for future in sweeps.values() if future.exception()]
        self.assertEqual(wrong, [], "\n".join(wrong))
        # Commands share the cache, so one may see files that another has not finished yet.
        caches = (self.cache, *(f"{self.cache}-of-{name}" for name in SLOW))
        self.assertEqual([path for cache in caches for path in os.listdir(cache) if ".partial-" in path], [])
        times = {sweep: future.result() for sweep, future in sweeps.items()}
        for name in COMMANDS:
            self.assertGreater(times[name, "allocation"], 2 if name in SLOW else FIRST, name)
        # Each kind of failure happened somewhere.
        for name, kind in (("run", "thread"), ("quantize", "thread"), ("make-model", "write"), ("run-graph", "rename"),
                           ("report", "sync"), ("run", "close"), ("plan", "open"), ("calibrate", "rename")):
            self.assertGreater(times[name, kind], 0, (name, kind))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
