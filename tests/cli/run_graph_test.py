#!/usr/bin/env python3
"""run_graph_test.py SHUNT: ONNX models against what onnxruntime computed from them (tools/references/onnx_models.py).
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

DATA = pathlib.Path(__file__).resolve().parents[1] / "data/onnx"
SHUNT = ""


def shunt(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([SHUNT, "run-graph", *map(str, arguments)], capture_output=True, text=True, check=False)


def inputs_of(name: str) -> list:
    options = []
    for file in sorted(DATA.glob(f"{name}.*.npy")):
        options += ["--input", f"{file.name.split('.')[1]}={file}"]
    return options


class RunGraph(unittest.TestCase):
    def test_models_give_what_onnxruntime_gives(self) -> None:
        names = sorted(path.stem for path in DATA.glob("*.onnx"))
        self.assertEqual(len(names), 6)
        for name in names:
            expected = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["outputs"]
            for devices in ("cpu:scalar", "cpu:simd,cpu:scalar"):
                with self.subTest(name, devices=devices):
                    done = shunt(DATA / f"{name}.onnx", *inputs_of(name), "--devices", devices, "--json")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.compare(json.loads(done.stdout)["outputs"], expected)

    def compare(self, given: list, expected: list) -> None:
        self.assertEqual([each["shape"] for each in given], [each["shape"] for each in expected])
        for ours, theirs in zip(given, expected):
            largest = max(abs(each) for each in theirs["elements"])
            for mine, wanted in zip(ours["elements"], theirs["elements"], strict=True):
                self.assertAlmostEqual(mine, wanted, delta=2e-5 * max(1.0, largest), msg=ours["name"])

    def test_names_that_are_none_are_told_with_those_that_there_are(self) -> None:
        for option, name, there in (("--input", "foo", "x"), ("--input", "", "x"), ("--output", "foo", "")):
            done = shunt(DATA / "perceptron.onnx", "--input", DATA / "perceptron.x.npy", option, f"{name}=/nonexistent.npy")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f'the model has no {option[2:]} "{name}"; choose from: {there}', done.stderr)

    def test_results_are_written_as_arrays(self) -> None:
        expected = json.loads((DATA / "external.json").read_text(encoding="utf-8"))["outputs"][0]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "y.npy"
            done = shunt(DATA / "external.onnx", "--input", DATA / "external.x.npy", "--output", file)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(expected["name"], done.stdout)
            data = file.read_bytes()
        length = struct.unpack("<H", data[8:10])[0]
        self.assertEqual((10 + length) % 64, 0)
        self.assertIn(b"'shape': (2, 40, )", data[10:10 + length])
        elements = struct.unpack("<80f", data[10 + length:])
        self.assertAlmostEqual(elements[79], expected["elements"][79], delta=1e-4)

    def test_strategies_and_margins_are_those_of_models(self) -> None:
        call = (DATA / "perceptron.onnx", "--input", DATA / "perceptron.x.npy", "--explain")
        for strategy, device in (("gpu", "sim:0"), ("cpu", "cpu:scalar")):
            done = shunt(*call, "--devices", "sim:0,cpu:scalar", "--strategy", strategy)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f" on {device}: preferred", done.stderr)
        self.assertIn(" on cpu:scalar: only candidate", shunt(*call, "--strategy", "only:cpu:scalar").stderr)
        self.assertIn(" on sim:0: ", shunt(*call, "--devices", "sim:0,cpu:scalar", "--margin", "1000000").stderr)

        alone = ("--devices", "cpu:scalar", "--strategy", "gpu")
        done = shunt(*call, *alone)
        self.assertEqual(done.returncode, 0, done.stderr)
        missing = "strategy gpu: no such device is among those in use: cpu:scalar"
        self.assertIn(f"{missing}; going on as with auto", done.stderr)
        self.refused(1, missing, *call, *alone, "--strict")
        self.refused(2, "layers is for language models", *call, "--strategy", "layers")
        self.refused(2, "leave one of them out", *call, "--strategy", "only:cpu", "--devices", "cpu")

    def test_traces_have_each_op_with_its_time(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace.json"
            done = shunt(DATA / "perceptron.onnx", "--input", DATA / "perceptron.x.npy", "--devices", "cpu:scalar",
                         "--trace", trace)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = subprocess.run([SHUNT, "report", trace, "--lines"], capture_output=True, text=True, check=True)
            ops = [event for event in map(json.loads, report.stdout.splitlines()) if event.get("kind") == "op"]
            self.assertGreater(len(ops), 2)
            self.assertEqual({event["device"] for event in ops}, {"cpu:scalar"})
            report = subprocess.run([SHUNT, "report", trace, "--json"], capture_output=True, text=True, check=True)
            for unit in json.loads(report.stdout)["plans"][0]["units"]:
                self.assertEqual(unit["actual"]["times"], 1, unit)

    def test_traces_are_replayed(self) -> None:
        def replay(*arguments: object) -> subprocess.CompletedProcess:
            return subprocess.run([SHUNT, "replay", *map(str, arguments)], capture_output=True, text=True, check=False)

        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace.json"
            call = (DATA / "perceptron.onnx", "--input", DATA / "perceptron.x.npy")
            done = shunt(*call, "--devices", "sim:0,cpu:scalar", "--strategy", "gpu", "--trace", trace)
            self.assertEqual(done.returncode, 0, done.stderr)
            same = json.loads(replay(trace, "--json").stdout)
            self.assertEqual(same["strategy"], "gpu")
            step, = same["steps"]
            self.assertEqual((step["runs"], step["moved_nodes"], step["devices"]), (1, 0, ["sim:0"]))
            self.assertAlmostEqual(step["replayed_us"], step["predicted_us"], delta=1e-6 * step["predicted_us"])
            step, = json.loads(replay(trace, "--strategy", "cpu", "--json").stdout)["steps"]
            self.assertEqual((step["moved_nodes"], step["devices"]), (step["nodes"], ["cpu:scalar"]))
            machine = DATA.parents[2] / "examples/machines/two-unequal-gpus.json"
            step, = json.loads(replay(trace, "--machine", machine, "--json").stdout)["steps"]
            self.assertEqual(step["moved_nodes"], step["nodes"])
            self.assertIn("strategy gpu: predicted to take 1 times", replay(trace).stdout)

            refused = replay(trace, "--strategy", "layers")
            self.assertEqual(refused.returncode, 1)
            self.assertIn("layers is for language models", refused.stderr)
            moved = json.loads(trace.read_text())
            moved["otherData"]["origin"][0]["model"] = "/nonexistent.onnx"
            trace.write_text(json.dumps(moved))
            self.assertIn("if it was moved, name its new place with --model", replay(trace).stderr)
            again = replay(trace, "--model", DATA / "perceptron.onnx")
            self.assertEqual(again.returncode, 0, again.stderr)

    def test_mistakes_are_named(self) -> None:
        model = DATA / "perceptron.onnx"
        self.refused(2, "input \"x\" is missing; add --input x=FILE.npy", model)
        self.refused(1, "the model has axis 1 of 12", model, "--input", DATA / "external.x.npy")
        self.refused(1, "not a NumPy array", model, "--input", model)
        self.refused(1, "not an ONNX model", DATA / "external.x.npy", "--input", DATA / "external.x.npy")
        self.refused(2, "name one of them: NAME=FILE", DATA / "elementwise.onnx", "--input", DATA / "elementwise.x.npy")
        with tempfile.TemporaryDirectory() as folder:
            lonely = pathlib.Path(folder) / "external.onnx"
            lonely.write_bytes((DATA / "external.onnx").read_bytes())
            self.refused(1, "external.bin", lonely, "--input", DATA / "external.x.npy")
            unknown = pathlib.Path(folder) / "unknown.onnx"
            unknown.write_bytes(model.read_bytes().replace(b"Relu", b"Rely"))
            self.refused(1, "(Rely); supported: Add Sub", unknown, "--input", DATA / "perceptron.x.npy")

    def refused(self, code: int, message: str, *arguments: object) -> None:
        done = shunt(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(message, done.stderr)


if __name__ == "__main__":
    SHUNT = sys.argv.pop(1)
    unittest.main()
