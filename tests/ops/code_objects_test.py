"""Kernels of the build for AMD GPUs keep nothing in slow memory, and products of tiles are matrix instructions: reads the
code objects that hipcc made, for each of their GPUs."""

import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(sys.argv.pop(1))
READER = "llvm-readelf-19"
DISASSEMBLER = "llvm-objdump-19"
MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
MATRIX = {"gfx9": "v_mfma_f32_16x16x16", "gfx11": "v_wmma_f32_16x16x16_f16"}


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


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@unittest.skipUnless(shutil.which(READER), f"{READER} is not here")
class CodeObjects(unittest.TestCase):
    def each_form(self):
        for file in sorted(FOLDER.glob("*_code_object.bin")):
            bundle = file.read_bytes()
            self.assertTrue(bundle.startswith(MAGIC), file)
            for gpu, form in forms_of(bundle):
                with tempfile.NamedTemporaryFile() as code, self.subTest(file.name, gpu=gpu):
                    code.write(form)
                    code.flush()
                    yield file.name.removesuffix("_code_object.bin"), gpu, code.name

    def test_nothing_is_kept_in_slow_memory(self):
        kernels = 0
        for _, _, file in self.each_form():
            notes = output_of(READER, "--notes", file)
            for count in ("private_segment_fixed_size", "vgpr_spill_count", "sgpr_spill_count"):
                found = re.findall(rf"\.{count}: +(\d+)$", notes, re.MULTILINE)
                self.assertEqual(set(found), {"0"}, count)
            kernels += len(found)
        self.assertGreater(kernels, 0)

    def test_products_of_tiles_are_matrix_instructions(self):
        for name, gpu, file in self.each_form():
            if name == "linear_halves":
                instruction = MATRIX["gfx11" if gpu.startswith("gfx11") else "gfx9"]
                self.assertIn(instruction, output_of(DISASSEMBLER, "-d", file))


if __name__ == "__main__":
    unittest.main()
