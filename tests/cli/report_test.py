"""Trace reports: summaries, lines, decisions after the run, and the page.

Run by ctest as: python3 report_test.py PROGRAM
"""

import json
import os
import pathlib
import re
import tempfile
import unittest

from program import ALONE, CommandLine, MODEL, shunt

MACHINES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "machines"
THREE = ("--machine", str(MACHINES / "two-unequal-gpus.json"), "--strategy", "layers")


class Traces(CommandLine):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.trace = os.path.join(self.folder, "trace.json")

    def record(self, *arguments):
        self.data("run", MODEL, "Once", "-n", "3", "--greedy", *arguments, "--trace", self.trace)
        return self.trace

    def test_a_trace_has_a_track_per_device_and_link_and_the_plans(self):
        trace = json.loads(pathlib.Path(self.record(*THREE)).read_text())
        tracks = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"]
        # Stages of loading that overlap have more tracks, with numbers.
        tracks = list(dict.fromkeys(re.sub(r" \(\d+\)$", "", track) for track in tracks))
        devices = [name for device in ("cpu", "gpu:0", "gpu:1") for name in (device, f"{device} ops", f"{device} weights")]
        self.assertEqual(tracks, ["runs", *devices, "link cpu -> gpu:0", "link gpu:0 -> gpu:1", "link gpu:1 -> cpu"])
        origin = trace["otherData"]["origin"][0]
        self.assertEqual((origin["model"], origin["strategy"], origin["context"]), (MODEL, "layers", 2048))
        units = [(unit["op"] + " " + unit["nodes"][-1], unit["device"]) for unit in trace["otherData"]["plans"][0]["units"]]
        for event in trace["traceEvents"]:
            if event.get("cat") == "op":
                self.assertIn((event["name"], event["args"]["device"]), units)

    def test_times_on_a_simulated_machine_are_all_of_its_clock(self):
        summary = self.data("report", self.record(*THREE))["summary"]
        for tally in summary["devices"] + summary["links"] + [summary["runs"]]:
            self.assertAlmostEqual(tally["predicted_us"] / tally["compared_us"], 1, delta=0.02, msg=tally["name"])

    def test_sums_agree_with_the_events(self):
        trace = self.record(*THREE)
        report = self.data("report", trace)
        lines = [json.loads(line) for line in shunt("report", trace, "--lines").stdout.splitlines()]
        self.assertEqual(len(lines), report["summary"]["events_recorded"])
        for kind, tallies in (("op", report["summary"]["ops"]), ("program", report["summary"]["devices"]),
                              ("transfer", report["summary"]["links"])):
            whole = sum(line["duration_us"] for line in lines if line["kind"] == kind)
            self.assertAlmostEqual(sum(tally["actual_us"] for tally in tallies), whole, delta=1e-3 * whole)
        self.assertEqual(report["summary"]["runs"]["events"], 3)
        self.assertEqual({tally["name"] for tally in report["summary"]["devices"]}, {"cpu", "gpu:0", "gpu:1"})
        text = shunt("report", trace).stdout
        self.assertRegex(text, r"\nruns +3 ")
        self.assertRegex(text, r"\ncpu -> gpu:0 +\d+ ")

    def with_candidates(self, trace, **fields):
        """Returns the trace with predictions as if from devices with these fields."""
        def change(other):
            for plan in other["plans"]:
                plan.update(measured=fields["measured"])
                for unit in plan["units"]:
                    for candidate in unit["candidates"]:
                        candidate.update(fields)
        return self.changed(trace, change)

    def test_nobody_regrets_a_guess_or_the_reference_that_was_not_named(self):
        trace = self.record("--devices", "cpu:simd,cpu:scalar", *ALONE)
        guessed = self.data("report", self.with_candidates(trace, measured=False))
        self.assertIn("; no other placement was predicted for comparison; run shunt calibrate to", guessed["verdict"]["sentence"])
        unnamed = self.data("report", self.changed(self.with_candidates(trace, measured=True),
                                                   lambda other: other["origin"][0].update(named="")))
        for report in (guessed, unnamed):
            for plan in report["plans"]:
                self.assertEqual(plan["regret_us"], 0)
                self.assertEqual({(unit["best_other"], unit["regret_us"]) for unit in plan["units"]}, {("", 0)})

    def test_layers_are_compared_with_the_best_plan(self):
        report = self.data("report", self.record(*THREE))
        best = self.data("replay", self.trace, "--strategy", "auto")
        for plan, step in zip(report["plans"], best["steps"], strict=True):
            self.assertLessEqual(plan["best_us"], 1.02 * step["replayed_us"])
            self.assertLess(plan["best_us"], plan["predicted_us"])
            self.assertAlmostEqual(plan["regret_us"], plan["actual"]["mean_us"] - plan["best_us"], delta=1e-6)
            self.assertGreater(plan["regret_us"], 0)

    def test_after_the_run_each_decision_has_its_time_and_its_regret(self):
        trace = self.with_candidates(self.record("--devices", "cpu:simd,cpu:scalar", *ALONE), measured=True)
        report = self.data("report", trace)
        compared = 0
        for plan in report["plans"]:
            for unit in plan["units"]:
                self.assertEqual({candidate["device"] for candidate in unit["candidates"]}, {"cpu:simd", "cpu:scalar"})
                self.assertEqual(unit["actual"]["times"], plan["actual"]["times"])
                added = {each["device"]: each["added_us"] for each in unit["candidates"]
                         if each["device"] != unit["device"] and each["added_us"] is not None}
                if not added:
                    self.assertEqual((unit["best_other"], unit["regret_us"]), ("", 0))
                    continue
                compared += 1
                least = min(added.values())
                self.assertEqual(added[unit["best_other"]], least)
                chosen = next(each for each in unit["candidates"] if each["device"] == unit["device"])
                later = unit["actual"]["mean_us"] - chosen["compute_us"]
                self.assertAlmostEqual(unit["regret_us"], max(0, later - least), delta=1e-6)
        self.assertGreater(compared, 20)
        self.assertEqual(sum(plan["actual"]["times"] for plan in report["plans"]), 3)
        text = shunt("report", trace, "--explain").stdout
        self.assertRegex(text, r"plan 1, a step of \d+ tokens?: predicted .*took .*regret ")
        self.assertRegex(text, r"\n    cpu:scalar: higher predicted cost: the whole would take .* longer; the op alone .* \+- ")
        self.assertEqual(report["origin"]["devices"][0]["id"], "cpu:simd")
        self.assertGreater(report["speeds"]["prompt_tokens_per_s"], 0)

    def test_a_report_opens_with_a_verdict_memory_and_latencies(self):
        for arguments, devices in ((THREE, {"cpu", "gpu:0", "gpu:1"}), (("--devices", "cpu:simd", *ALONE), {"cpu:simd"})):
            trace = self.record(*arguments)
            report = self.data("report", trace)
            verdict = report["verdict"]
            text = shunt("report", trace).stdout
            self.assertEqual(text.splitlines()[0], verdict["sentence"])
            busy = {tally["name"]: tally["actual_us"] for tally in report["summary"]["devices"]}
            for device, us in busy.items():
                self.assertRegex(verdict["sentence"], rf"\b{100 * us / sum(busy.values()):.0f} %( of the work ran)? on {device}")
            better = (r"other devices were predicted to save .* \(\d+ %\), with --strategy auto" if arguments is THREE
                      else "no other placement was predicted for comparison")
            self.assertRegex(verdict["sentence"], f"; nothing failed; {better}")
            self.assertEqual({memory["devices"] for memory in verdict["memory"]}, devices)
            for memory in verdict["memory"]:
                self.assertGreater(memory["weight_bytes"], 0)
                self.assertEqual(memory["total_bytes"], sum(memory[f"{what}_bytes"] for what in ("weight", "state", "value", "scratch")))
            self.assertEqual(verdict["tokens"], 2)  # three, of which the first is the prompt's
            self.assertGreater(verdict["first_token_us"], 0)
            times = [verdict[f"token_{which}_us"] for which in ("p50", "p90", "p99", "most")]
            self.assertEqual(times, sorted(times))
            self.assertGreater(times[0], 0)
            self.assertIn("\ntime to first token: ", text)
            self.assertIn("\ntime per token: half within ", text)

    def test_the_verdict_says_what_would_have_been_better(self):
        trace = self.with_candidates(self.record("--devices", "cpu:simd,cpu:scalar", *ALONE), measured=True)
        self.assertRegex(self.data("report", trace)["verdict"]["sentence"], "no other placement is predicted to be much faster|other devices were predicted")
        data = json.loads(pathlib.Path(trace).read_text())
        plan = data["otherData"]["plans"][0]
        for unit in plan["units"]:
            for candidate in unit["candidates"]:
                if candidate["device"] == "cpu:scalar" and unit["op"] == "attention":
                    candidate.update(added_us=0, compute_us=1e-6, detail="")
        for event in data["traceEvents"]:
            if event.get("cat") == "op" and event["name"].startswith("attention"):
                event["dur"] = 1e6
        pathlib.Path(trace).write_text(json.dumps(data))
        self.assertRegex(self.data("report", trace)["verdict"]["sentence"],
                         r"; other devices were predicted to save \d+\.\d+ m?s \(\d+ %\), most by running attention on cpu:scalar")

    def test_the_parts_of_each_kind_of_step_add_up(self):
        generation = {"the processor computes", "the GPU computes", "both wait for values", "starting work and noticing its end"}
        for arguments, most in ((THREE, generation | {"the processor computes, the GPU waits", "the GPU computes, the processor waits"}),
                                (("--devices", "cpu:simd", *ALONE), {"the processor computes", "starting work and noticing its end"})):
            trace = self.record(*arguments)
            report = self.data("report", trace)
            self.assertEqual([(times["title"], times["steps"]) for times in report["steps"]],
                             [("generation, a token", 2), ("prompt, 2 tokens", 1)])
            for times in report["steps"]:
                self.assertAlmostEqual(sum(part["us"] for part in times["parts"]) / times["us"], 1)
                self.assertLessEqual({part["what"] for part in times["parts"]}, most)
                self.assertNotIn("bound_us", times)
            # The tokens of a prompt's step are known only up to the next power of two.
            self.assertEqual(["tokens_per_s" in times for times in report["steps"]], [True, False])
            self.assertIsNone(report["limits"])
            runs = [plan["actual"] for plan in report["plans"]]
            self.assertAlmostEqual(sum(times["us"] * times["steps"] for times in report["steps"]),
                                   sum(run["mean_us"] * run["times"] for run in runs), delta=1)
            self.assertIn("\nprompt, 2 tokens ", shunt("report", trace).stdout)
        old = self.data("report", self.changed(trace, lambda other: other.pop("origin")))
        self.assertEqual(old["steps"], [], "which devices are processors is not known")

    def test_what_failed_stands_in_the_verdict(self):
        result = shunt("run", MODEL, "Once upon a time", "-n", "12", "--greedy", "--devices", "sim:0,cpu:scalar", "--strategy", "layers",
                       "--trace", self.trace, env={"SHUNT_FAULTS": "sim:0 lost at op 300"})
        self.assertEqual(result.returncode, 0, result.stderr)
        verdict = self.data("report", self.trace)["verdict"]
        self.assertEqual(len(verdict["failures"]), 1)
        self.assertIn("sim:0 failed, device_lost", verdict["failures"][0])
        self.assertIn("; 1 failure (below); ", verdict["sentence"])

    def test_the_page_stands_beside_the_trace_or_where_it_is_asked_for(self):
        trace = self.record()
        self.assertEqual(shunt("report", trace).returncode, 0)
        page = pathlib.Path(self.folder, "trace.html").read_text(encoding="utf-8")
        self.assertIn("tiny-llama-f16.gguf", page)
        data = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
        self.assertEqual(json.loads(data[1])["trace"], trace)
        before_the_library = page[:page.index("<script>")]
        self.assertIsNone(re.search(r"<(script|link|img)[^>]*(src|href)=", before_the_library), "it needs no other file")
        other = os.path.join(self.folder, "other.html")
        self.data("report", trace, "-o", other)
        self.assertTrue(os.path.exists(other))
        self.assertEqual(sorted(os.listdir(self.folder)), ["other.html", "trace.html", "trace.json"])

    def test_a_replay_with_nothing_changed_gives_the_plans_that_ran(self):
        for arguments in (THREE, ("--devices", "cpu:simd,cpu:scalar", "--strategy", "layers", "-c", "64", *ALONE)):
            replay = self.data("replay", self.record(*arguments))
            self.assertEqual(sum(step["runs"] for step in replay["steps"]), 3)
            for step in replay["steps"]:
                self.assertEqual(step["moved_nodes"], 0)
                self.assertGreater(step["nodes"], 100)
                self.assertAlmostEqual(step["replayed_us"], step["predicted_us"], delta=1e-6 * step["predicted_us"])

    def test_a_replay_tells_what_a_run_with_that_strategy_and_machine_is_predicted_to_take(self):
        trace = self.record(*THREE)
        recorded = self.data("replay", trace)["total"]
        for name in ("strong-gpu.json", "cpu-only.json"):
            other = ("--strategy", "auto", "--machine", str(MACHINES / name))
            replay = self.data("replay", trace, *other)
            self.assertEqual(replay["total"]["actual_us"], recorded["actual_us"])
            self.assertEqual(replay["strategy"], "auto")
            self.trace = os.path.join(self.folder, "other.json")
            run = self.data("report", self.record(*other))["summary"]["runs"]
            self.assertAlmostEqual(replay["total"]["replayed_us"], run["predicted_us"], delta=1e-3 * run["predicted_us"])
            text = shunt("replay", trace, *other).stdout
            self.assertRegex(text, r"\nall runs .*\nstrategy auto: predicted to take [0-9.e+-]+ times")

    def test_what_cannot_be_replayed_is_refused(self):
        trace = self.record()
        self.refused(1, "--model", "replay", self.moved_model(trace))
        self.refused(1, "/nonexistent.gguf", "replay", trace, "--model", "/nonexistent.gguf")
        self.refused(2, "--devices", "replay", trace, "--devices", "nope")
        self.refused(2, "--strategy", "replay", trace, "--strategy", "nope")
        for option in ("--timeout", "--audit"):
            for call in (("replay", trace), ("plan", MODEL)):
                self.refused(2, f"no option is named {option}", *call, f"{option}=1")
        self.refused(1, "strategy gpu: no such device", "replay", trace, "--strategy", "gpu", "--strict")
        self.refused(1, "which model and options it comes from; record it again", "replay",
                     self.changed(trace, lambda other: other.pop("origin")))

    def changed(self, trace, change):
        data = json.loads(pathlib.Path(trace).read_text())
        change(data["otherData"])
        path = os.path.join(self.folder, "changed.json")
        pathlib.Path(path).write_text(json.dumps(data))
        return path

    def moved_model(self, trace):
        return self.changed(trace, lambda other: other["origin"][0].update(model="/nonexistent.gguf"))

    def test_what_is_no_trace_is_refused(self):
        self.refused(1, "cannot read \"/nonexistent.json\"", "report", "/nonexistent.json")
        self.refused(1, "it is not the JSON of a trace", "report", MODEL)
        empty = os.path.join(self.folder, "empty.json")
        pathlib.Path(empty).write_text("{}")
        self.refused(1, f"{empty}: it is not a trace of shunt", "report", empty)
        trace = self.record()
        self.refused(2, "the same file", "report", trace, "-o", trace)
        self.refused(2, "excludes", "report", trace, "--lines", "--json")


if __name__ == "__main__":
    unittest.main()
