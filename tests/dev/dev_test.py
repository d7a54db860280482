"""How ./dev behaves, in a copy of it whose tools only record their calls."""

import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

ROWS = (ROOT / "dev").read_text().split("<<'TABLE'\n")[1].split("\nTABLE\n")[0].splitlines()
PACKAGES = [row.split(" ")[1] for row in ROWS]

RECORD = '#!/bin/bash\necho "$(basename "$0") $*" >>"$CALLS"\n'
# The files of a configured and built tree.
CMAKE = RECORD + """
folder=build/$2
mkdir -p $folder
echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >$folder/CMakeCache.txt
for setting in "${@:3}"; do echo "${setting#-D}" >>$folder/CMakeCache.txt; done
touch $folder/build.ninja
"""
NINJA = RECORD + """
mkdir -p build/release/cli
printf '#!/bin/bash\\necho "shunt $*"\\nexit 7\\n' >build/release/cli/shunt
chmod +x build/release/cli/shunt
"""
# Reports as installed what the file $INSTALLED lists, or everything if there is no such file.
DPKG_QUERY = RECORD + """
for package in "${@:4}"; do
  if [[ ! -f $INSTALLED ]] || grep -qx "$package" "$INSTALLED"; then echo "installed $package"; else missing=1; fi
done
exit ${missing:-0}
"""
# Like apt-get: what was installed is listed afterwards.
APT_GET = RECORD + """
[[ ! -f $BROKEN_APT ]] || exit 100
for word in "$@"; do echo "$word" >>"$INSTALLED"; done
"""
# Like npm ci: its package list becomes the newest file.
NPM = RECORD + """
[[ ! -f $BROKEN_NPM ]] || exit 1
mkdir -p tools/npm/node_modules/echarts
[[ $* == *--omit=dev* ]] || mkdir -p tools/npm/node_modules/puppeteer-core
touch tools/npm/node_modules/.package-lock.json
"""


