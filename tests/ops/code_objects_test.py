"""Kernels for AMD GPUs keep all values in registers, and products of tiles are matrix instructions.

code_objects_test.py built FOLDER       reads the code objects of a build, which are for every type of weights
code_objects_test.py GPU COMPILER...    compiles each source for a GPU and one type of weights, and reads that
code_objects_test.py alike COMPILER...  compiles one source for the GPUs that get the code of another

Prints a table of the kernels. Every type of weights is compiled for a GPU with each kind of matrix instructions and for
one without.
"""

import collections
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

MODE, *GIVEN = sys.argv[1:]
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WEIGHTS = "Q5_K"  # linear_row takes the most registers for these
READER = "llvm-readelf-19"
DISASSEMBLER = "llvm-objdump-19"
MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"

# The matrix instruction of a GPU, and how many waves of it a block of 256 threads has.
Matrix = collections.namedtuple("Matrix", "gpus instruction waves")
MATRICES = (Matrix("gfx(908|90a|94)", "v_mfma_f32_16x16x16", 4), Matrix("gfx11", "v_wmma_f32_16x16x16_f16", 8))
# linear_halves multiplies, each step, a tile of weights by one of as many rows of x as its name ends with.
TILE = 16
WEIGHT_TILES = 128 // TILE
STEPS = 64 // TILE

# GPUs for which Debian's hipcc makes the same code.
ALIKE = (
    ("gfx900", "gfx902", "gfx904", "gfx909", "gfx90c"),
    ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    ("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
    ("gfx1100", "gfx1102", "gfx1103"),
    # These get code like that for gfx803 and gfx1100, but reserve other registers.
    ("gfx802", "gfx805"), ("gfx801",), ("gfx810",), ("gfx1101",),
)


def matrix_of(gpu):
    return next((matrix for matrix in MATRICES if re.match(matrix.gpus, gpu)), None)


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def forms_of(bundle):
    """Yields the GPU and the bytes of each form in a bundle of clang's."""
    count, = struct.unpack_from("<Q", bundle, len(MAGIC))
    at = len(MAGIC) + 8
    for _ in range(count):
        offset, size, characters = struct.unpack_from("<3Q", bundle, at)
        target = bundle[at + 24:at + 24 + characters].decode()
        at += 24 + characters
        if target.startswith("hip"):
            yield target[target.rindex("gfx"):], bundle[offset:offset + size]


def compile_for(gpu, source, to):
    options = ["--no-gpu-bundle-output", f"--offload-arch={gpu}", "-std=c++20", "-O3", "-Wall", "-Wextra", "-Werror",
               f"-DSHUNT_WEIGHT={WEIGHTS}", f"-I{ROOT / 'src'}", "-MD", "-MF", f"{to}.d", "-MT", "code"]
    done = subprocess.run([*GIVEN, *options, source, "-o", to], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{source.name} for {gpu}:\n{done.stderr}")


def built_files(folder):
    """Yields source, GPU and file of the code objects of the build."""
    for file in sorted(pathlib.Path(GIVEN[0]).glob("*_code_object.bin")):
        for gpu, form in forms_of(file.read_bytes()):
            code = folder / "code"
            code.write_bytes(form)
            yield file.name.removesuffix("_code_object.bin"), gpu, code


def compiled_files(folder):
    for source in sorted(ROOT.glob("src/ops/*/*.cu")):
        is_for_nvidia = ".sm_" in source.name
        if is_for_nvidia or (".matrix." in source.name and matrix_of(MODE) is None):
            continue
        code = folder / "code"
        compile_for(MODE, source, code)
        yield source.name.partition(".")[0], MODE, code


def code_objects():
    with tempfile.TemporaryDirectory() as folder:
        yield from (built_files if MODE == "built" else compiled_files)(pathlib.Path(folder))


def kernels_of(file):
    """Yields what the notes of a code object say of each kernel: the name, and numbers by their names."""
    for notes in re.split(r"^  - \.", output_of(READER, "--notes", file), flags=re.MULTILINE)[1:]:
        numbers = {name: int(number) for name, number in re.findall(r"^ +\.(\w+): +(\d+)$", notes, re.MULTILINE)}
        yield re.search(r"^ +\.name: +(\w+)$", notes, re.MULTILINE)[1], numbers


def instructions_of(file):
    """Returns the disassembled lines of each kernel."""
    parts = re.split(r"^[0-9a-f]+ <(\w+)>:$", output_of(DISASSEMBLER, "-d", file), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


@unittest.skipIf(MODE == "alike", "compares alone")
class CodeObjects(unittest.TestCase):
    def check(self, source, gpu, file):
        matrix = matrix_of(gpu) if source == "linear_halves" else None
        # Instructions on 16 bits name 128 registers on gfx11, which clang 15 does not know.
        instructions = instructions_of(file) if matrix or gpu.startswith("gfx11") else {}
        count = 0
        for count, (kernel, numbers) in enumerate(kernels_of(file), 1):
            spills = numbers["vgpr_spill_count"] + numbers["sgpr_spill_count"]
            code = instructions.get(kernel, "")
            products = code.count(matrix.instruction) if matrix else 0
            print(f"{gpu:8} {kernel:44} {products:8} {numbers['vgpr_count']:5} {numbers['sgpr_count']:5} {spills:6} "
                  f"{numbers['private_segment_fixed_size']:7}")
            with self.subTest(gpu=gpu, kernel=kernel):
                self.assertEqual(spills, 0, "registers spilled")
                self.assertEqual(numbers["private_segment_fixed_size"], 0, "bytes of private memory")
                self.assertNotRegex(code, r"Invalid register|\.long", "no instruction of this GPU")
                if matrix:
                    x_tiles = int(kernel.rpartition("_")[2]) // TILE
                    self.assertEqual(products, WEIGHT_TILES * x_tiles * STEPS // matrix.waves, "matrix instructions")
        self.assertGreater(count, 0, f"{source} has no kernel for {gpu}")

    def test_values_stay_in_registers_and_products_are_matrix_instructions(self):
        print(f"\n{'GPU':8} {'kernel':44} {'products':>8} {'VGPRs':>5} {'SGPRs':>5} {'spills':>6} {'private':>7}")
        sources = collections.Counter()
        for source, gpu, file in code_objects():
            self.check(source, gpu, file)
            sources[gpu, source] += 1
        self.assertGreater(len(sources), 0)
        for gpu in {gpu for gpu, _ in sources}:
            self.assertEqual(sources[gpu, "linear_halves"], 1 if matrix_of(gpu) else 0, gpu)


@unittest.skipUnless(MODE == "alike", "compiles for one GPU")
class Alike(unittest.TestCase):
    SOURCE = ROOT / "src/ops/softmax/softmax.early.cu"

    def code_for(self, gpu, folder):
        code = folder / gpu
        compile_for(gpu, self.SOURCE, code)
        for kernel, numbers in kernels_of(code):
            self.assertEqual(numbers["private_segment_fixed_size"], 0, f"{kernel} for {gpu}")
        return instructions_of(code)

    def test_gpus_that_get_the_code_of_another(self):
        with tempfile.TemporaryDirectory() as folder:
            for first, *others in ALIKE:
                code = self.code_for(first, pathlib.Path(folder))
                for other in others:
                    with self.subTest(gpu=other):
                        self.assertEqual(self.code_for(other, pathlib.Path(folder)), code)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
