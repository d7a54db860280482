#!/usr/bin/env python3
"""Measures how fast an NVIDIA GPU reads a file that is mapped into the host's memory; prints two tables in Markdown.

host_reads.py SHUNT [--model 1b:Q4_K_M] [--threads 16,14,12] [--gib 2] [--folder FOLDER]

The first table copies from the mapping as it is and as it is once the driver has registered it (cuMemHostRegister,
read-only), and lets a kernel read it in place. The second has the processor generate meanwhile, with some numbers of
threads, and says what both read. Needs Python 3, Linux, an NVIDIA driver and the program.
"""
import argparse
import contextlib
import ctypes
import mmap
import os
import pathlib
import statistics
import tempfile
import threading
import time
import typing

from speed import answer, model_file

READ_ONLY, MAPPED = 8, 2  # flags of cuMemHostRegister
# Reads 16 bytes a thread and stride, and writes a number per thread.
READER = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry read(.param .u64 from, .param .u64 to, .param .u64 bytes) {
  .reg .u64 %d<9>; .reg .u32 %r<12>; .reg .pred %p;
  ld.param.u64 %d1, [from]; ld.param.u64 %d2, [to]; ld.param.u64 %d3, [bytes];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;
  mov.u32 %r5, %nctaid.x; mul.lo.u32 %r5, %r5, %r2;
  mul.wide.u32 %d4, %r4, 16; mul.wide.u32 %d5, %r5, 16;
  mov.u32 %r6, 0;
next:
  setp.ge.u64 %p, %d4, %d3; @%p bra done;
  add.u64 %d6, %d1, %d4; ld.global.nc.v4.u32 {%r7, %r8, %r9, %r10}, [%d6];
  xor.b32 %r6, %r6, %r7; xor.b32 %r6, %r6, %r8; xor.b32 %r6, %r6, %r9; xor.b32 %r6, %r6, %r10;
  add.u64 %d4, %d4, %d5; bra next;
done:
  mul.wide.u32 %d7, %r4, 4; add.u64 %d8, %d2, %d7; st.global.u32 [%d8], %r6; ret;
}
\0"""


class Gpu:
    """The first GPU, with a buffer as large as what it reads."""

    def __init__(self, size: int) -> None:
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.size = size
        device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self.stream, self.kernel, self.buffer = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        self("Init", 0)
        self("DeviceGet", ctypes.byref(device), 0)
        self("DevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("CtxSetCurrent", context)
        self.context = context
        self("StreamCreate", ctypes.byref(self.stream), 1)
        self("ModuleLoadData", ctypes.byref(module), READER)
        self("ModuleGetFunction", ctypes.byref(self.kernel), module, b"read")
        self("MemAlloc_v2", ctypes.byref(self.buffer), ctypes.c_size_t(size))

    def __call__(self, name: str, *arguments: typing.Any) -> None:
        if code := getattr(self.driver, "cu" + name)(*arguments):
            raise OSError(f"cu{name} fails with {code}")

    def copies(self, address: int, size: int) -> float:
        """Returns bytes per second."""
        begin = time.monotonic()
        self("MemcpyHtoDAsync_v2", self.buffer, ctypes.c_void_p(address), ctypes.c_size_t(size), self.stream)
        self("StreamSynchronize", self.stream)
        return size / (time.monotonic() - begin)

    def reads(self, address: int, size: int, blocks: int = 264) -> float:
        """Returns bytes per second of a kernel. REQUIRES: the memory is registered and mapped."""
        values = [ctypes.c_uint64(value) for value in (address, self.buffer.value, size)]
        pointers = (ctypes.c_void_p * 3)(*(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values))
        begin = time.monotonic()
        self("LaunchKernel", self.kernel, blocks, 1, 1, 512, 1, 1, 0, self.stream, pointers, None)
        self("StreamSynchronize", self.stream)
        return size / (time.monotonic() - begin)


@contextlib.contextmanager
def repeated(gpu: Gpu, work: typing.Callable[[], float]) -> typing.Iterator[list[float]]:
    """Works on another thread all the while; yields the results."""
    results: list[float] = []
    stop = threading.Event()

    def loop() -> None:
        gpu("CtxSetCurrent", gpu.context)
        while not stop.is_set():
            results.append(work())

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield results
    finally:
        stop.set()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shunt")
    parser.add_argument("--model", default="1b:Q4_K_M")
    parser.add_argument("--threads", default="16,14,12")
    parser.add_argument("--gib", type=int, default=2)
    parser.add_argument("--folder")
    options = parser.parse_args()
    size = options.gib << 30
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        model = model_file(options.shunt, options.model, pathlib.Path(options.folder or temporary))
        file = pathlib.Path(temporary) / "mapped"
        with open(file, "wb") as out:
            for _ in range(size >> 20):
                out.write(os.urandom(1 << 20))
        with open(file, "rb") as opened:
            mapping = mmap.mmap(opened.fileno(), size, mmap.MAP_PRIVATE)  # writable, so that ctypes takes its address
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        gpu = Gpu(size)
        print("| what | MiB at a time | GB/s |\n|---|---|---|")
        gpu.copies(address, size)
        print(f"| copy, as it is | {size >> 20} | {max(gpu.copies(address, size) for _ in range(3)) / 1e9:.1f} |")
        begin = time.monotonic()
        gpu("MemHostRegister_v2", ctypes.c_void_p(address), ctypes.c_size_t(size), READ_ONLY | MAPPED)
        registered = time.monotonic() - begin
        for part in (1 << 20, 16 << 20, size):
            for name, work in (("copy, registered", gpu.copies), ("kernel, in place", gpu.reads)):
                best = max(work(address, part) for _ in range(5))
                print(f"| {name} | {part >> 20} | {best / 1e9:.1f} |", flush=True)
        few = max(gpu.reads(address, size, 16) for _ in range(3))
        print(f"| kernel of 16 blocks, in place | {size >> 20} | {few / 1e9:.1f} |")
        print(f"\nRegistering took {registered / options.gib:.3f} s for 1 GiB.\n")

        def processor(threads: str) -> float:
            found = answer(options.shunt, "bench", "model", model, "--devices", "cpu:simd", "--numerics", "auto",
                           "--threads", threads, "--prompt", "16", "--generate", "256", "--repetitions", "2")
            return found["generate_tokens_per_s"]["median"] * found["bytes_per_token"]

        print("| threads | the processor alone, GB/s of weights | beside | the processor | the GPU | both |\n"
              "|---|---|---|---|---|---|")
        for threads in options.threads.split(","):
            alone = processor(threads)
            for name, work in (("copies", gpu.copies), ("kernels in place", gpu.reads)):
                with repeated(gpu, lambda work=work: work(address, size)) as rates:
                    beside = processor(threads)
                other = statistics.median(rates)
                print(f"| {threads} | {alone / 1e9:.1f} | {name} | {beside / 1e9:.1f} | {other / 1e9:.1f} | "
                      f"{(beside + other) / 1e9:.1f} |", flush=True)


if __name__ == "__main__":
    main()
