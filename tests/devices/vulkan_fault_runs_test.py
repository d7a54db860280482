"""Runs whose Vulkan submissions are delayed, dropped, lost or hang end with the healthy text, or with an error.

Usage: vulkan_fault_runs_test.py SHUNT MODEL FAULTY_LIBRARY
"""
import os
import subprocess
import sys
import unittest

SHUNT, MODEL, FAULTY_LIBRARY = sys.argv[1:4]
FAULTS = ("delay 30ms at submission 5", "delay 5ms from submission 2", "hang at submission 4", "lose at submission 6",
          "fail at allocation 1", "delay 2500ms at submission 4, lose at submission 6",
          "hang at submission 4, fail from allocation 9")


def is_expected() -> bool:
    return "vulkan" in os.environ.get("SHUNT_EXPECT_APIS", "").split()


def run(fault: str, pretends: str = "integrated") -> subprocess.CompletedProcess:
    settings = {"SHUNT_VULKAN_LIBRARY": FAULTY_LIBRARY, "SHUNT_VULKAN_PRETENDS": pretends, "SHUNT_VULKAN_FAULT": fault}
    return subprocess.run([SHUNT, "run", MODEL, "Once upon a time", "-n", "6", "--greedy", "--devices",
                           "vulkan:0,cpu:simd", "--strategy", "gpu", "--timeout", "2", "-c", "64"],
                          env={**os.environ, **settings}, capture_output=True, text=True, check=False, timeout=120)


class FaultRuns(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        healthy = run("")
        if healthy.returncode == 0:
            cls.text = healthy.stdout
            return
        if is_expected():
            raise AssertionError(healthy.stderr)
        raise unittest.SkipTest(f"vulkan is absent: {healthy.stderr}")

    def test_a_run_that_succeeds_has_the_healthy_text(self) -> None:
        for pretends in ("integrated", "discrete queues"):
            for fault in FAULTS:
                with self.subTest(fault=fault, pretends=pretends):
                    done = run(fault, pretends)
                    self.assertEqual((done.returncode, done.stdout), (0, self.text), done.stderr)

    def test_faults_are_told(self) -> None:
        for fault, told in (("hang at submission 4", "timed_out"), ("lose at submission 6", "device_lost")):
            with self.subTest(fault=fault):
                self.assertIn(told, run(fault).stderr)

    def test_a_text_that_is_no_fault_ends_the_process(self) -> None:
        done = run("sleep at submission 4")
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("is no fault", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
