"""Simulated machines: plans for each example, and a run on simulated devices that gives the real text.

Run by ctest as: python3 machines_test.py PROGRAM
"""

import json
import os
import pathlib
import re
import tempfile
import unittest

from program import ALONE, CommandLine, MODEL, STORY, shunt

EXAMPLES = sorted((pathlib.Path(__file__).resolve().parents[2] / "examples" / "machines").glob("*.json"))
PHASES = ("prompt", "generation")


class Machines(CommandLine):
    def machine(self, description):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "machine.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(description if isinstance(description, str) else json.dumps(description))
        return path

    def test_there_are_plans_for_every_example(self):
        self.assertEqual(len(EXAMPLES), 9)
        for path in EXAMPLES:
            ids = [device["id"] for device in json.loads(path.read_text())["devices"]]
            if path.name == "two-apis.json":
                ids.remove("vulkan:0")
            plan = self.data("plan", MODEL, "--machine", str(path))
            for phase in PHASES:
                self.assertEqual([device["id"] for device in plan[phase]["devices"]], ids, path.name)
                for unit in plan[phase]["units"]:
                    self.assertEqual(len(unit["candidates"]), len(ids), path.name)
            self.assertRegex(shunt("plan", MODEL, "--machine", str(path), "--explain").stdout, f" on ({'|'.join(ids)}): ")

    def test_the_summary_of_a_plan_fits_a_screen_and_tells_what_the_data_tell(self):
        for path in EXAMPLES:
            call = ("plan", MODEL, "--machine", str(path))
            plan, text = self.data(*call), shunt(*call).stdout
            self.assertLessEqual(len(text.splitlines()), 24, path.name)
            self.assertLessEqual(max(map(len, text.splitlines())), 160)
            for phase, tokens in (("prompt", plan["prompt_tokens"]), ("generation", 1)):
                speed = tokens * 1e6 / plan[phase]["predicted_us"]
                self.assertAlmostEqual(plan["summary"][f"{phase}_tokens_per_s"], speed, delta=1e-6 * speed)
                self.assertRegex(text, rf"\n{phase} +{speed:.1f} tokens/s, ")
            busy = {device["id"]: 0 for device in plan["generation"]["devices"]}
            for step in plan["generation"]["steps"]:
                if step["kind"] == "compute":
                    busy[step["device"]] += step["end_us"] - step["start_us"]
            bottleneck = plan["summary"]["bottleneck"]
            if bottleneck["name"] in busy:
                self.assertEqual(bottleneck["name"], max(busy, key=busy.get))
                self.assertIn(bottleneck["op"], {unit["op"] for unit in plan["generation"]["units"]})
            self.assertRegex(text, rf"\nbottleneck +{bottleneck['name']}, busy for \d+ % of a token")
            where = {}
            for unit in plan["generation"]["units"]:
                layer = re.match(r"blk\.(\d+)\.", unit["nodes"][-1])
                if layer:
                    where.setdefault(int(layer[1]), set()).add(unit["device"])
            for device, us in busy.items():
                line = next(line for line in text.splitlines() if line.startswith(f"{device} "))
                self.assertIn(f" {100 * us / plan['generation']['predicted_us']:.0f} %", line)
                whole = re.search(r"(?<!of )layers? ([\d, -]+)", line)
                listed = set()
                for part in whole[1].strip(" ,").split(", ") if whole else []:
                    ends = [int(end) for end in part.split("-")]
                    listed |= set(range(ends[0], ends[-1] + 1))
                self.assertEqual(listed, {layer for layer, devices in where.items() if devices == {device}}, line)
            self.assertIn("\n--explain shows each op", text)
            self.assertNotIn(" on ", text)

    def test_a_plan_is_for_the_memory_of_the_machine(self):
        cpu = {"id": "cpu", "type": "cpu", "memory_bytes": "8 MiB"}
        self.refused(1, "MiB of memory that are free", "plan", MODEL, "--machine", self.machine({"devices": [cpu]}))
        cpu["memory_bytes"] = "4 TiB"
        plan = self.data("plan", MODEL, "--context", "1024", "--machine", self.machine({"devices": [cpu]}))
        self.assertEqual(plan["context"], 1024)

    def test_a_faster_device_makes_the_plan_of_a_prompt_faster(self):
        cpu = {"id": "cpu", "type": "cpu", "flops_per_s": 1e12, "bytes_per_s": 1e11}
        gpu = {"id": "gpu", "type": "integrated", "memory_pool": "host", "flops_per_s": 1e13, "bytes_per_s": 1e12}
        alone = self.data("plan", MODEL, "--machine", self.machine({"devices": [cpu]}))["prompt"]
        both = self.data("plan", MODEL, "--machine", self.machine({"devices": [cpu, gpu]}))["prompt"]
        self.assertIn("gpu", {unit["device"] for unit in both["units"]})
        self.assertLess(both["predicted_us"], alone["predicted_us"])

    def test_devices_are_those_of_the_machine(self):
        path = str(next(path for path in EXAMPLES if path.name == "unified.json"))
        result = self.data("devices", "--machine", path)
        self.assertEqual([(device["id"], device["type"], device["memory_pool"], device["emulated"])
                          for device in result["devices"]],
                         [("cpu", "cpu", "host", False), ("gpu:0", "integrated", "host", False)])
        self.assertEqual(result["devices"][0]["memory_available_bytes"], 32 << 30)
        self.assertRegex(shunt("devices", "--machine", path).stdout, r"\ngpu:0 +integrated +- +32.00 GiB of 32.00 GiB free")

    def test_a_machine_that_computes_gives_the_text_of_the_reference_kernels(self):
        call = ("run", MODEL, STORY, "--greedy", "-n", "8")
        expected = self.data(*call, "--devices", "cpu:scalar", *ALONE)
        for name, strategy, ids in (("unified.json", "auto", {"cpu", "gpu:0"}),
                                    ("two-unequal-gpus.json", "layers", {"cpu", "gpu:0", "gpu:1"})):
            path = str(next(path for path in EXAMPLES if path.name == name))
            result = self.data(*call, "--machine", path, "--strategy", strategy)
            self.assertEqual((result["text"], result["tokens"]), (expected["text"], expected["tokens"]), name)
            self.assertLessEqual(set(result["devices"]), ids)
        chosen = self.data(*call, "--machine", path, "--devices", "gpu:1")
        self.assertEqual((chosen["tokens"], chosen["devices"]), (expected["tokens"], ["gpu:1"]))

    def test_a_file_that_is_wrong_is_refused_with_its_name_and_the_place(self):
        path = self.machine({"devices": [{"id": "cpu", "type": "cpu", "flops": 1}]})
        self.refused(1, f"{path}: device \"cpu\": it has the unknown key \"flops\"; choose from: id name", "plan",
                     MODEL, "--machine", path)
        path = self.machine("{\n  \"devices\": [,]\n}")
        self.refused(1, f"{path}: it is not valid JSON: parse error at line 2, column 15", "devices", "--machine", path)
        self.refused(1, "/nowhere.json: ", "plan", MODEL, "--machine", "/nowhere.json")
        self.refused(2, "--devices: unknown device \"gpu\"; choose from: cpu", "plan", MODEL, "--devices", "gpu",
                     "--machine", str(EXAMPLES[0]))


    def test_each_model_uses_the_api_predicted_faster_for_it(self):
        """Also when it runs, and when its trace is planned again."""
        path = str(next(path for path in EXAMPLES if path.name == "two-apis.json"))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        experts, trace = (os.path.join(folder.name, name) for name in ("moe.gguf", "trace.json"))
        shunt("make-model", "micro-moe", "Q8_0", experts)
        for model, used, other in ((MODEL, "cuda:0", "vulkan:0"), (experts, "vulkan:0", "cuda:0")):
            machine = (model, "--machine", path)
            plan = self.data("plan", *machine)
            for phase in PHASES:
                self.assertEqual([device["id"] for device in plan[phase]["devices"]], ["cpu", used])
                self.assertEqual([(api["used"], api["other"]) for api in plan[phase]["other_apis"]], [(used, other)])
                self.assertLess(plan[phase]["other_apis"][0]["used_us"], plan[phase]["other_apis"][0]["other_us"])
            text = shunt("plan", *machine, "--explain").stdout
            self.assertRegex(text, rf"(?m)^{used} rather than {other}: predicted \S+ .s instead of \S+ .s for a prompt of")
            run = self.data("run", *machine, "-n", "4", "--greedy", "--trace", trace, STORY)
            self.assertIn(used, run["devices"])
            self.assertNotIn(other, run["devices"])
            for step in self.data("replay", trace)["steps"]:
                self.assertEqual(step["moved_nodes"], 0)
            both = self.data("plan", *machine, "--devices", "cpu,cuda:0,vulkan:0")
            self.assertEqual(len(both["generation"]["devices"]), 3)
            self.assertEqual(both["generation"]["other_apis"], [])

    def test_budgets_hold_and_change_no_text(self):
        path = str(next(path for path in EXAMPLES if path.name == "tiny-memory.json"))
        machine = (MODEL, "--machine", path, "-c", "64")
        expected = self.data("run", *machine, STORY, "--greedy", "-n", "8", "--strategy", "cpu")["text"]
        call = (*machine, "--strategy", "gpu")
        on_gpu = []
        for mebibytes in (0, 1, 2, 4, 8):
            budget = ("--budget", f"gpu:0={mebibytes}MiB")
            self.assertEqual(self.data("run", *call, *budget, STORY, "--greedy", "-n", "8")["text"], expected)
            plan = self.data("plan", *call, *budget)
            for phase in PHASES:
                used = {use["pool"]: use["total_bytes"] for use in plan[phase]["memory"]}
                self.assertLessEqual(used["gpu:0"], mebibytes << 20)
            on_gpu.append(sum(unit["device"] == "gpu:0" for unit in plan["generation"]["units"]))
        self.assertEqual(on_gpu[0], 0)
        self.assertEqual(on_gpu, sorted(on_gpu))
        self.assertLess(on_gpu[1], on_gpu[-1])
        weights = self.data("plan", *machine, "--strategy", "cpu")["memory"]["weights_bytes"]
        with_no_page = ("--budget", f"gpu:0={weights + 1000}B")
        self.assertEqual(self.data("run", *call, *with_no_page, STORY, "--greedy", "-n", "8")["text"], expected)
        self.refused(2, "not among the devices in use", "plan", *call, "--budget", "gpu:7=1GiB")
        self.refused(2, "is not DEVICE=SIZE", "plan", *call, "--budget", "gpu:0=much")
        for empty in ("", ",", "gpu:0=1GiB,"):
            self.refused(2, "\"\" is not DEVICE=SIZE", "plan", *call, "--budget", empty)

    def test_weights_that_do_not_fit_come_for_each_step_and_the_text_is_the_same(self):
        """Does not happen over a slow link."""
        cpu = {"id": "cpu", "type": "cpu", "flops_per_s": 1e9, "bytes_per_s": 1e9}
        gpu = {"id": "gpu:0", "type": "discrete", "launch_us": 5, "op_us": 1, "flops_per_s": 1e13, "bytes_per_s": 1e12,
               "link": {"latency_us": 2, "bytes_per_s": 5e10}, "memory_bytes": "1 GiB"}
        text = STORY + " there was a small grey cat who lived in a house by the sea and every day she went to the shore"
        call = (MODEL, text, "--greedy", "-n", "8", "-c", "64")
        expected = shunt("run", *call, "--devices", "cpu:scalar").stdout
        self.assertNotEqual(expected, "")
        for bandwidth, streams in ((5e10, True), (1e6, False)):
            gpu["link"]["bytes_per_s"] = bandwidth
            path = self.machine({"devices": [cpu, gpu]})
            trace = path + ".trace"
            result = shunt("run", *call, "--machine", path, "--budget", "gpu:0=6MiB", "--trace", trace)
            self.assertEqual(result.stdout, expected, result.stderr)
            events = json.loads(pathlib.Path(trace).read_text())["traceEvents"]
            copies = [event["name"] for event in events if re.search("copy .*weight from", event["name"])]
            self.assertEqual(len(copies) > 0, streams)
            self.assertEqual(len(copies) > len(set(copies)), streams, "for the prompt and for each token")


if __name__ == "__main__":
    unittest.main()
