"""`shunt verify`: what it counts and shows.

Run by ctest as: python3 verify_test.py PROGRAM
"""

import unittest

from program import ALONE, CommandLine, shunt


class Verify(CommandLine):
    def test_cases_are_counted_by_device_op_and_dtype(self):
        report = self.data("verify", "add", "argmax", "dequantize", *ALONE)
        self.assertTrue(report["ok"])
        self.assertEqual([device["label"] for device in report["devices"]], ["cpu:simd", "cpu:scalar"])
        for device in report["devices"]:
            self.assertEqual(list(device["ops"]), ["add", "argmax", "dequantize"])
            self.assertEqual(set(device["ops"]["argmax"]), {"cases", "F32", "F16", "BF16", "I32"})
            for op, counts in device["ops"].items():
                tallies = [tally for tally in report["tallies"]
                           if (tally["device"], tally["op"], tally["sizes"]) == (device["device"], op, "awkward")]
                self.assertEqual(counts["cases"], [sum(tally[key] for tally in tallies)
                                                   for key in ("passed", "declined", "failed")])
                of_q4 = sum(tally["passed"] for tally in tallies if "Q4_0" in tally["dtypes"])
                self.assertEqual(counts.get("Q4_0", [0, 0, 0]), [of_q4, 0, 0])
                self.assertEqual(of_q4 > 0, op == "dequantize")

    def test_large_operands_are_left_out_where_that_is_asked_for(self):
        for options, has_large in (((), True), (("--quick",), False)):
            tallies = self.data("verify", "add", "--devices", "cpu:simd", *options, *ALONE)["tallies"]
            sizes = {tally["sizes"] for tally in tallies}
            self.assertIn("awkward", sizes)
            self.assertEqual(len(sizes) > 1, has_large)

    def test_the_table_has_a_block_for_each_device(self):
        text = shunt("verify", "add", "argmax", "linear", "dequantize", "--devices", "cpu:simd,cpu:scalar", *ALONE).stdout
        simd, scalar = text.split("\n\ncpu:scalar, ")
        self.assertRegex(simd, r"^cpu:simd, .+\nop +cases +dtypes\nadd +\d+ correct, error \S+ +F32, F16, BF16\n")
        self.assertRegex(simd, r"\nlinear +\d+ correct, \d+ declined, error \S+ +in part F32, F16, BF16, all block types\n")
        self.assertRegex(simd, r"\ncpu:simd declined \d+, such as: .+")
        self.assertRegex(scalar, r"\nargmax +\d+ correct, error \S+ +F32, F16, BF16, I32\n")
        self.assertRegex(scalar, r"\ndequantize +\d+ correct, error \S+ +F32, F16, BF16, all block types\n$")
        for line in text.splitlines():
            if " declined " not in line:
                self.assertLessEqual(len(line), 120)

    def test_one_op_one_case_one_device(self):
        chosen = shunt("verify", "softmax", "--case", "1.2.3.0.1.0.2.0.1", "--seed", "9", "--devices", "cpu:simd",
                       "--threads", "3")
        self.assertEqual(chosen.returncode, 0, chosen.stderr)
        self.assertEqual(len(chosen.stdout.splitlines()), 3)
        self.assertRegex(chosen.stdout, r"^cpu:simd, .+\nop .+\nsoftmax +1 correct, error ")
        self.assertIn("seed 9", chosen.stderr)

    def test_numbers_that_are_no_case_are_refused_with_what_a_case_is(self):
        for case in ("99.99.99", "1.2", "0.0.0.0.0.0.0.0.0.0.0.0"):
            self.refused(2, f"--case: {case} is not a case of softmax, which takes 9 numbers: 0-2, 0-3, ", "verify",
                         "softmax", "--case", case)


if __name__ == "__main__":
    unittest.main()
