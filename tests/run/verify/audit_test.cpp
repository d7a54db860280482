// Audits find wrong results and report nothing else.
#include "run/verify/audit.h"
#include "run/opened_devices.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "devices/each_api.h"
#include "run/graphs.h"
#include "shunt/computation.h"
#include "trace/recorder.h"

namespace shunt {
namespace {

std::unique_ptr<Runtime> open(const std::string& devices, std::uint32_t audit, const std::string& faults = "") {
  auto runtime = Runtime::create({.threads = 2,
                                  .devices = devices,
                                  .calibrated = false,
                                  .trace = true,
                                  .strict = true,
                                  .audit = audit,
                                  .faults = faults});
  EXPECT_TRUE(runtime.has_value()) << runtime.error().message;
  return std::move(*runtime);
}

std::vector<trace::ExecutionEvent> audits_of(const Runtime& runtime) {
  std::vector<trace::ExecutionEvent> events = opened(runtime).recorder().snapshot();
  std::erase_if(events, [](const trace::ExecutionEvent& event) { return event.kind != trace::Kind::audit; });
  return events;
}

// Returns numbers of magnitudes from `least` to `most`: alternating in sign, or all negative.
std::vector<float> numbers(std::size_t count, float least, float most, bool negative) {
  std::vector<float> values;
  for (std::size_t index = 0; index < count; ++index) {
    const float size = least + (most - least) * static_cast<float>(index) / static_cast<float>(count);
    values.push_back(negative || index % 2 == 1 ? -size : size);
  }
  return values;
}

std::vector<std::byte> bytes_of_floats(std::size_t count, float value) {
  std::vector<std::byte> bytes(count * sizeof value);
  for (std::size_t at = 0; at < bytes.size(); at += sizeof value) std::memcpy(bytes.data() + at, &value, sizeof value);
  return bytes;
}

// Goes beyond conformance: extreme numbers, for which the tolerances of ordinary ones do not hold.
void expect_right_with_any_numbers(const std::string& device) {
  constexpr std::uint32_t kRows = 8;
  constexpr std::uint32_t kColumns = 64;
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {kRows, kColumns});
  const Tensor y = builder.input("y", DType::F32, {kRows, kColumns});
  const Tensor turned = builder.input("turned", DType::F32, {kColumns, kColumns});
  for (const Tensor each : {builder.exp(x), builder.silu(x), builder.gelu(x), builder.gelu_erf(x), builder.sigmoid(x),
                            builder.softplus(x), builder.sin(x), builder.tanh(x), builder.sub(x, y), builder.div(x, y),
                            builder.softmax(x, {}, {}), builder.rms_norm(x), builder.layer_norm(x),
                            builder.reduce_sum(x), builder.dot(x, y), builder.argmax(x), builder.linear(x, turned)})
    builder.output(each);
  auto graph = std::move(builder).finish();
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  const auto runtime = open(device, 1);
  auto computation = Computation::create(std::move(*graph), *runtime, nullptr);
  ASSERT_TRUE(computation.has_value()) << computation.error().message;
  std::size_t runs = 0;
  for (const auto& [least, most] :
       {std::pair{4.0F, 6.0F}, {0.0F, 80.0F}, {1e3F, 8e3F}, {1e-6F, 1e6F}, {1.0F, 1.000001F}})
    for (const bool negative : {false, true}) {
      const auto write = [&](std::string_view name, const std::vector<float>& values) {
        ASSERT_TRUE((*computation)->write(name, std::as_bytes(std::span(values))).has_value());
      };
      std::vector<float> near = numbers(std::size_t{kRows} * kColumns, least, most, negative);
      write("x", near);
      for (float& value : near) value = std::nextafter(value, 0.0F);
      write("y", near);
      write("turned", numbers(std::size_t{kColumns} * kColumns, least, most, false));
      for (int op = 0; op < 17; ++op, ++runs) {
        const Status run = (*computation)->run();
        ASSERT_TRUE(run.has_value()) << run.error().message;
      }
    }
  EXPECT_EQ(audits_of(*runtime).size(), runs);
}

TEST(Audits, FindTheProcessorRightWithNumbersThatAreNotOrdinary) { expect_right_with_any_numbers("cpu:simd"); }

class DeviceAudits : public test::EachApi {};

TEST_P(DeviceAudits, FindADeviceRightWithNumbersThatAreNotOrdinary) {
  expect_right_with_any_numbers(devices_.front()->info().id);
}

SHUNT_FOR_APIS(DeviceAudits, (std::vector<std::string>{"vulkan", "gl", "webgpu"}));

TEST(Audits, TakeEachOpInTurnAndNoneWhereNoneAreAskedFor) {
  constexpr std::uint32_t kEach = 3;
  for (const std::uint32_t each : {0U, kEach}) {
    const auto runtime = open("cpu:simd", each);
    auto computation = Computation::create(test::branching_graph(4, 3), *runtime, nullptr);
    ASSERT_TRUE(computation.has_value()) << computation.error().message;
    const std::vector<float> x = numbers(64, 0.25F, 2, false);
    ASSERT_TRUE((*computation)->write("x", std::as_bytes(std::span(x))).has_value());
    const std::size_t ops = test::branching_graph(4, 3).nodes().size();
    for (std::size_t run = 0; run < kEach * ops; ++run) ASSERT_TRUE((*computation)->run({.tokens = 3}).has_value());
    std::set<trace::Label> audited;
    for (const trace::ExecutionEvent& event : audits_of(*runtime)) {
      EXPECT_FALSE(event.failed);
      EXPECT_EQ(event.step % kEach, kEach - 1);
      audited.insert(event.what);
    }
    EXPECT_EQ(audited.size(), each == 0 ? 0 : ops);
  }
}

TEST(Audits, SayWhatIsWrong) {
  const auto runtime = open("sim:0,cpu:scalar", 1, "sim:0 wrong after 1 op");
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, Shape{16});
  builder.output(builder.add(x, x));
  auto computation = Computation::create(*std::move(builder).finish(), *runtime, nullptr);
  ASSERT_TRUE(computation.has_value());
  const std::vector<float> x_values = numbers(16, 3, 3, false);
  ASSERT_TRUE((*computation)->write("x", std::as_bytes(std::span(x_values))).has_value());
  ASSERT_TRUE((*computation)->run().has_value());
  const Status wrong = (*computation)->run();
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code, Code::internal);
  EXPECT_EQ(wrong.error().device, "sim:0");
  for (const char* words : {"add", "F32[16]", "is wrong", "is -6, not 6"})
    EXPECT_NE(wrong.error().message.find(words), std::string::npos) << wrong.error().message;
  const auto audits = audits_of(*runtime);
  ASSERT_EQ(audits.size(), 2U);
  EXPECT_FALSE(audits[0].failed);
  EXPECT_TRUE(audits[1].failed);
}

