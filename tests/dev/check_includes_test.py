"""The include rules, on small trees that each break them in one place."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class CheckIncludes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for path in ("include/shunt/tensor.h", "src/ops/op.h", "src/graph/graph.h", "src/devices/device.h", "src/base/json.h",
                     "src/devices/cpu/pool.h", "src/devices/sim/clock.h", "src/plan/plan.h", "src/run/executor.h",
                     "src/trace/recorder.h", "cli/main.cpp"):
            self.write(path, "")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def check(self):
        done = subprocess.run([sys.executable, str(ROOT / "tools/check_includes.py"), str(self.root)],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1 if done.stdout else 0, done.stderr)
        return done.stdout

    def test_a_tree_that_keeps_the_rule_passes(self):
        self.write("src/plan/costs/cost.cpp", '#include "plan/plan.h"\n#include "devices/device.h"\n#include <vector>\n'
                                              '#include "trace/recorder.h"\n#include "shunt/tensor.h"\n')
        self.write("src/ops/op.cpp", '#include "base/json.h"\n')
        self.write("include/shunt/graph.h", '#include "ops/op.h"\n')
        self.write("cli/main.cpp", '#include "run/executor.h"\n')
        self.assertEqual(self.check(), "")

    def test_a_folder_below_is_refused_with_file_and_line(self):
        self.write("src/devices/cpu/device.cpp", '#include <vector>\n#include "run/executor.h"\n')
        self.assertIn('src/devices/cpu/device.cpp:2: includes "run/executor.h", but run/ stands below devices/',
                      self.check())

    def test_ops_include_nothing_of_the_graph(self):
        self.write("src/ops/norm/norm.cpp", '#  include "graph/graph.h"\n')
        self.assertIn("graph/ stands below ops/", self.check())

    def test_kernels_in_other_languages_keep_the_rule_too(self):
        for suffix in ("cu", "cuh", "comp", "glsl", "frag"):
            self.write(f"src/ops/norm/norm.{suffix}", '#include "ops/norm/gone_args.h"\n#include "graph/graph.h"\n')
            found = self.check()
            self.assertIn(f'norm.{suffix}:1: "ops/norm/gone_args.h" is no path from src/ or include/', found)
            self.assertIn(f'norm.{suffix}:2: includes "graph/graph.h", but graph/ stands below ops/', found)

    def test_backends_do_not_include_each_other(self):
        self.write("src/devices/sim/sim.cpp", '#include "devices/cpu/pool.h"\n')
        self.assertIn("devices/sim and devices/cpu never include each other", self.check())

    def test_the_registry_may_include_a_backend(self):
        self.write("src/devices/discovery/registry.cpp", '#include "devices/cpu/pool.h"\n')
        self.assertEqual(self.check(), "")

    def test_no_backend_includes_discovery_and_all_may_include_the_shaders(self):
        self.write("src/devices/shaders/dispatch.h", '#include "devices/device.h"\n')
        self.write("src/devices/cpu/pool.h", '#include "devices/shaders/dispatch.h"\n')
        self.assertEqual(self.check(), "")
        self.write("src/devices/discovery/registry.h", '#include "devices/cpu/pool.h"\n')
        self.write("src/devices/cpu/pool.h", '#include "devices/discovery/registry.h"\n')
        self.assertIn("devices/cpu/ includes devices/discovery/ at src/devices/cpu/pool.h:1", self.check())

    def test_the_base_stands_on_nothing(self):
        self.write("src/base/json.h", '#include "shunt/tensor.h"\n')
        self.assertEqual(self.check(), "")
        self.write("src/base/json.h", '#include "ops/op.h"\n')
        self.assertIn("base/ includes only include/ and itself", self.check())

    def test_public_headers_reach_only_the_tables(self):
        self.write("include/shunt/runtime.h", '#include "run/executor.h"\n')
        self.assertIn("include/shunt/runtime.h:1", self.check())

    def test_folders_do_not_include_each_other_in_a_circle(self):
        self.write("src/trace/report.cpp", '#include "plan/plan.h"\n')
        self.assertEqual(self.check(), "")
        self.write("src/plan/costs/cost.cpp", '#include "trace/recorder.h"\n')
        self.assertIn("plan/ includes trace/ at src/plan/costs/cost.cpp:1", self.check())

    def test_a_path_that_does_not_exist_is_refused(self):
        self.write("src/plan/costs/cost.cpp", '#include "plan/gone.h"\n')
        self.assertIn('"plan/gone.h" is no path', self.check())

    def test_a_header_named_without_its_folder_is_refused(self):
        self.write("src/plan/cost.cpp", '#include "plan.h"\n')
        self.assertIn('"plan.h" is no path', self.check())

    def test_a_folder_outside_the_list_is_refused(self):
        self.write("src/helpers/x.h", '#include "ops/op.h"\n')
        self.assertIn("src/helpers/ is not in the list", self.check())


if __name__ == "__main__":
    unittest.main()
