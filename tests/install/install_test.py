#!/usr/bin/env python3
"""install_test.py BUILD: what cmake --install puts into an empty folder serves a C program and another project."""
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
MODEL = HERE.parents[1] / "models/tiny-llama-q8_0.gguf"
PROMPT = "Once upon a time"
SHARED = ("man/man1/shunt.1", "bash-completion/completions/shunt", "zsh/site-functions/_shunt",
          "fish/vendor_completions.d/shunt.fish")


def run(*command, **environment) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                          env={"PATH": "/usr/bin:/bin", **environment} if environment else None)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(condition: bool, message: str) -> None:
    if not condition:
        sys.exit(f"install_test.py: {message}")


def c_programs_are_built_by_pkg_config(prefix: pathlib.Path, folder: pathlib.Path) -> None:
    found = {"PKG_CONFIG_PATH": next(prefix.rglob("pkgconfig")), "LD_LIBRARY_PATH": str(next(prefix.rglob("libshunt.so")).parent)}
    flags = run("pkg-config", "--cflags", "--libs", "shunt", **{key: str(value) for key, value in found.items()}).split()
    story = run(prefix / "bin/shunt", "run", MODEL, PROMPT, "--greedy", "-n", "24", "--devices", "cpu")
    for name, arguments, wanted in (("feed_forward", ("cpu",), ("cpu:simd", "largest difference")),
                                    ("generate", (MODEL, PROMPT, "40", "cpu"), (story[:len(PROMPT) + 40], "interrupted"))):
        program = folder / name
        run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-variadic-macros", "-o", program,
            EXAMPLES / f"c/{name}.c", *flags, "-lm")
        said = run(program, *arguments, LD_LIBRARY_PATH=found["LD_LIBRARY_PATH"])
        expect(all(text in said for text in wanted), f"{name}.c says: {said}")


def python_calls_the_library(prefix: pathlib.Path) -> None:
    said = run(sys.executable, EXAMPLES / "python/generate.py", MODEL, PROMPT, "40", "cpu",
               LD_LIBRARY_PATH=str(next(prefix.rglob("libshunt.so")).parent))
    expect(said.startswith(PROMPT) and len(said) >= len(PROMPT) + 40, f"generate.py says: {said}")


def an_outside_project_finds_it(prefix: pathlib.Path, folder: pathlib.Path) -> None:
    run("cmake", "-S", HERE / "consumer", "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DEXAMPLES={EXAMPLES}",
        "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", folder)
    for program, *arguments in (("consumer_c", "cpu"), ("transformer_block", "cpu"), ("two_towers", "cpu", "", folder / "trace.json"), ("image_pipeline", "-", "-", "cpu"),
                                ("custom_kernel", "cpu"), ("arrays", "cpu")):
        said = run(folder / program, *arguments)
        expect("largest difference" in said, f"{program} says: {said}")
        expect(program != "two_towers" or "linear" in said, f"its trace tells of no ops: {said}")
    question = "What is 17 plus 25?"
    answer = run(prefix / "bin/shunt", "run", MODEL, question, "--chat", "--greedy", "--devices", "cpu").strip()
    said = run(folder / "generate", MODEL, question, "cpu")
    expect(answer in said and "ended by: end token" in said, f"generate says: {said}")


def the_library_exports_its_interface_alone(prefix: pathlib.Path) -> None:
    lines = run("nm", "-D", "--defined-only", next(prefix.rglob("libshunt.so"))).splitlines()
    names = [line.split()[-1] for line in lines]
    folder = next(prefix.rglob("shunt.h")).parent
    headers = "".join((folder / name).read_text(encoding="utf-8") for name in ("shunt.h", "shunt_devices.h"))
    declared = headers.count("SHUNT_API ") - headers.count("define SHUNT_API ")
    expect(all(name.startswith("shunt_") for name in names), f"other names: {[n for n in names if not n.startswith('shunt_')][:5]}")
    expect(len(names) == declared, f"{len(names)} names, {declared} declared")


def the_shell_completes(prefix: pathlib.Path) -> None:
    script = prefix / "share/bash-completion/completions/shunt"
    for words, wanted in (("shunt ver", "verify"), ("shunt bench mo", "model"), ("shunt run --gree", "--greedy"),
                          ("shunt bench ops --thr", "--threads")):
        count = len(words.split()) - 1
        said = run("bash", "-c", f"source {script}; COMP_WORDS=({words}); COMP_CWORD={count}; _shunt; echo ${{COMPREPLY[*]}}")
        expect(said.split() == [wanted], f"{words!r} is completed to {said.strip()!r}")


def what_dev_build_makes_is_all_that_is_installed(build: pathlib.Path) -> None:
    """Checks that the target made by ./dev build is installable on its own."""
    rules = {}  # output -> all outputs of its rule, and the inputs
    for outputs, inputs in re.findall(r"^build (.*?): \S+(.*)$", (build / "build.ninja").read_text(encoding="utf-8"), re.MULTILINE):
        outputs = [name.replace("${cmake_ninja_workdir}", "") for name in outputs.split() if name != "|"]
        for output in outputs:
            rules[output] = (outputs, [name for name in inputs.split() if name.strip("|")])
    made, waiting = set(), ["installable"]
    while waiting:
        outputs, inputs = rules.get(waiting.pop(), ((), ()))
        made |= set(outputs)
        waiting += [name for name in inputs if name not in made]
    script = "".join(file.read_text(encoding="utf-8") for file in build.rglob("cmake_install.cmake"))
    installed = {str(pathlib.Path(file).relative_to(build)) for file in re.findall(rf'"({re.escape(str(build))}/[^"]+)"', script)}
    installed = {file for file in installed if file in rules and not file.endswith(".cmake")}
    expect(len(installed) >= 6, f"only these files are installed: {installed}")
    expect(installed <= made, f"./dev build does not make {sorted(installed - made)}")
    expect(not any(file.startswith("tests/") for file in made), "./dev build makes tests")


def main() -> None:
    build = pathlib.Path(sys.argv[1]).resolve()
    what_dev_build_makes_is_all_that_is_installed(build)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prefix = folder / "prefix"
        run("cmake", "--install", build, "--prefix", prefix)
        for file in SHARED:
            expect((prefix / "share" / file).stat().st_size > 1000, f"{file} is missing or empty")
        the_library_exports_its_interface_alone(prefix)
        the_shell_completes(prefix)
        c_programs_are_built_by_pkg_config(prefix, folder)
        python_calls_the_library(prefix)
        an_outside_project_finds_it(prefix, folder / "consumer")
    print("ok")


if __name__ == "__main__":
    main()
