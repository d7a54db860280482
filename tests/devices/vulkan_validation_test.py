"""Vulkan is used as it may be: the validation layer, its checks of synchronization included, finds nothing.

Usage: vulkan_validation_test.py SHUNT MODEL
"""
import os
import subprocess
import sys
import unittest

SHUNT, MODEL = sys.argv[1:3]
LAYER = "VK_LAYER_KHRONOS_validation"


def is_expected() -> bool:
    return "vulkan" in os.environ.get("SHUNT_EXPECT_APIS", "").split()


def run_validated(*arguments: str) -> subprocess.CompletedProcess:
    settings = {"VK_INSTANCE_LAYERS": LAYER,
                "VK_LAYER_ENABLES": "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT",
                "VK_LOADER_DEBUG": "layer"}
    return subprocess.run([SHUNT, *arguments], env={**os.environ, **settings}, capture_output=True, text=True,
                          check=False, timeout=600)


class Validation(unittest.TestCase):
    def setUp(self) -> None:
        listed = run_validated("devices")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        if "vulkan:0" in listed.stdout and f'Insert instance layer "{LAYER}"' in listed.stderr:
            return
        if is_expected():
            self.fail(f"there is no Vulkan device or no {LAYER}: install vulkan-validationlayers\n{listed.stdout}")
        self.skipTest(f"no Vulkan device or no {LAYER}")

    def expect_silence(self, *arguments: str) -> None:
        done = run_validated(*arguments)
        words = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, words)
        found = [line for line in words.splitlines() if "Validation" in line or "VUID" in line]
        self.assertEqual(found, [], "\n".join(found[:5]))

    def test_every_op(self) -> None:
        self.expect_silence("verify", "--devices", "vulkan")

    def test_a_model(self) -> None:
        self.expect_silence("run", MODEL, "Once", "-n", "2", "--greedy", "--devices", "vulkan:0")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
