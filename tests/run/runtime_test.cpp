#include "shunt/runtime.h"

#include <gtest/gtest.h>

namespace shunt {
namespace {

TEST(Runtime, RefusesAProcessorThatThisProcessMayNotUse) {
  const auto runtime = Runtime::create({.threads = 2, .pin_to_cpus = {0, 4000}});
  ASSERT_FALSE(runtime.has_value());
  EXPECT_EQ(runtime.error().code, Code::invalid);
  EXPECT_NE(runtime.error().message.find("processor 4000"), std::string::npos) << runtime.error().message;
}

}  // namespace
}  // namespace shunt
