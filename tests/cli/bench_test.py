"""`shunt bench`: which numbers it gives, in words and as JSON.

Run by ctest as: python3 bench_test.py PROGRAM
"""

import json
import os
import pathlib
import tempfile
import unittest

from program import ALONE, MODEL, CommandLine, shunt

MACHINES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "machines"


class Bench(CommandLine):
    def test_bench_of_a_random_model(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "nano.gguf")
            made = self.data("make-model", "nano", "Q8_0", path, "--seed", "3")
            self.assertEqual(made["bytes"], os.path.getsize(path))
            result = self.data("bench", "model", path, "--prompt", "8", "--generate", "4", "--repetitions", "2",
                               "--threads", "2")
            for what in ("prompt_tokens_per_s", "generate_tokens_per_s", "read_bytes_per_s"):
                self.assertEqual(set(result[what]), {"median", "min", "max"})
                self.assertGreater(result[what]["min"], 0)
            self.assertEqual(result["threads"], 2)
            self.assertGreater(result["share_of_bandwidth"], 0)
            counted = "prompt_instructions_per_cycle" in result
            for what in ("prompt_instructions_per_cycle", "generate_instructions_per_cycle") if counted else ():
                self.assertEqual(set(result[what]), {"median", "min", "max"})
                self.assertGreater(result[what]["min"], 0)
            words = shunt("bench", "model", path, "--prompt", "8", "--generate", "4", "--repetitions", "1", *ALONE).stdout
            self.assertEqual(" per cycle for the prompt, " in words, counted)
            self.assertEqual((result["loaded_bytes"], result["load_s"], result["load_bytes_per_s"]), (0, 0, 0))
            copied = self.data("bench", "model", path, "--prompt", "8", "--generate", "4", "--repetitions", "1",
                               "--devices", "sim:0", *ALONE)
            self.assertGreater(copied["loaded_bytes"], 0)
            self.assertNotIn("prompt_instructions_per_cycle", copied)
            self.assertAlmostEqual(copied["load_bytes_per_s"] * copied["load_s"] / copied["loaded_bytes"], 1)

    def test_bench_of_several_sequences_at_a_depth(self):
        def bench(*arguments):
            return self.data("bench", "model", MODEL, "--prompt", "8", "--generate", "4", "--repetitions", "1", *arguments)
        one, several = bench(), bench("--sequences", "4", "--depth", "20")
        self.assertEqual([(result["sequences"], result["depth"]) for result in (one, several)], [(1, 0), (4, 20)])
        self.assertEqual(several["bytes_per_token"], one["bytes_per_token"] // 4)
        self.refused(2, "-c 20 is less than --prompt 8 or --depth 20 and --generate 4", "bench", "model", MODEL, "-c", "20",
                     "--prompt", "8", "--generate", "4", "--depth", "20")

    def test_parts_of_a_hybrid_run_add_up(self):
        call = ("bench", "hybrid", MODEL, "--prompt", "8", "--generate", "4", "--repetitions", "2", "--strategy", "layers")
        result = self.data(*call, "--devices", "sim:0,cpu:simd")
        self.assertEqual((result["generation"]["tokens"], result["generation"]["steps"]), (1, 2 * 4))
        self.assertEqual((result["prompt"]["tokens"], result["prompt"]["steps"]), (8, 2))
        self.assertEqual(set(result["devices"]), {"sim:0", "cpu:simd"})
        self.assertGreater(result["host_weight_bytes"], 0)
        self.assertLess(result["host_weight_bytes"], result["weight_bytes"])
        for phase in (result["generation"], result["prompt"]):
            self.assertGreater(phase["us"], 0)
            self.assertAlmostEqual(sum(part["us"] for part in phase["parts"]) / phase["us"], 1)
            self.assertEqual(phase["parts"][0]["us"], phase["bound_us"])
        self.refused(1, "compares one GPU and the processor", *call, *ALONE)

    def test_a_report_of_a_hybrid_run_shows_the_tables_that_it_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            # Plans are for a power of two.
            call = ("bench", "hybrid", MODEL, "--prompt", "11", "--generate", "4", "--repetitions", "2", "--strategy", "layers",
                    "--devices", "sim:0,cpu:simd", "--trace", trace)
            result = self.data(*call)
            report = self.data("report", trace)
            self.assertEqual(report["steps"], [result["generation"], result["prompt"]])
            self.assertEqual(report["origin"]["command"], "bench hybrid")
            self.assertEqual(report["limits"].pop("prompt_tokens"), 11)
            self.assertIn(" of weights stay in host memory\n", report["limits"].pop("sentence"))
            self.assertEqual(report["limits"], {key: result[key] for key in report["limits"]})
            self.assertEqual(report["summary"]["runs"]["events"], 2 * 4 + 2, "what warmed up is not in the trace")
            printed = shunt(*call)
            self.assertEqual(printed.returncode, 0, printed.stderr)
            shown = shunt("report", trace).stdout
            limits_and_tables = printed.stdout.split(": ", 1)[1]
            self.assertRegex(limits_and_tables, r"\n\ngeneration, a token .*\n(.*\n)+all .*100 %\nmean of 8 steps, .*\n\nprompt, 11 tokens ")
            self.assertIn(limits_and_tables, shown)

    def test_weights_that_travel_are_apart_from_values(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            result = self.data("bench", "hybrid", MODEL, "--machine", str(MACHINES / "strong-gpu.json"), "--budget", "gpu:0=8MiB",
                               "--prompt", "128", "--generate", "1", "--repetitions", "1", "-c", "512", "--trace", trace)
            lines = [json.loads(line) for line in shunt("report", trace, "--lines").stdout.splitlines()]
            copied = [line for line in lines if line["kind"] == "transfer"]
            weights = [line for line in copied if line.get("reason") == "a weight that this step needs there"]
            self.assertGreater(len(weights), 10)
            for line in copied:
                self.assertEqual(".weight" in line["name"], line in weights, line)
            parts = {part["what"]: part["us"] for part in result["prompt"]["parts"]}
            traveled_us = sum(line["bytes"] for line in weights) / result["link_bytes_per_s"] * 1e6
            self.assertAlmostEqual(parts["the link"] + parts["more or fewer weights on it than that"], traveled_us)
            self.assertGreater(parts["the link"], 0)
            self.assertAlmostEqual(sum(parts.values()), result["prompt"]["us"])
            self.assertEqual(self.data("report", trace)["steps"], [result["generation"], result["prompt"]])

    def test_bench_of_ops_has_rates_and_shares(self):
        quick = ("--shape", "micro", "--prompt", "3", "--repetitions", "2", "--threads")
        result = self.data("bench", "ops", "argmax", *quick, "2", "--devices", "cpu")
        self.assertEqual((result["shape"], result["threads"]), ("micro", 2))
        for what in ("read_bytes_per_s", "peak_flops_per_s", "peak_flops_per_s_one_thread", "fork_join_us"):
            self.assertGreater(result[what]["min"], 0)
        # The scalar kernels take long for products.
        products = self.data("bench", "ops", "linear", "argmax", *quick, "1", "--devices", "cpu:simd")
        for found, ops, devices in ((result, ["argmax"], ["cpu:simd", "cpu:scalar"]),
                                    (products, ["linear", "argmax"], ["cpu:simd"])):
            self.assertEqual({(row["op"], row["rows"], row["device"]) for row in found["ops"]},
                             {(op, rows, device) for op in ops for rows in (1, 3) for device in devices})
        self.assertLessEqual({"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q5_K", "Q6_K"},
                             {row["dtype"] for row in products["ops"]})
        for row in result["ops"] + products["ops"]:
            self.assertIn(row["repetitions"], (1, 2))  # a slow op is measured only once
            for what in ("seconds", "bytes_per_s", "flops_per_s", "share_of_bandwidth", "share_of_peak"):
                self.assertEqual(set(row[what]), {"median", "min", "max"})
                self.assertGreater(row[what]["min"], 0)
            self.assertIn(row["reads"], ("memory", "reused"))
            self.assertEqual("instructions_per_cycle" in row, "instructions_per_cycle" in result["ops"][0])
            self.assertGreater(row.get("instructions_per_cycle", {"min": 1})["min"], 0)
        text = shunt("bench", "ops", "argmax", *quick, "2")
        self.assertEqual(text.stderr, "")
        self.assertEqual(text.stdout.count("cpu:simd"), sum(row["op"] == "argmax" for row in result["ops"]) // 2)
        self.assertNotIn("cpu:scalar", text.stdout)
        self.assertEqual("IPC" in text.stdout, "instructions_per_cycle" in result["ops"][0])
        simulated = self.data("bench", "ops", "argmax", *quick, "1", "--devices", "sim:0")
        self.assertFalse(any("instructions_per_cycle" in row for row in simulated["ops"]))

    def test_bench_of_ops_has_launch_cost_and_a_curve(self):
        result = self.data("bench", "ops", "--curve", "--devices", "cpu:simd,sim:0", "--repetitions", "1", *ALONE)
        self.assertEqual((result["threads"], [device["device"] for device in result["devices"]]),
                         (1, ["cpu:simd", "sim:0"]))
        self.assertGreater(result["read_bytes_per_s"]["min"], 0)
        for device in result["devices"]:
            self.assertGreater(device["program_us"]["min"], 0)
            self.assertEqual(set(device["op_us"]), {"median", "min", "max"})
            sizes = [point["bytes"] for point in device["curve"]]
            self.assertEqual(sizes, [4096 * 4 ** number for number in range(len(sizes))])
            self.assertGreater(len(sizes), 3)
            for point in device["curve"]:
                self.assertGreater(point["bytes_per_s"]["min"], 0)
                self.assertEqual("share_of_bandwidth" in point, device["device"] == "cpu:simd")
        text = shunt("bench", "ops", "--curve", "--devices", "sim:0", "--repetitions", "1", *ALONE).stdout
        self.assertRegex(text, r"\nsim:0, .+\na program of one tiny op +[\d.]+ us\neach further tiny op +-?[\d.]+ us\n")
        self.assertRegex(text, r"\n +moves +us +GB/s\n +4.0 KiB +[\d.]+ +[\d.]+\n +16.0 KiB ")
        self.refused(2, "--curve measures devices, not ops; leave out OP", "bench", "ops", "add", "--curve")

    def test_a_check_of_speeds_says_what_was_held_to_which_limit(self):
        check = shunt("bench", "check", "argmax", "--shape", "micro", "--prompt", "3", "--repetitions", "1", "--json")
        result = json.loads(check.stdout)
        self.assertEqual(len(result["gates"]), 1)
        gate = result["gates"][0]
        self.assertEqual((gate["measure"], gate["op"], gate["dtype"], gate["rows"]),
                         ("simd_speedup", "argmax", "F32", 3))
        self.assertEqual(gate["passed"], gate["value"]["median"] >= gate["at_least"])
        self.assertEqual(result["passed"], gate["passed"])
        self.assertEqual(check.returncode, 0 if gate["passed"] else 1)


if __name__ == "__main__":
    unittest.main()
