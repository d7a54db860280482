"""`shunt devices` on machines with different software installed, and what it remembers for the next call.

Run by ctest as: python3 devices_test.py PROGRAM. Machines without a loader, or with one driver, are this one with
variables that name other files. Prints how long an answer takes.
"""

import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import time
import unittest

from program import PROGRAM, SECONDS

ROOT = pathlib.Path(__file__).resolve().parents[2]
APIS = re.findall(r"^SHUNT_BACKEND\((\w+)", (ROOT / "src/devices/backends.def").read_text(), re.MULTILINE)
# The variable of each library, and the advice to users who lack it.
LIBRARIES = {
    "cuda": ("SHUNT_CUDA_LIBRARY", "install NVIDIA's driver"),
    "hip": ("SHUNT_HIP_LIBRARY", "install libamdhip64"),
    "vulkan": ("SHUNT_VULKAN_LIBRARY", "install libvulkan1"),
    "metal": ("SHUNT_METAL_LIBRARY", "it takes a Mac"),
    "gl": ("SHUNT_EGL_LIBRARY", "install libegl1"),
    "gles": ("SHUNT_EGL_LIBRARY", "install libegl1"),
    "webgpu": ("SHUNT_WEBGPU_LIBRARY", "SHUNT_WEBGPU_LIBRARY"),
    "webgl2": ("SHUNT_WEBGL_LIBRARY", "it must be a library's file"),
}
NOWHERE = "/nowhere/library.so"
IN_PROCESSES = {"cuda", "hip", "vulkan", "gl", "gles", "webgpu"}  # in child processes, whose answers are cached
DRIVER_VARIABLES = ("VK_", "SHUNT_", "EGL_", "__EGL_", "CUDA_", "HIP_", "LD_")
LAVAPIPE = next(iter(sorted(pathlib.Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))), None)
SWIFTSHADER = pathlib.Path("/usr/lib/chromium/vk_swiftshader_icd.json")
EXPECTED = os.environ.get("SHUNT_EXPECT_APIS", "").split()
HAS_LOADER = subprocess.run(["sh", "-c", "ldconfig -p | grep -q libvulkan.so.1"], check=False).returncode == 0


class Machine:
    """This machine, with only the given driver variables, and without the libraries that are not given."""

    def __init__(self, cache, with_libraries=(), **variables):
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith(DRIVER_VARIABLES)}
        self.variables |= {variable: NOWHERE for api, (variable, _) in LIBRARIES.items() if api not in with_libraries}
        self.variables |= {"SHUNT_CACHE_DIR": str(cache), **variables}

    def call(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments], env=self.variables, capture_output=True, text=True,
                              timeout=SECONDS, check=False)
        if done.returncode != 0:
            raise AssertionError(f"exit {done.returncode}: {done.stderr}")
        return done

    def devices(self, *arguments):
        return json.loads(self.call("devices", "--json", *arguments).stdout)

    def times(self, *arguments):
        """The shortest of ten runs: wall-clock seconds and processor seconds."""
        passed, computed = [], []
        for _ in range(10):
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            self.call(*arguments)
            passed.append(time.monotonic() - began)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            computed.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(passed), min(computed)


