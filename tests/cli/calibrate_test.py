"""Measuring this machine, and what plans make of it.

Run by ctest as: python3 calibrate_test.py PROGRAM
"""

import json
import os
import pathlib
import tempfile
import unittest

from program import CommandLine, MODEL, shunt


class Calibrate(CommandLine):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "calibration.json"
        before = os.environ.get("SHUNT_CACHE_DIR")
        os.environ["SHUNT_CACHE_DIR"] = folder.name
        self.addCleanup(lambda: os.environ.pop("SHUNT_CACHE_DIR") if before is None
                        else os.environ.__setitem__("SHUNT_CACHE_DIR", before))

    def generation(self):
        return self.data("plan", MODEL, "--devices", "cpu:simd", "-c", "64")["generation"]

    def test_plans_are_made_with_what_was_measured_and_broken_files_are_set_aside(self):
        believed = self.generation()
        shown = shunt("calibrate", MODEL, "--quick", "--devices", "cpu:simd")
        self.assertRegex(shown.stdout, r"\ncpu:simd +\d+\.\d\d +\d+\.\d\d +- +- +\d+ +\d+\nkept in ")
        self.assertIn(str(self.file), shown.stdout)
        measured = self.generation()
        self.assertNotEqual(measured["predicted_us"], believed["predicted_us"])
        self.assertEqual(measured, self.generation())

        kinds = json.loads(self.file.read_text())["devices"][0]["ops"]
        self.assertIn("matmul F32 F16 -> F32", kinds)
        again = self.data("calibrate", MODEL, "--quick", "--devices", "cpu:simd")
        self.assertEqual(again["devices"][0]["ops"].keys(), kinds.keys())

        checked = self.data("calibrate", MODEL, "--check", "--quick", "--devices", "cpu:simd")[0]
        self.assertEqual(checked["device"], "cpu:simd")
        self.assertGreater(checked["seen"]["count"], 10)
        self.assertGreater(checked["unseen"]["count"], 10)
        self.assertEqual(len(checked["ops"]), checked["seen"]["count"] + checked["unseen"]["count"])
        self.assertRegex(shunt("calibrate", MODEL, "--check", "--quick", "--devices", "cpu:simd").stdout,
                         r"\ncpu:simd +\d+ +\d+\.\d % +\d+\.\d % +\d+ +\d+\.\d % +\d+\.\d %\n")

        self.file.write_text(self.file.read_text()[:1000])
        warned = shunt("plan", MODEL, "--devices", "cpu:simd", "-c", "64")
        self.assertEqual(warned.returncode, 0)
        self.assertIn("cannot be used", warned.stderr)
        self.assertTrue(self.file.with_name("calibration.json.broken").exists())
        self.assertEqual(self.generation()["predicted_us"], believed["predicted_us"])

    def test_nothing_can_be_checked_that_was_not_measured(self):
        self.refused(1, "cpu:simd was not measured; run `shunt calibrate --devices cpu:simd` before",
                     "calibrate", "--check", "--devices", "cpu:simd")


if __name__ == "__main__":
    unittest.main()
