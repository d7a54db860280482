"""Measures this machine, and checks how plans use the measurements.

Run by ctest as: python3 calibrate_test.py PROGRAM
"""

import concurrent.futures
import json
import os
import pathlib
import tempfile
import unittest

from program import ALONE, CommandLine, MODEL, STORY, shunt

SIMD = ("--devices", "cpu:simd", *ALONE)
# Other tests run meanwhile.
QUICK = ("--quick", "--busy", *SIMD)


class Calibrate(CommandLine):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.shown = shunt("calibrate", MODEL, *QUICK, env={"SHUNT_CACHE_DIR": folder})
            cls.kept = (pathlib.Path(folder) / "calibration.json").read_text()
            cls.first_file = str(pathlib.Path(folder) / "calibration.json")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "calibration.json"
        before = os.environ.get("SHUNT_CACHE_DIR")
        os.environ["SHUNT_CACHE_DIR"] = folder.name
        self.addCleanup(lambda: os.environ.pop("SHUNT_CACHE_DIR") if before is None
                        else os.environ.__setitem__("SHUNT_CACHE_DIR", before))

    def generation(self):
        return self.data("plan", MODEL, *SIMD, "-c", "64")["generation"]

    def test_plans_are_made_with_what_was_measured_and_broken_files_are_set_aside(self):
        believed = self.generation()
        self.file.write_text(self.kept)
        self.assertRegex(self.shown.stdout, r"\ncpu:simd +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +- +- +- +\d+\.\d\d +\d+\.\d\d +\d+ +\d+\nfew, many: ")
        self.assertIn(self.first_file, self.shown.stdout)
        measured = self.generation()
        self.assertNotEqual(measured["predicted_us"], believed["predicted_us"])
        self.assertEqual(measured, self.generation())

        kinds = json.loads(self.file.read_text())["devices"][0]["ops"]
        self.assertIn("linear F32 F16 -> F32", kinds)
        again = self.data("calibrate", MODEL, *QUICK)
        self.assertEqual(again["devices"][0]["ops"].keys(), kinds.keys())

        checked = self.data("calibrate", MODEL, "--check", *QUICK)[0]
        self.assertEqual(checked["device"], "cpu:simd")
        self.assertGreater(checked["seen"]["count"], 10)
        self.assertGreater(checked["unseen"]["count"], 10)
        self.assertEqual(len(checked["ops"]), checked["seen"]["count"] + checked["unseen"]["count"])
        self.assertRegex(shunt("calibrate", MODEL, "--check", *QUICK).stdout,
                         r"\ncpu:simd +\d+ +\d+\.\d % +\d+\.\d % +\d+ +\d+\.\d % +\d+\.\d %\n")

        self.file.write_text(self.file.read_text()[:1000])
        warned = shunt("plan", MODEL, *SIMD, "-c", "64")
        self.assertEqual(warned.returncode, 0)
        self.assertIn("cannot be used", warned.stderr)
        self.assertTrue(self.file.with_name("calibration.json.broken").exists())
        self.assertEqual(self.generation()["predicted_us"], believed["predicted_us"])

    def test_what_was_measured_in_a_hurry_is_replaced(self):
        kept = json.loads(self.kept)
        self.assertFalse(kept["devices"][0]["is_brief"])
        kept["devices"][0] |= {"is_brief": True, "ops": kept["devices"][0]["ops"] | {"of another model": []}}
        self.file.write_text(json.dumps(kept))
        shunt("calibrate", MODEL, *QUICK)
        device = json.loads(self.file.read_text())["devices"][0]
        self.assertFalse(device["is_brief"])
        self.assertNotIn("of another model", device["ops"])

    def test_devices_are_measured_once_before_so_much_work_that_a_choice_between_them_matters(self):
        emulated = [device["id"] for device in self.data("devices")["devices"]
                    if device["emulated"] and device["id"].startswith("vulkan:")]
        if len(emulated) < 2:
            self.skipTest("no two devices between which priors do not choose")
        both = ",".join(emulated[:2])
        large = ("run", MODEL, STORY, "--greedy", "-n", "100000", "-c", "100000", "--stop", " ", "--devices")
        for arguments in ((*large, emulated[0]), (*large, f"cpu:simd,{emulated[0]}"), (*large, both, "--strategy", "gpu"),
                          ("run", MODEL, "Once", "-n", "2", "--devices", both)):
            self.assertNotIn("measuring", shunt(*arguments).stderr)
            self.assertFalse(self.file.exists())

        measured = shunt(*large, both, "--json")
        self.assertEqual(json.loads(measured.stdout)["stop"], "stop string", measured.stderr)
        self.assertIn(f"measuring {emulated[0]}, {emulated[1]} before a long run", measured.stderr)
        self.assertIn(f"kept in {self.file}; `shunt calibrate`", measured.stderr)
        kept = self.file.read_text()
        self.assertEqual([(device["id"], device["is_brief"]) for device in json.loads(kept)["devices"]],
                         [(emulated[0], True), (emulated[1], True)])

        again = shunt(*large, both)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertNotIn("measuring", again.stderr)
        self.assertEqual(self.file.read_text(), kept)

    def test_the_others_are_measured_where_a_device_fails(self):
        call = ("calibrate", MODEL, "--quick", "--busy", "--devices", "sim:0,cpu:simd", *ALONE)
        result = shunt(*call, env={"SHUNT_FAULTS": "sim:0 lost at op 5"})
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, r"\nshunt: sim:0: .*lost")
        self.assertIn("\ncpu:simd ", result.stdout)
        self.assertNotIn("sim:0", result.stdout)
        self.assertEqual([device["id"] for device in json.loads(self.file.read_text())["devices"]], ["cpu:simd"])

        checked = shunt(*call, "--check", "--json")
        self.assertEqual(checked.returncode, 1, checked.stderr)
        self.assertIn("shunt: sim:0 was not measured", checked.stderr)
        self.assertEqual([each["device"] for each in json.loads(checked.stdout)], ["cpu:simd"])

    def test_what_two_calibrations_find_at_once_is_kept(self):
        devices = ("cpu:simd", "cpu:scalar")
        nano = str(self.file.with_name("nano.gguf"))
        self.data("make-model", "nano", "F16", nano)
        with concurrent.futures.ThreadPoolExecutor(len(devices)) as pool:
            ended = list(pool.map(lambda device: shunt("calibrate", nano, "--quick", "--busy", "--devices", device, *ALONE), devices))
        self.assertEqual([each.returncode for each in ended], [0, 0], [each.stderr for each in ended])
        kept = json.loads(self.file.read_text())["devices"]
        self.assertEqual({device["id"] for device in kept}, set(devices))
        self.assertEqual([bool(device["ops"]) for device in kept], [True, True])

    def test_nothing_can_be_checked_that_was_not_measured(self):
        self.refused(1, "cpu:simd was not measured; run `shunt calibrate --devices cpu:simd` first",
                     "calibrate", "--check", *SIMD)


if __name__ == "__main__":
    unittest.main()
