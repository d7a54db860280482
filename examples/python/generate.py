#!/usr/bin/env python3
"""generate.py MODEL PROMPT [LENGTH] [DEVICES]: text out of a model file, through libshunt.so and ctypes alone."""
import ctypes
import sys


class Error(ctypes.Structure):
    _fields_ = (("code", ctypes.c_int), ("message", ctypes.c_char * 1024))


class RuntimeOptions(ctypes.Structure):
    _fields_ = (("threads", ctypes.c_uint32), ("devices", ctypes.c_char_p), ("machine", ctypes.c_char_p),
                ("budgets", ctypes.c_char_p), ("faults", ctypes.c_char_p), ("timeout_ms", ctypes.c_uint32),
                ("audit", ctypes.c_uint32), ("strict", ctypes.c_int), ("uncalibrated", ctypes.c_int),
                ("trace", ctypes.c_int), ("on_notice", ctypes.c_void_p), ("user", ctypes.c_void_p),
                ("selector", ctypes.c_void_p), ("on_progress", ctypes.c_void_p), ("interrupt", ctypes.c_void_p))


OnText = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)

shunt = ctypes.CDLL("libshunt.so")
error = Error()


def opened(name: str, *arguments: object) -> ctypes.c_void_p:
    """What shunt_NAME_open() opens."""
    function = getattr(shunt, f"shunt_{name}_open")
    function.restype = ctypes.c_void_p
    made = function(*arguments, ctypes.byref(error))
    if made is None:
        sys.exit(f"generate.py: {error.message.decode()}")
    return ctypes.c_void_p(made)


def main(path: str, prompt: str, length: int = 200, devices: str | None = None) -> None:
    options = RuntimeOptions(devices=devices.encode() if devices else None)
    runtime = opened("runtime", ctypes.byref(options))
    model = opened("model", path.encode())
    session = opened("session", model, runtime, None)
    text = bytearray()

    @OnText
    def on_text(_user: int, piece: "ctypes._Pointer[ctypes.c_char]", count: int) -> int:
        text.extend(piece[:count])
        print(piece[:count].decode(), end="", flush=True)
        return len(text) >= length  # ends it

    print(prompt, end="")
    if shunt.shunt_generate(session, prompt.encode(), None, on_text, None, None, ctypes.byref(error)) != 0:
        sys.exit(f"generate.py: {error.message.decode()}")
    print()
    shunt.shunt_session_close(session)
    shunt.shunt_model_close(model)
    shunt.shunt_runtime_close(runtime)


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:4]), *sys.argv[4:])
