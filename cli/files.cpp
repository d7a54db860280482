#include "files.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/system/whole_file.h"
#include "command_line.h"
#include "output.h"

namespace shunt::cli {
namespace {

namespace fs = std::filesystem;

// The absolute path at which a file would be created.
fs::path place_of(const std::string& path) {
  std::error_code failed;
  const fs::path whole = fs::absolute(without_links(path), failed);
  const fs::path place = fs::weakly_canonical(whole, failed);
  return failed ? whole : place;
}

// Compares device and inode if both exist, else names.
bool are_one_file(const std::string& one, const std::string& other) {
  std::error_code failed;
  const bool has_one = fs::exists(one, failed);
  if (has_one != fs::exists(other, failed)) return false;
  if (has_one) return fs::equivalent(one, other, failed);
  return place_of(one) == place_of(other);
}

struct File {
  std::string name;
  std::string path;
};

}  // namespace

void Files::check() const {
  const auto given = [](const std::vector<Declared>& declared) {
    std::vector<File> files;
    for (const Declared& each : declared)
      for (std::string& path : each.paths())
        if (!path.empty()) files.push_back({each.name, std::move(path)});
    return files;
  };
  const std::vector<File> outputs = given(outputs_);
  if (outputs.empty()) return;
  const std::vector<File> inputs = given(inputs_);
  for (std::size_t index = 0; index < outputs.size(); ++index) {
    const File& output = outputs[index];
    for (const File& input : inputs)
      if (are_one_file(output.path, input.path))
        refuse(fmt::format("{} and {} are the same file, {}; give {} another name, so that {} is not overwritten",
                           output.name, input.name, in_quotes(input.path), output.name, input.name));
    for (std::size_t other = 0; other < index; ++other)
      if (are_one_file(output.path, outputs[other].path))
        refuse(fmt::format("{} and {} are the same file, {}; give each its own name", outputs[other].name, output.name,
                           in_quotes(output.path)));
  }
}

}  // namespace shunt::cli
