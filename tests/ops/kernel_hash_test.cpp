// Kernels are told apart by their sources.
#include "ops/kernel_hash.h"

#include <gtest/gtest.h>

#include <set>

#include "ops/op.h"

namespace shunt::kernel_hash_tests {
namespace {

TEST(KernelHash, IsThereForEveryFamilyAndTellsThemApart) {
  const auto all = kernel_hashes("");
  for (const OpInfo& op : ops()) EXPECT_TRUE(op.family.empty() || all.contains(op.family)) << op.name;
  std::set<std::string> different;
  for (const std::string_view language : {"cpu", "shader", "cuda"}) {
    const auto hashes = kernel_hashes(language);
    EXPECT_EQ(hashes.size(), all.size());
    for (const std::string_view family : {"linear", "elementwise", "norm"}) {
      ASSERT_TRUE(hashes.contains(family));
      EXPECT_EQ(hashes.find(family)->second.size(), 16U);
      different.insert(hashes.find(family)->second);
    }
  }
  EXPECT_EQ(different.size(), 9U);
}

}  // namespace
}  // namespace shunt::kernel_hash_tests
