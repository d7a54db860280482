"""Makes models of a few KB from those that tests compare with transformers: every architecture with 16 tokens and a
quarter of each dimension, for fuzzing and for tests that damage each field of a file.

    python3 tools/references/small_models.py tests/data/architectures fuzz/corpus/logits
"""

import pathlib
import struct
import sys

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
SHRINK = 4
TOKENS = [(b"<unk>", 2), (b"<s>", 3), (b"</s>", 3), ("▁".encode(), 1), (b"a", 1), (b"b", 1), (b"c", 1),
          ("▁a".encode(), 1), (b"bc", 1), (b"<0x41>", 6), (b"\n", 1), (b"<|im_end|>", 4), (b"d", 1), (b"e", 1),
          ("▁b".encode(), 1), (b"f", 1)]
# By how the keys of dimensions end; counts of heads, experts and layers stay.
DIMENSIONS = ("embedding_length", "feed_forward_length", "key_length", "value_length", "rope.dimension_count")
# The axes of these tensors that count heads or experts, from the innermost on.
COUNTS = {"attn_sinks": (0,), "ffn_gate_inp": (1,), "ffn_gate_inp.bias": (0,)}
ELEMENT_BYTES = {0: 4, 1: 2}  # F32, F16


class Reader:
    def __init__(self, file):
        self.file, self.at = file, 4
        _, tensors, keys = self.numbers("IQQ")
        self.keys = [self.key() for _ in range(keys)]
        self.tensors = [self.tensor() for _ in range(tensors)]
        self.data = (self.at + 31) // 32 * 32

    def numbers(self, code):
        values = struct.unpack_from("<" + code, self.file, self.at)
        self.at += struct.calcsize("<" + code)
        return values

    def text(self):
        (length,) = self.numbers("Q")
        self.at += length
        return self.file[self.at - length:self.at]

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            of, count = self.numbers("IQ")
            return of, [self.value(of) for _ in range(count)]
        return self.numbers(NUMBERS[kind])[0]

    def key(self):
        name = self.text()
        (kind,) = self.numbers("I")
        return name.decode(), kind, self.value(kind)

    def tensor(self):
        name = self.text().decode()
        (rank,) = self.numbers("I")
        dims = self.numbers(f"{rank}Q")
        return name, dims, *self.numbers("IQ")


def text(value):
    return struct.pack("<Q", len(value)) + value


def value_bytes(kind, value):
    if kind == STRING:
        return text(value)
    if kind == ARRAY:
        of, items = value
        return struct.pack("<IQ", of, len(items)) + b"".join(value_bytes(of, item) for item in items)
    return struct.pack("<" + NUMBERS[kind], value)


def shrunk_key(name, kind, value):
    if name.endswith(DIMENSIONS):
        return value // SHRINK
    if name.endswith("vocab_size"):
        return len(TOKENS)
    return {"tokenizer.ggml.tokens": (STRING, [token for token, _ in TOKENS]),
            "tokenizer.ggml.scores": (6, [-float(i) for i in range(len(TOKENS))]),
            "tokenizer.ggml.token_type": (5, [kind for _, kind in TOKENS])}.get(name, value)


def shrunk_dims(name, dims, vocabulary):
    part = name.removeprefix("blk.").split(".", 1)[-1] if name.startswith("blk.") else name
    counts = COUNTS.get(part, COUNTS.get(part.split(".")[0], ()) if not part.endswith("bias") else ())
    if "_exps" in part:
        counts = (len(dims) - 1,)
    return tuple(len(TOKENS) if extent == vocabulary else extent if axis in counts else max(1, extent // SHRINK)
                 for axis, extent in enumerate(dims))


def elements(file, begin, dims, to, size):
    """The first `to` of each axis of a tensor of `dims`, both from the innermost on."""
    if len(dims) == 1:
        return file[begin:begin + to[0] * size]
    step = size
    for extent in dims[:-1]:
        step *= extent
    return b"".join(elements(file, begin + i * step, dims[:-1], to[:-1], size) for i in range(to[-1]))


def shrink(file):
    model = Reader(file)
    vocabulary = len(next(value[1] for name, _, value in model.keys if name == "tokenizer.ggml.tokens"))
    keys = [(name, kind, shrunk_key(name, kind, value)) for name, kind, value in model.keys
            if not name.startswith("shunt.reference")]
    header = b"GGUF" + struct.pack("<IQQ", 3, len(model.tensors), len(keys))
    for name, kind, value in keys:
        header += text(name.encode()) + struct.pack("<I", kind) + value_bytes(kind, value)
    data = b""
    for name, dims, kind, offset in model.tensors:
        to = shrunk_dims(name, dims, vocabulary)
        header += text(name.encode()) + struct.pack(f"<I{len(to)}QIQ", len(to), *to, kind, len(data))
        data += elements(model.file, model.data + offset, dims, to, ELEMENT_BYTES[kind])
        data += bytes(-len(data) % 32)
    return header + bytes(-len(header) % 32) + data


def main(origin, folder):
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for path in sorted(pathlib.Path(origin).glob("*.gguf")):
        pathlib.Path(folder, path.stem).write_bytes(shrink(path.read_bytes()))


if __name__ == "__main__":
    main(*sys.argv[1:])
