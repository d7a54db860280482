"""tools/gpu/hip_on_nvidia.sh, with the simulated driver in place of NVIDIA's: all calls of the hip backend reach it.

Run by ctest as: python3 hip_on_nvidia_test.py PROGRAM SIMULATED_DRIVER
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM, DRIVER = sys.argv[1:]
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "tools/gpu/hip_on_nvidia.sh"
MODEL = ROOT / "models/tiny-llama-q8_0.gguf"


class HipOnNvidia(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        # Next to a copy of the script its library is found, as in a bundle.
        (cls.folder / "libcuda.so.1").symlink_to(pathlib.Path(DRIVER).resolve())
        (cls.folder / SCRIPT.name).write_bytes(SCRIPT.read_bytes())
        subprocess.run(["bash", SCRIPT, "--build", cls.folder], check=True)

    def shunt(self, *arguments):
        variables = {**os.environ, "LD_LIBRARY_PATH": str(self.folder), "SHUNT_CACHE_DIR": str(self.folder / "cache")}
        done = subprocess.run(["bash", self.folder / SCRIPT.name, PROGRAM, *arguments], env=variables, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_device_says_what_the_driver_does(self):
        devices = json.loads(self.shunt("devices", "--json"))["devices"]
        device, = [device for device in devices if device["id"] == "hip:0"]
        self.assertEqual(device["vendor"], "NVIDIA")
        self.assertEqual(device["compute_units"], 5)
        self.assertEqual(device["shared_memory_bytes"], 48 * 1024)
        self.assertEqual(device["details"], ["compute 9.0"])

    def test_ops_give_the_references_result(self):
        ops = ("add", "rms_norm", "softmax", "linear", "attention", "rotary_cache_write", "top_values")
        counts = json.loads(self.shunt("verify", *ops, "--quick", "--devices", "hip:0", "--json"))
        self.assertTrue(counts["ok"])
        for op, dtypes in counts["devices"][0]["ops"].items():
            right, _, wrong = dtypes["cases"]
            self.assertGreater(right, 0, op)
            self.assertEqual(wrong, 0, op)

    def test_a_model_is_loaded_and_run(self):
        story = ("run", MODEL, "Once upon a time", "-n", "8", "--greedy", "--numerics", "exact", "--devices")
        self.assertEqual(self.shunt(*story, "hip:0"), self.shunt(*story, "cpu:scalar"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
