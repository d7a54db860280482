"""Runs whose Vulkan submissions are delayed, dropped, lost or hang end with the healthy text, or with an error.

Usage: vulkan_fault_runs_test.py SHUNT MODEL FAULTY_LIBRARY
"""
import os
import subprocess
import sys
import unittest

SHUNT, MODEL, FAULTY_LIBRARY = sys.argv[1:4]
# Removes SwiftShader, which ./dev adds: it would compile all kernels again in each of these runs.
os.environ.pop("VK_ADD_DRIVER_FILES", None)
# These runs end in time, or with an error at once.
PROMPT_FAULTS = ("delay 30ms at submission 5", "delay 5ms from submission 2", "lose at submission 3", "fail at allocation 1",
                 "fail from allocation 1", "delay 20ms at submission 3, lose at submission 4")
# These outlive the program's deadline, 1 s and 100 times its predicted time, which a busy machine may miss by itself.
LATE_FAULTS = ("hang at submission 4", "delay 4000ms at submission 4",
               "hang at submission 4, fail from allocation 9")
TIMEOUT = ("--timeout", "1")


def is_expected() -> bool:
    return "vulkan" in os.environ.get("SHUNT_EXPECT_APIS", "").split()


def run(fault: str, *options: str, pretends: str = "integrated") -> subprocess.CompletedProcess:
    settings = {"SHUNT_VULKAN_LIBRARY": FAULTY_LIBRARY, "SHUNT_VULKAN_PRETENDS": pretends, "SHUNT_VULKAN_FAULT": fault}
    return subprocess.run([SHUNT, "run", MODEL, "Once upon a time", "-n", "6", "--greedy", "--devices",
                           "vulkan:0,cpu:simd", "--strategy", "gpu", "-c", "64", *options],
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

    def test_what_fails_at_once_ends_with_the_healthy_text(self) -> None:
        for pretends in ("integrated", "discrete queues"):
            for fault in PROMPT_FAULTS:
                with self.subTest(fault=fault, pretends=pretends):
                    done = run(fault, pretends=pretends)
                    self.assertEqual((done.returncode, done.stdout), (0, self.text), done.stderr)

    def test_what_outlives_its_deadline_ends_with_the_healthy_text_or_an_error(self) -> None:
        for pretends in ("integrated", "discrete queues"):
            for fault in LATE_FAULTS:
                with self.subTest(fault=fault, pretends=pretends):
                    done = run(fault, *TIMEOUT, pretends=pretends)
                    self.assertIn("vulkan:0 failed, timed_out", done.stderr)
                    self.assertIn(done.returncode, (0, 1), done.stderr)
                    if done.returncode == 0:
                        self.assertEqual(done.stdout, self.text)
                    else:
                        self.assertIn("ran past its deadline", done.stderr)

    def test_a_lost_device_is_told(self) -> None:
        self.assertIn("vulkan:0 failed, device_lost", run("lose at submission 3").stderr)

    def test_a_text_that_is_no_fault_ends_the_process(self) -> None:
        done = run("sleep at submission 4")
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("is no fault", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
