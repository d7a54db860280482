"""Peak memory of a run of the 168m shape: bounded, and predicted by `plan`.

Run by ctest as: python3 memory_test.py PROGRAM (not in sanitizer builds, whose shadow memory counts too)
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
MIB = 1 << 20


class PeakMemory(unittest.TestCase):
    def test_is_bounded_and_predicted(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "168m.gguf")
            subprocess.run([PROGRAM, "make-model", "168m", "Q8_0", path], check=True)
            plan = json.loads(subprocess.run([PROGRAM, "plan", path, "-c", "4096", "--json"], check=True,
                                             capture_output=True).stdout)
            subprocess.run([PROGRAM, "run", path, "word " * 300, "-c", "4096", "-n", "64", "--ignore-eos"], check=True,
                           capture_output=True)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
            pool = plan["prompt"]["memory"][0]
            cache = pool["state_bytes"]
            activations = pool["value_bytes"]
            self.assertEqual(cache, 8 * 2 * 4096 * 1024 * 2)
            bound = 1.15 * (os.path.getsize(path) + cache + activations) + 64 * MIB
            print(f"peak {peak / MIB:.0f} MiB, bound {bound / MIB:.0f}, predicted {plan['predicted_peak_bytes'] / MIB:.0f}")
            self.assertLessEqual(peak, bound)
            # The cache takes memory only where tokens were written, so the prediction may be above by as much.
            self.assertLessEqual(peak, plan["predicted_peak_bytes"])
            self.assertGreaterEqual(peak, plan["predicted_peak_bytes"] - cache - 32 * MIB)


if __name__ == "__main__":
    unittest.main()
