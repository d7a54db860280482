"""Turns a translated kernel into C++: msl_as_cpp.py NAME KERNEL.msl OUT.cpp

The text compiles as C++ through simulated/msl/metal_stdlib, except for casts that name an address space, literals with
a point (float in MSL) and specialization constants, which this script rewrites. It adds a function that passes the
entry point what its attributes ask for, and the text itself, by which the kernel is found. Without KERNEL.msl, as in a
build without spirv-cross, there is no function.
"""

import pathlib
import re
import sys

ARGUMENTS = {
    "threadgroup_position_in_grid": "call.group<metal::uint3>()",
    "threadgroups_per_grid": "call.groups<metal::uint3>()",
    "thread_position_in_threadgroup": "call.thread<metal::uint3>()",
}
# Two lines: the value that the caller sets, and its default.
CONSTANT = r"constant uint (\w+)_tmp \[\[function_constant\((\d+)\)\]\];\nconstant uint \1 = .*\n"
UNIT = """#include "simulated/msl_kernel.h"
#include <metal_stdlib>
namespace shunt::simulated {{
namespace {{
thread_local const std::uint32_t* function_constants;
namespace translated {{
{code}
}}
void run(const MslCall& call) {{
  function_constants = call.constants.data();
  translated::main0({arguments});
}}
}}
extern const MslKernel {name}_msl_kernel;
const MslKernel {name}_msl_kernel{{R"msl({text})msl", &run}};
}}
"""
MISSING = """#include "simulated/msl_kernel.h"
namespace shunt::simulated {{
extern const MslKernel {name}_msl_kernel;
const MslKernel {name}_msl_kernel;
}}
"""


def argument_of(attribute):
    buffer = re.fullmatch(r"buffer\((\d+)\)", attribute)
    return f"call.buffer({buffer[1]})" if buffer else ARGUMENTS[attribute]


def main():
    name, source, out = sys.argv[1:]
    if not pathlib.Path(source).exists():
        pathlib.Path(out).write_text(MISSING.format(name=name), encoding="utf-8")
        return
    text = pathlib.Path(source).read_text(encoding="utf-8")
    entry = re.search(r"^kernel void main0\((.*)\)$", text, re.MULTILINE)
    arguments = ", ".join(map(argument_of, re.findall(r"\[\[(.*?)\]\]", entry[1])))
    code = re.sub(r"\(threadgroup (\w+\*\))", r"(\1", text)
    code = re.sub(CONSTANT, r"#define \1 function_constants[\2]\n", code)
    code = re.sub(r"(\b\d+\.\d+(e[-+]?\d+)?)\b", r"\1f", code)
    pathlib.Path(out).write_text(UNIT.format(name=name, code=code, arguments=arguments, text=text), encoding="utf-8")


main()
