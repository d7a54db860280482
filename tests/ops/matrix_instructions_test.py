"""Products of tiles are matrix instructions on every GPU that has them, without registers in memory: reads what clang makes
of linear_halves for one type of weights. The build has code objects for a few of these GPUs alone."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src/ops/linear/linear_halves.matrix.weights.cu"
MFMA = "v_mfma_f32_16x16x16"
WMMA = "v_wmma_f32_16x16x16_f16"
TARGETS = {"gfx908": MFMA, "gfx90a": MFMA, "gfx942": MFMA, "gfx1100": WMMA, "gfx1102": WMMA, "gfx1151": WMMA}
WAVES = {MFMA: 4, WMMA: 8}  # of a block of 256 threads
WEIGHT_TILES = 128 // 16
STEPS = 64 // 16


def assembly_for(target):
    with tempfile.TemporaryDirectory() as folder:
        to = pathlib.Path(folder) / "kernel.s"
        subprocess.run(["clang++-19", "-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", f"--offload-arch={target}",
                        "-S", "-std=c++20", "-O3", "-Wall", "-Wextra", "-Werror", "-DSHUNT_WEIGHT=Q4_K", f"-I{ROOT / 'src'}",
                        SOURCE, "-o", to], check=True)
        return to.read_text()


@unittest.skipUnless(shutil.which("clang++-19"), "clang++-19 is not here")
class MatrixInstructions(unittest.TestCase):
    def check(self, target):
        text = assembly_for(target)
        kernels = re.findall(r"^shunt_linear_halves_Q4_K_(\d+):(.*?)^\.Lfunc_end", text, re.MULTILINE | re.DOTALL)
        self.assertGreater(len(kernels), 2)
        for x_rows, body in kernels:
            with self.subTest(target=target, x_rows=x_rows):
                products = WEIGHT_TILES * (int(x_rows) // 16) * STEPS // WAVES[TARGETS[target]]
                self.assertEqual(body.count(TARGETS[target]), products)
                self.assertEqual(len(re.findall(r"^\s(scratch_|buffer_(load|store))", body, re.MULTILINE)), 0)
        for count in ("private_segment_fixed_size", "vgpr_spill_count", "sgpr_spill_count"):
            self.assertEqual(set(re.findall(rf"\.{count}: +(\d+)$", text, re.MULTILINE)), {"0"}, count)

    def test_all_targets(self):
        for target in TARGETS:
            self.check(target)


if __name__ == "__main__":
    unittest.main()
