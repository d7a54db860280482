"""Runs on failing devices: the text stays the same, and the user is told.

Run by ctest as: python3 failures_test.py PROGRAM
"""

import os
import pathlib
import tempfile
import unittest

from program import ALONE, CommandLine, MODEL, shunt

RUN = ("run", MODEL, "Once upon a time", "-n", "12", "--greedy")


class Failures(CommandLine):
    def faulty(self, faults, *arguments):
        return shunt(*RUN, *arguments, env={"SHUNT_FAULTS": faults})

    def test_the_text_is_the_same_and_the_user_hears_of_it(self):
        whole = shunt(*RUN, "--devices", "cpu:scalar")
        for fault in ("lost at op 300", "hang at op 100", "oom after 5 allocations", "error at transfer 10",
                      "nonfinite at op 50"):
            result = self.faulty(f"sim:0 {fault}", "--devices", "sim:0,cpu:scalar", "--strategy", "layers")
            self.assertEqual((result.returncode, result.stdout), (0, whole.stdout), result.stderr)
            self.assertRegex(result.stderr, "(sim:0|cpu:scalar)( failed, .*going on with |.*less to do)")

    def test_audits_find_a_device_that_is_wrong(self):
        # This penalty needs all logits. Wrong candidates are noticed, because they are not tokens.
        penalty = ("--repeat-penalty", "1.1")
        whole = shunt(*RUN, *penalty, "--devices", "cpu:scalar")
        wrong = ("sim:0 wrong after 0 ops", *penalty, "--devices", "sim:0,cpu:scalar", "--strategy", "gpu")
        self.assertNotEqual(self.faulty(*wrong).stdout, whole.stdout)
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "t.json")
            result = self.faulty(*wrong, "--audit=1", "--trace", trace)
            summary = shunt("report", trace).stdout
        self.assertEqual((result.returncode, result.stdout), (0, whole.stdout), result.stderr)
        self.assertRegex(result.stderr, "sim:0 failed, internal: .* is wrong: .*going on with cpu:scalar")
        self.assertRegex(summary, "audits of(.|\n)*sim:0 .* 1 failed")
        self.assertEqual(self.faulty(*wrong, "--audit", "--strict").returncode, 0, "too few runs for one in 16")
        self.refused(2, "--audit", *RUN, "--audit=0")

    def test_the_summary_names_all_devices_that_ran(self):
        result = self.faulty("sim:0 lost at op 500", "--devices", "sim:0,cpu:scalar", "--strategy", "gpu")
        self.assertIn("going on with cpu:scalar", result.stderr)
        self.assertIn("\ndevices    sim:0, cpu:scalar", result.stderr)

    def test_a_trace_tells_it_too(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "t.json")
            self.faulty("sim:0 lost at op 300", "--devices", "sim:0,cpu:scalar", "--strategy", "layers", "--trace", trace)
            summary = shunt("report", trace).stdout
        self.assertIn("! sim:0 failed, device_lost", summary)
        self.assertRegex(summary, "sim:0 .* 1 failed")

    def test_strict_is_an_error(self):
        result = self.faulty("sim:0 lost at op 300", "--devices", "sim:0,cpu:scalar", "--strategy", "layers",
                             "--strict")
        self.assertEqual(result.returncode, 1)
        self.assertIn("sim:0 was lost", result.stderr)
        self.assertNotIn("going on", result.stderr)

    def test_what_hangs_ends_in_the_time_that_it_is_given(self):
        result = self.faulty("cpu:simd hang at op 300", "--timeout", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("cpu:simd failed, timed_out", result.stderr)

    def test_a_program_that_outlives_its_deadline_outlives_no_memory_that_it_reads(self):
        call = ("run", MODEL, "Once upon a time there was a fox. " * 40, "-n", "4", "--greedy", "-c", "1024", *ALONE)
        whole = shunt(*call, "--devices", "cpu:simd")
        for timeout in ("0.02", "1"):
            result = shunt(*call, "--devices", "vulkan:0,cpu:simd", "--strategy", "gpu", "--timeout", timeout)
            self.assertIn(result.returncode, (0, 1), result.stderr)  # a slow build may be late on the processor, too
            self.assertIn("it still ran at its deadline", result.stderr)
            if result.returncode == 0:
                self.assertEqual(result.stdout, whole.stdout)

    def test_numbers_that_are_not_finite_are_never_text(self):
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "nan.gguf")
            whole = bytearray(pathlib.Path(MODEL).read_bytes())
            # The last bytes belong to a weight: NaN in F16.
            whole[-64:] = b"\xff\x7f" * 32
            pathlib.Path(model).write_bytes(whole)
            for command in (("run", model, "Once upon a time", "-n", "4"), ("eval", model, "--text", "Once upon a time")):
                for devices in ("cpu:simd", "cpu:scalar", "sim:0,cpu:simd"):
                    result = shunt(*command, "--devices", devices, *ALONE)
                    self.assertEqual(result.returncode, 1, result.stdout)
                    self.assertNotIn("nan", result.stdout)
                    self.assertRegex(result.stderr, r"the logits are not finite.*: op [a-z_]+ makes tensor \"[^\"]+\" not finite "
                                                    r"on (cpu|sim):[a-z0-9]+; its weight \"[^\"]+\" has numbers")

    def test_a_result_that_is_not_finite_once_is_computed_again(self):
        whole = shunt(*RUN, "--devices", "sim:0")
        result = self.faulty("sim:0 nonfinite at op 292", "--devices", "sim:0")
        self.assertEqual((result.returncode, result.stdout), (0, whole.stdout), result.stderr)

    def test_faults_that_nobody_knows_are_refused(self):
        result = self.faulty("cpu:simd gone at op 3")
        self.assertEqual(result.returncode, 2)
        self.assertIn("not understood", result.stderr)

    def test_faults_of_a_device_that_is_not_used_are_told(self):
        result = self.faulty("cuda:7 lost at op 3")
        self.assertEqual(result.returncode, 0)
        self.assertIn('a fault names "cuda:7", which is not among the devices in use', result.stderr)

    def test_logits_are_those_of_the_reference(self):
        result = shunt("eval", MODEL, "--text", "Once upon a time", "--devices", "sim:0,cpu:simd", "--strategy", "layers",
                       "--against", "cpu:scalar", env={"SHUNT_FAULTS": "sim:0 lost at op 70"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("sim:0 failed, device_lost", result.stderr)

    def test_results_that_differ_by_more_than_numerics_may_end_with_1(self):
        for numerics, allowed in (("exact", "0.00015"), ("auto", "0.00015"), ("fast", "0.001")):
            result = shunt("eval", MODEL, "--text", "Once upon a time", "--devices", "sim:0,cpu:scalar", "--strategy", "gpu",
                           "--against", "cpu:scalar", "--numerics", numerics, env={"SHUNT_FAULTS": "sim:0 wrong after 0 ops"})
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertRegex(result.stdout, rf"mean KL divergence  [\d.]+ nats \(allowed: {allowed}\)")
            self.assertIn(f"by more than {numerics} numerics may", result.stderr)

    def test_a_kind_of_device_that_there_is_not_is_done_without_unless_that_is_strict(self):
        call = (*RUN, "--devices", "cpu:scalar", "--strategy", "gpu")
        missing = "strategy gpu: no such device is among those in use: cpu:scalar"
        result = shunt(*call)
        self.assertEqual((result.returncode, result.stdout), (0, shunt(*RUN, "--devices", "cpu:scalar").stdout))
        self.assertIn(f"{missing}; going on as with auto", result.stderr)
        result = shunt(*call, "--strict")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn(missing, result.stderr)

    def test_only_means_no_other(self):
        result = shunt(*RUN, "--strategy", "only:cpu:scalar")
        self.assertIn("devices    cpu:scalar", result.stderr)
        self.refused(2, "unknown device", *RUN, "--strategy", "only:nothing")
        self.refused(2, "leave one of them out", *RUN, "--strategy", "only:cpu", "--devices", "cpu")


if __name__ == "__main__":
    unittest.main()