class Dev(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name) / "a tree"
        self.tools = pathlib.Path(folder.name) / "tools"
        self.calls = pathlib.Path(folder.name) / "calls"
        self.installed = pathlib.Path(folder.name) / "installed"
        self.broken_apt = pathlib.Path(folder.name) / "broken"
        self.broken_npm = pathlib.Path(folder.name) / "broken_npm"
        self.gpu_files = pathlib.Path(folder.name) / "gpus"
        self.gpu_files.mkdir()
        self.tree.mkdir()
        self.tools.mkdir()
        shutil.copy(ROOT / "dev", self.tree)
        (self.tree / "CMakePresets.json").touch()
        (self.tree / "tools/npm").mkdir(parents=True)
        (self.tree / "tools/npm/package-lock.json").touch()
        fakes = {"npm": NPM, "cmake": CMAKE, "ninja": NINJA, "dpkg-query": DPKG_QUERY, "apt-get": APT_GET, "sudo": RECORD + 'shift\n"$@"\n'}
        for name, text in fakes.items():
            self.fake(name, text)
        for name in ("bash env id readlink dirname basename grep cut cat sed mkdir touch rm ln nproc xargs find "
                     "chmod printf tail tee").split():
            (self.tools / name).symlink_to(shutil.which(name))

    def fake(self, name, text):
        (self.tools / name).write_text(text)
        (self.tools / name).chmod(0o755)

    def be_user(self, uid):
        (self.tools / "id").unlink()
        self.fake("id", f"#!/bin/bash\necho {uid}\n")

    def dev(self, *arguments, cwd=None):
        environment = {"PATH": str(self.tools), "HOME": str(self.tree), "CALLS": str(self.calls),
                       "INSTALLED": str(self.installed), "BROKEN_APT": str(self.broken_apt),
                       "BROKEN_NPM": str(self.broken_npm), "SHUNT_GPU_FILES": str(self.gpu_files)}
        self.calls.write_text("")
        done = subprocess.run([str(self.tree / "dev"), *arguments], cwd=cwd or "/", env=environment, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, check=False)
        self.called = self.calls.read_text().splitlines()
        return done

    def names_called(self):
        return [line.split()[0] for line in self.called]

    def test_an_unknown_command_shows_the_usage_and_exits_2(self):
        done = self.dev("fly")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no command is named fly", done.stderr)
        self.assertIn("usage: ./dev", done.stderr)
        self.assertEqual(self.called, [])

    def test_no_command_shows_the_usage_and_exits_2(self):
        done = self.dev()
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: ./dev", done.stderr)

    def test_help_goes_to_stdout_and_names_every_command(self):
        done = self.dev("help")
        self.assertEqual(done.returncode, 0)
        for command in "run build test bench verify format lint help".split():
            self.assertRegex(done.stdout, rf"(?m)^  {command} ")

    def test_an_unknown_stage_exits_2_and_names_the_stages(self):
        done = self.dev("test", "nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertIn("lint script unit arm asan fuzz tsan", done.stderr)

    def test_with_nothing_missing_apt_is_not_called(self):
        done = self.dev("build")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.names_called(), ["dpkg-query", "npm", "cmake", "ninja"])

    def test_a_second_build_asks_dpkg_once_and_does_not_configure(self):
        self.dev("build")
        self.dev("build")
        self.assertEqual(self.names_called(), ["dpkg-query", "ninja"])

    def test_what_is_missing_is_named_with_its_reason_and_installed(self):
        self.be_user(0)
        present = [row.split(" ")[1] for row in ROWS if row.startswith("build ")]
        present = [package for package in present if package not in ("ninja-build", "libcli11-dev")]
        self.installed.write_text("\n".join(present) + "\n")
        done = self.dev("build")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"libcli11-dev +parses the command line")
        installs = [line for line in self.called if line.startswith("apt-get") and " install " in line]
        self.assertEqual(len(installs), 1)
        self.assertTrue(installs[0].endswith(" ninja-build libcli11-dev"), installs[0])
        self.dev("build")
        self.assertNotIn("apt-get", self.names_called())

    def test_without_root_it_goes_through_sudo(self):
        self.be_user(1000)
        self.installed.write_text("")
        self.assertEqual(self.dev("build").returncode, 0)
        self.assertEqual(self.names_called(), ["dpkg-query", "sudo", "apt-get", "sudo", "apt-get", "npm", "cmake", "ninja"])

    def test_without_root_and_sudo_it_says_what_to_install(self):
        self.be_user(1000)
        self.installed.write_text("")
        (self.tools / "sudo").unlink()
        done = self.dev("build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("As root: apt-get install g++ cmake", done.stderr)
        self.assertNotIn("apt-get", self.names_called())

    def test_an_apt_that_fails_is_reported_with_the_packages(self):
        self.be_user(0)
        self.installed.write_text("")
        self.broken_apt.touch()
        done = self.dev("build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt could not install them", done.stderr)
        self.assertIn("apt-get install g++ cmake", done.stderr)
        self.assertNotIn("cmake", self.names_called())

    def test_without_apt_it_names_the_tool_and_the_packages(self):
        (self.tools / "dpkg-query").unlink()
        done = self.dev("build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("g++ is missing", done.stderr)
        self.assertIn("libhwy-dev", done.stderr)

    def test_a_program_needs_no_test_packages_and_no_gpu_toolkit(self):
        self.dev("build")
        asked = self.called[0]
        for package in ("libgtest-dev", "clang-19", "cuda", "mesa", "hip", "nodejs"):
            self.assertNotIn(package, asked)

    def test_the_program_is_at_build_shunt_and_can_be_called_from_anywhere(self):
        self.dev("build")
        done = subprocess.run([str(self.tree / "build/shunt"), "devices"], cwd="/", capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.stdout, "shunt devices\n")

    def test_run_passes_arguments_and_exit_code_on(self):
        done = self.dev("run", "inspect", "a b.gguf")
        self.assertEqual(done.returncode, 7)
        self.assertEqual(done.stdout, "shunt inspect a b.gguf\n")

    def test_run_without_arguments_runs_the_bundled_model(self):
        self.dev("build")
        missing = self.dev("run")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("models/tiny-llama-q8_0.gguf is missing", missing.stderr)
        (self.tree / "models").mkdir()
        (self.tree / "models/tiny-llama-q8_0.gguf").touch()
        self.assertRegex(self.dev("run").stdout, r"^shunt run models/tiny-llama-q8_0.gguf \w+")

    def test_bench_and_verify_call_the_program(self):
        self.assertEqual(self.dev("bench", "model").stdout, "shunt bench model\n")
        self.assertEqual(self.dev("verify", "linear").stdout, "shunt verify linear\n")
        self.assertEqual(self.dev("bench", "--check", "--json").stdout, "shunt bench check --json\n")

    def test_a_tree_that_was_moved_is_configured_anew(self):
        self.dev("build")
        moved = self.tree.with_name("moved")
        self.tree.rename(moved)
        self.tree = moved
        done = self.dev("build")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cmake", self.names_called())

    def test_what_npm_brings_is_fetched_once_and_the_tests_share_of_it_for_tests_only(self):
        self.fake("python3", "#!/bin/bash\n")
        self.dev("build")
        self.assertIn("npm ci --omit=dev --prefix tools/npm", "\n".join(self.called))
        self.dev("build")
        self.assertNotIn("npm", self.names_called())
        self.assertEqual(self.dev("test", "script").returncode, 0)
        self.assertIn("npm ci --prefix tools/npm", "\n".join(self.called))
        self.dev("test", "script")
        self.assertNotIn("npm", self.names_called())

    def test_without_npm_or_its_registry_the_build_goes_on_and_says_once_what_is_missing(self):
        self.broken_npm.touch()
        done = self.dev("build")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("no charts"), 1)
        self.assertNotIn("charts", self.dev("build").stderr)
        (self.tools / "npm").unlink()
        done = self.dev("build")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("apt-get install npm", done.stderr)

    def test_a_build_makes_all_that_is_installed(self):
        done = self.dev("build")
        self.assertTrue(self.called[-1].startswith("ninja -C build/release"), self.called)
        self.assertTrue(self.called[-1].endswith(" installable"), self.called)
        self.assertIn("cmake --install build/release", done.stderr)

    def test_the_first_build_says_how_long_it_takes(self):
        (self.tools / "nproc").unlink()
        for cores, minutes in ((1, "9 minutes"), (2, "5 minutes"), (8, "2 minutes"), (64, "a minute")):
            self.fake("nproc", f"#!/bin/bash\necho {cores}\n")
            shutil.rmtree(self.tree / "build", ignore_errors=True)
            self.assertIn(f"takes about {minutes} on {cores} cores", self.dev("build").stderr)
            self.assertNotIn("takes about", self.dev("build").stderr)

    def test_compilers_installed_or_removed_since_are_noticed(self):
        self.dev("build")
        for tool in ("clang++-19", "hipcc", "node"):
            self.fake(tool, "#!/bin/bash\n")
            self.dev("build")
            configured = [call for call in self.called if call.startswith("cmake ")]
            self.assertEqual(len(configured), 1, tool)
            self.assertIn("-USHUNT_CUDA_CLANG", configured[0])
            self.dev("build")
            self.assertNotIn("cmake", self.names_called())
            (self.tools / tool).unlink()
            self.dev("build")
            self.assertIn("cmake", self.names_called())

    # The file that shows a GPU, the compiler of its kernels, and the packages that have it.
    GPUS = (("nvidiactl", "clang++-19", ["clang-19"]),
            ("kfd", "hipcc", ["hipcc", "libamdhip64-dev", "rocm-device-libs"]))

    def without(self, packages):
        self.installed.write_text("\n".join(package for package in PACKAGES if package not in packages) + "\n")
        shutil.rmtree(self.tree / "build", ignore_errors=True)

    def test_the_compiler_for_the_gpus_of_the_machine_is_installed(self):
        self.be_user(0)
        for file, tool, packages in self.GPUS:
            self.without(packages)
            self.assertNotIn(packages[0], self.dev("build").stderr)
            (self.gpu_files / file).touch()
            self.without(packages)
            # Like apt-get: the package brings its compiler.
            self.fake("apt-get", APT_GET + f"[[ $* != *install* ]] || {{ touch '{self.tools}/{tool}'; chmod +x '{self.tools}/{tool}'; }}\n")
            done = self.dev("build")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("this machine has an", done.stderr)
            installs = [line for line in self.called if line.startswith("apt-get") and " install " in line]
            self.assertEqual(len(installs), 1)
            self.assertTrue(installs[0].endswith(" " + " ".join(packages)), installs[0])
            self.assertLess(self.names_called().index("apt-get"), self.names_called().index("cmake"))
            done = self.dev("build")
            self.assertNotIn("this machine has an", done.stderr)
            self.assertEqual(self.names_called(), ["dpkg-query", "ninja"])
            (self.gpu_files / file).unlink()
            (self.tools / tool).unlink()

    def test_another_compiler_for_the_gpu_will_do(self):
        for file, tool, packages in (("nvidiactl", "clang++-20", ["clang-19"]), ("kfd", "hipcc", ["hipcc", "rocm-device-libs"])):
            self.without(packages)
            (self.gpu_files / file).touch()
            self.fake(tool, "#!/bin/bash\n")
            self.assertNotIn("this machine has an", self.dev("build").stderr)
            self.assertNotIn("apt-get", self.names_called())

    def test_a_build_goes_on_without_a_compiler_for_the_gpu_and_says_once_how_to_get_it(self):
        def breaks_apt():
            self.be_user(0)
            self.broken_apt.touch()

        def removes_sudo():
            self.broken_apt.unlink()
            self.be_user(1000)
            (self.tools / "sudo").unlink()

        def removes_apt():
            (self.tools / "dpkg-query").unlink()
            for tool in "g++ cmake pkg-config ccache".split():
                if not (self.tools / tool).exists():
                    self.fake(tool, RECORD)

        for change in (breaks_apt, removes_sudo, removes_apt):
            change()
            for file, _, packages in self.GPUS:
                self.without(packages)
                (self.gpu_files / file).touch()
                done = self.dev("build")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("cmake", self.names_called())
                self.assertTrue(self.called[-1].startswith("ninja"), self.called)
                self.assertEqual(done.stderr.count(f"to get them: apt-get install {' '.join(packages)}, then ./dev build"), 1)
                self.assertNotIn("to get them", self.dev("build").stderr)
                (self.gpu_files / file).unlink()

    def test_a_stage_that_fails_hides_no_other_and_the_first_failure_counts(self):
        self.fake("python3", "#!/bin/bash\nexit 3\n")
        self.fake("ninja", "#!/bin/bash\necho no build >&2\nexit 4\n")
        done = self.dev("test", "script", "unit", "script")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(len(re.findall(r"(?m)^  script +FAILED +\d+ s$", done.stdout)), 2, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^  unit +FAILED +\d+ s$")
        self.assertIn("\n=== the end of unit:\nno build\n", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^  total +\d+ s$")


class Packages(unittest.TestCase):
    def test_every_row_has_a_purpose_a_package_and_a_reason(self):
        self.assertGreater(len(ROWS), 10)
        seen = set()
        for row in ROWS:
            purpose, package, reason = row.split(" ", 2)
            self.assertIn(purpose, ("build", "nvidia", "amd", "test"), row)
            self.assertRegex(package, r"^[a-z0-9][a-z0-9+.-]+$")
            self.assertTrue(reason.strip(), row)
            self.assertNotIn(package, seen)
            seen.add(package)

    def test_scripts_can_be_executed(self):
        for name in ("dev", ".ci/run"):
            self.assertTrue((ROOT / name).stat().st_mode & stat.S_IXUSR, name)
            self.assertTrue(os.access(ROOT / name, os.X_OK), name)


if __name__ == "__main__":
    unittest.main()