class Devices(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def known_apis(self, found):
        self.assertEqual([api["api"] for api in found["apis"]], APIS)
        return {api["api"] for api in found["apis"] if api["known"]}

    def expect_absent(self, found, text, api):
        """Expects the API's library, or its kernels in this build, to be missing, and advice in both the JSON and the
        text."""
        variable, advice = LIBRARIES[api]
        absent = {each["api"]: each for each in found["absent"]}[api]
        self.assertIn(absent["stage"], ("library not found", "not built"), absent)
        self.assertIn(f"{api}: absent ({absent['stage']}), {absent['reason']}\n", text)
        if absent["stage"] == "library not found":
            self.assertIn(f"{NOWHERE} of {variable} cannot be opened", absent["reason"])
            self.assertIn(advice, absent["reason"])
        else:
            self.assertIn("missing", absent["reason"])

    def expect_one_emulated_vulkan_device(self, driver, name):
        """Expects one emulated Vulkan device on a machine with only this Vulkan driver. Returns the machine."""
        machine = Machine(self.folder, ["vulkan"], VK_DRIVER_FILES=str(driver))
        first = machine.call("devices")
        self.assertRegex(first.stderr, r"Started these drivers at the same time: .*vulkan \d+ ms")
        found = machine.devices()
        self.assertEqual([device["id"] for device in found["devices"]], ["cpu:simd", "cpu:scalar", "vulkan:0"])
        device = found["devices"][-1]
        self.assertIn(name, device["name"])
        self.assertTrue(device["emulated"])
        self.assertEqual(device["compute_resource"], found["devices"][0]["compute_resource"])
        self.assertRegex(first.stdout, rf"\nvulkan:0 +\w+, emulated +cpu:simd +.* {re.escape(device['name'])} ")
        for api in LIBRARIES:
            if api != "vulkan":
                self.expect_absent(found, first.stdout, api)
        return machine

    def has_driver(self, file, package):
        if HAS_LOADER and file is not None and file.exists():
            return
        why = f"this needs libvulkan1 and {package}"
        self.assertNotIn("vulkan", EXPECTED, why)
        self.skipTest(why)

    def test_without_any_loader_each_api_says_where_it_stopped_and_what_helps(self):
        machine = Machine(self.folder)
        text = machine.call("devices").stdout
        found = machine.devices()
        self.assertEqual([device["id"] for device in found["devices"]], ["cpu:simd", "cpu:scalar"])
        self.assertEqual([each["api"] for each in found["absent"]], APIS[1:])
        for api in LIBRARIES:
            self.expect_absent(found, text, api)
        self.assertIn("sim: absent (no device), a device is simulated where it is named, as sim:0 or sim:1\n", text)
        self.assertRegex(text, r"\ncpu:simd +cpu +- +\S+ \S+ of \S+ \S+ free  ")
        self.assertIn("\ncpu:simd ", machine.call("devices", "--features").stdout)

    def test_with_lavapipe_alone(self):
        self.has_driver(LAVAPIPE, "mesa-vulkan-drivers")
        self.expect_one_emulated_vulkan_device(LAVAPIPE, "llvmpipe")

    def test_with_swiftshader_alone(self):
        self.has_driver(SWIFTSHADER, "chromium (Debian's)")
        self.expect_one_emulated_vulkan_device(SWIFTSHADER, "SwiftShader")

    def test_what_was_found_is_known_until_a_file_that_announces_a_driver_changes(self):
        self.has_driver(LAVAPIPE, "mesa-vulkan-drivers")
        announcement = self.folder / "driver.json"
        shutil.copy(LAVAPIPE, announcement)
        machine = Machine(self.folder / "cache", ["vulkan"], VK_DRIVER_FILES=str(announcement))
        self.assertEqual(self.known_apis(machine.devices()), set())
        found = machine.devices()
        self.assertEqual(self.known_apis(found), IN_PROCESSES)
        self.assertIn("vulkan:0", [device["id"] for device in found["devices"]])
        self.assertNotRegex(machine.call("devices").stderr, "|".join(IN_PROCESSES), "none was started")
        self.assertEqual(self.known_apis(machine.devices("--again")), set())

        announcement.write_text(announcement.read_text() + "\n")
        self.assertEqual(self.known_apis(machine.devices()), set(), "it has other bytes")
        self.assertEqual(self.known_apis(machine.devices()), IN_PROCESSES)
        announcement.unlink()
        found = machine.devices()
        self.assertEqual(self.known_apis(found), set(), "it is gone")
        absent = {each["api"]: each for each in found["absent"]}["vulkan"]
        self.assertIn("mesa-vulkan-drivers", absent["reason"])
        self.assertEqual(self.known_apis(machine.devices()), IN_PROCESSES)
        shutil.copy(LAVAPIPE, announcement)
        self.assertIn("vulkan:0", [device["id"] for device in machine.devices()["devices"]], "it is there again")

    def test_how_long_an_answer_takes(self):
        """Asserts no times, since a busy machine varies; the printed times are for people."""
        with_vulkan = HAS_LOADER and LAVAPIPE is not None
        machine = Machine(self.folder, ["vulkan"] if with_vulkan else [], VK_DRIVER_FILES=str(LAVAPIPE))
        began = time.monotonic()
        first = machine.call("devices", "--json")
        first_s = time.monotonic() - began
        start_ms = max(api["start_ms"] for api in json.loads(first.stdout)["apis"])
        passed, computed = machine.times("devices")
        bare_passed, bare_computed = machine.times("--version")
        self.assertEqual(self.known_apis(machine.devices()), IN_PROCESSES, "the times are those of what is known")
        print(f"shunt devices: the first time {1e3 * first_s:.0f} ms, of which the slowest driver took {start_ms:.0f}; "
              f"then {1e3 * passed:.1f} ms, {1e3 * (passed - bare_passed):.1f} more than shunt --version "
              f"(of processors: {1e3 * (computed - bare_computed):.1f} ms more)")


if __name__ == "__main__":
    unittest.main(verbosity=2)
