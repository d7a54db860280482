#include "ops/kernel_hash.h"

namespace shunt {
namespace {

struct FamilyHashes {
  std::string_view family;
  std::string_view cpu;
  std::string_view shader;
  std::string_view cuda;
};

constexpr FamilyHashes kHashes[] = {
#define SHUNT_KERNEL_HASHES(family, cpu, shader, cuda) {#family, cpu, shader, cuda},
#include "kernel_hashes.def"
#undef SHUNT_KERNEL_HASHES
};

std::string hash_of(const FamilyHashes& row, std::string_view language) {
  if (language == "cpu") return std::string(row.cpu);
  if (language == "shader") return std::string(row.shader);
  if (language == "cuda") return std::string(row.cuda);
  return std::string(row.cpu).append(row.shader).append(row.cuda);
}

}  // namespace

std::map<std::string, std::string, std::less<>> kernel_hashes(std::string_view language) {
  std::map<std::string, std::string, std::less<>> hashes;
  for (const FamilyHashes& row : kHashes) hashes.emplace(row.family, hash_of(row, language));
  return hashes;
}

}  // namespace shunt
