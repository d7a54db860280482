"""Peak memory of a run of the 168m shape: bounded, and predicted by `plan`.

Run by ctest as: python3 memory_test.py PROGRAM (not in sanitizer builds, whose shadow memory counts too)
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
MIB = 1 << 20
CONTEXT = 4096


def output_and_peak(*arguments):
    """The program's JSON output, and its peak resident memory in bytes."""
    with tempfile.TemporaryFile() as output:
        process = os.posix_spawn(PROGRAM, [PROGRAM, *arguments, "--json"], os.environ,
                                 file_actions=[(os.POSIX_SPAWN_DUP2, output.fileno(), 1)])
        _, status, usage = os.wait4(process, 0)
        if status != 0:
            raise AssertionError(f"{arguments} ended with status {status}")
        output.seek(0)
        return json.load(output), usage.ru_maxrss * 1024


class PeakMemory(unittest.TestCase):
    def test_is_bounded_and_predicted(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "168m.gguf")
            output_and_peak("make-model", "168m", "Q8_0", path)
            plan, _ = output_and_peak("plan", path, "-c", str(CONTEXT))
            run, peak = output_and_peak("run", path, "word " * 300, "-c", str(CONTEXT), "-n", "64", "--ignore-eos")
            pool = plan["prompt"]["memory"][0]
            cache = pool["state_bytes"]
            activations = pool["value_bytes"]
            self.assertEqual(cache, 8 * 2 * CONTEXT * 1024 * 2)
            bound = 1.15 * (os.path.getsize(path) + cache + activations) + 64 * MIB
            # The prediction is for a full context; the cache occupies memory only for tokens that were written.
            taken = len(run["prompt_tokens"]) + len(run["tokens"])
            predicted = plan["predicted_peak_bytes"] - cache * (1 - taken / CONTEXT)
            print(f"peak {peak / MIB:.0f} MiB, bound {bound / MIB:.0f}, predicted {predicted / MIB:.0f} "
                  f"with {taken} of {CONTEXT} tokens taken")
            self.assertLessEqual(peak, bound)
            self.assertLessEqual(abs(peak - predicted), 32 * MIB)


if __name__ == "__main__":
    unittest.main()
