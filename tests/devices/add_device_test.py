"""A new device API is one folder and one row: follows docs/adding-a-device.md and looks for the device."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import walk_through

TABLE = "src/devices/backends.def"
REGISTRY = "src/devices/discovery/registry.cpp"
PROGRAM = """
#include <cstdio>
#include "devices/discovery/registry.h"
int main() {
  const auto registry = shunt::open_devices({.devices = "cpu,pretend", .threads = 1});
  if (!registry) return 1;
  for (const shunt::Device* device : registry->devices()) std::puts(device->info().id.c_str());
  return shunt::select_devices(*registry, "pretend:0").has_value() ? 0 : 1;
}
"""


class AddDevice(walk_through.WalkThrough):
    def test_one_folder_and_one_row_make_a_device(self):
        self.assertEqual(self.follow("adding-a-device.md"), [TABLE, "src/devices/pretend/device.cpp"])
        self.assertEqual(self.lines_added(TABLE), 1)
        (self.copy / "list.cpp").write_text(PROGRAM)
        program = self.program(["list.cpp", REGISTRY, "src/devices/pretend/device.cpp"])
        self.assertEqual(walk_through.run([program], self.copy).split(), ["cpu:simd", "cpu:scalar", "pretend:0"])


if __name__ == "__main__":
    walk_through.main()