// When terms near one cancel to almost nothing inside an op, correct devices differ in their last digits.
TEST(Audits, PassOverWhatIsNextToNothing) {
  const Operand x = Operand::contiguous(DType::F32, {16});
  const Operand* const inputs[] = {&x};
  const Attributes attributes;
  AuditedOp op{.call = {.op = Op::gelu_erf, .attributes = &attributes, .inputs = inputs, .output = &x},
               .parameters = {},
               .inputs = {bytes_of_floats(16, -5.5F)},
               .output = bytes_of_floats(16, 1e-6F)};
  const Status right = audit(op, 0);
  EXPECT_TRUE(right.has_value()) << right.error().message;
  op.output = bytes_of_floats(16, 1e-3F);
  EXPECT_FALSE(audit(op, 0).has_value());
}

// Audits check a product of many rows in windows; one number per row is wrong in the last window only.
TEST(Audits, TakeSomeRowsOfWhatIsLargeAndOthersNextTime) {
  constexpr std::uint32_t kRows = 64;
  constexpr std::uint32_t kWidth = 2048;
  const Operand x = Operand::contiguous(DType::F32, {kRows, kWidth}, TensorKind::value, Extent::tokens);
  const Operand weight = Operand::contiguous(DType::F32, {kWidth, kWidth}, TensorKind::weight);
  const Operand output = Operand::contiguous(DType::F32, {kRows, kWidth}, TensorKind::value, Extent::tokens);
  const Operand* const inputs[] = {&x, &weight};
  const Attributes attributes;
  AuditedOp op{
      .call = {.op = Op::linear, .attributes = &attributes, .inputs = inputs, .output = &output},
      .parameters = {.tokens = kRows - 1},
      .inputs = {bytes_of_floats(std::size_t{kRows} * kWidth, 0.5F), bytes_of_floats(std::size_t{kWidth} * kWidth, 2)},
      .output = bytes_of_floats(std::size_t{kRows} * kWidth, kWidth)};
  // Anything may follow the valid rows.
  std::memset(op.output.data() + op.output.size() - 4, 0xFF, 4);
  EXPECT_TRUE(audit(op, 0).has_value());
  EXPECT_TRUE(audit(op, 1).has_value());
  const float wrong = -1;
  std::memcpy(op.output.data() + std::size_t{kRows - 2} * kWidth * sizeof wrong, &wrong, sizeof wrong);
  EXPECT_TRUE(audit(op, 0).has_value());
  const Status found = audit(op, 1);
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().message.find("is -1, not 2048"), std::string::npos) << found.error().message;
}

}  // namespace
}  // namespace shunt
