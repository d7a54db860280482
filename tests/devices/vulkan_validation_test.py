"""Vulkan is used correctly: the validation layer, including its synchronization checks, finds nothing.

Usage: vulkan_validation_test.py SHUNT MODEL DEVICES_TEST FAULTY_LIBRARY
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

SHUNT, MODEL, DEVICES_TEST, FAULTY_LIBRARY = sys.argv[1:5]
LAYER = "VK_LAYER_KHRONOS_validation"


def is_expected() -> bool:
    return "vulkan" in os.environ.get("SHUNT_EXPECT_APIS", "").split()


def run_validated(*command: str, **variables: str) -> subprocess.CompletedProcess:
    settings = {"VK_INSTANCE_LAYERS": LAYER,
                "VK_LAYER_ENABLES": "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT",
                "VK_LOADER_DEBUG": "layer"}
    return subprocess.run(command, env={**os.environ, **settings, **variables}, capture_output=True, text=True,
                          check=False, timeout=600)


class Validation(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        tried = run_validated(SHUNT, "verify", "neg", "--devices", "vulkan:0")
        words = tried.stdout + tried.stderr
        if tried.returncode == 0 and f'Insert instance layer "{LAYER}"' in tried.stderr:
            return
        why = f"no Vulkan device, or no {LAYER}: install vulkan-validationlayers"
        if is_expected():
            raise AssertionError(f"{why}\n{words}")
        raise unittest.SkipTest(why)

    def expect_silence(self, *command: str, **variables: str) -> subprocess.CompletedProcess:
        done = run_validated(*command, **variables)
        words = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, words)
        found = [line for line in words.splitlines() if "Validation" in line or "VUID" in line]
        self.assertEqual(found, [], "\n".join(found[:5]))
        return done

    def devices(self, **variables: str) -> str:
        """The Vulkan devices, including emulated ones. SwiftShader only if there is no other: it takes five times as
        long, and the layer judges the same calls."""
        done = subprocess.run([SHUNT, "devices", "--json"], env={**os.environ, **variables}, capture_output=True,
                              text=True, check=True, timeout=600)
        names = {device["id"]: device["name"] for device in json.loads(done.stdout)["devices"]
                 if device["id"].startswith("vulkan:")}
        self.assertNotEqual(names, {})
        others = [id for id, name in names.items() if "SwiftShader" not in name]
        return ",".join(others or names)

    def test_every_op(self) -> None:
        self.expect_silence(SHUNT, "verify", "--quick", "--devices", self.devices())

    def test_kernels_that_only_gpus_run(self) -> None:
        pretended = {"SHUNT_VULKAN_LIBRARY": FAULTY_LIBRARY, "SHUNT_VULKAN_PRETENDS": "discrete"}
        device = self.devices(**pretended).split(",", maxsplit=1)[0]
        # With weights of F32 and Q8_0. An emulated GPU takes ten seconds to compile the kernel for another dtype.
        for op in ("rms_norm_linear", "rms_norm_swiglu"):
            for case in ("0.0.0.0.0.0", "0.0.0.0.0.1", "7.0.0.0.0.0", "7.3.0.0.0.1"):
                with self.subTest(op=op, case=case):
                    done = self.expect_silence(SHUNT, "verify", op, "--case", case, "--devices", device, "--json",
                                               **pretended)
                    ops = json.loads(done.stdout)["devices"][0]["ops"]
                    self.assertEqual(ops[op]["cases"], [1, 0, 0])

    def test_a_model(self) -> None:
        self.expect_silence(SHUNT, "run", MODEL, "Once", "-n", "2", "--greedy", "--devices", "vulkan:0")

    def test_a_model_whose_bytes_are_staged_and_its_trace(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.expect_silence(SHUNT, "run", MODEL, "Once", "-n", "2", "--greedy", "--devices", "vulkan:0", "--trace",
                                os.path.join(folder, "trace.json"), SHUNT_VULKAN_LIBRARY=FAULTY_LIBRARY,
                                SHUNT_VULKAN_PRETENDS="discrete")

    def test_transfers(self) -> None:
        self.expect_silence(DEVICES_TEST, "--gtest_filter=*VulkanFaults.*Bytes*:*VulkanFaults.*Pending*:"
                                          "*VulkanFaults.SmallBuffers*")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
