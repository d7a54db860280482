"""A new op is one folder and one row: follows docs/adding-an-op.md, and compares its SIMD kernel with its reference."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import walk_through

TABLE = "src/ops/ops.def"
# The files that expand the table or the list of families, and those that the page makes.
SOURCES = ["src/ops/op.cpp", "src/ops/families.cpp", "src/ops/gpu_kernels.cpp", "src/ops/pretend/pretend.cpp",
           "src/ops/pretend/pretend_gpu.cpp", "src/ops/pretend/pretend_simd.cpp"]
PROGRAM = """
#include <cstdio>
#include "devices/discovery/registry.h"
#include "run/verify/conformance.h"
int main() {
  const auto registry = shunt::open_devices({.devices = "cpu:simd", .threads = 2});
  if (!registry) return 1;
  const auto report = shunt::check_conformance(registry->devices(), {.ops = {shunt::Op::pretend}});
  if (!report || !report->ok()) return 2;
  std::uint64_t passed = 0;
  for (const auto& tally : report->tallies)
    if (tally.device == "cpu:simd") passed += tally.passed;
  std::puts(passed > 20 ? "right" : "hardly tried");
}
"""


class AddOp(walk_through.WalkThrough):
    def test_one_folder_and_one_row_make_an_op(self):
        changed = self.follow("adding-an-op.md")
        self.assertEqual([path for path in changed if not path.startswith("src/ops/pretend/")], [TABLE])
        self.assertEqual(self.lines_added(TABLE), 1)
        # The rows that cmake/kernel_families.cmake writes for the folder.
        rows = "".join(f"SHUNT_{kind}FAMILY(pretend)\n" for kind in ("", "SIMD_", "GPU_"))
        made = next(pathlib.Path(self.compile_commands).parent.glob("generated/families.def")).read_text()
        (self.copy / "generated").mkdir()
        (self.copy / "generated/families.def").write_text(made.replace("#undef SHUNT_FAMILY\n", rows + "#undef SHUNT_FAMILY\n"))
        (self.copy / "verify.cpp").write_text(PROGRAM)
        program = self.program(["verify.cpp", *SOURCES])
        self.assertEqual(walk_through.run([program], self.copy), "right\n")


if __name__ == "__main__":
    walk_through.main()
