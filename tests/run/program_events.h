// What a trace has of the programs that one device ran.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "shunt/computation.h"

namespace shunt::test {

inline std::unique_ptr<Computation> doubling(const Runtime& runtime) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, Shape{4});
  builder.output(builder.add(x, x));
  auto graph = std::move(builder).finish();
  EXPECT_TRUE(graph.has_value()) << graph.error().message;
  auto made = Computation::create(std::move(*graph), runtime, nullptr);
  EXPECT_TRUE(made.has_value()) << made.error().message;
  return made ? std::move(*made) : nullptr;
}

// Runs a graph of one op three times on the device of this id, and expects its program in the trace each time.
inline void expect_program_events(const std::string& id) {
  constexpr std::size_t kRuns = 3;
  SCOPED_TRACE(id);
  const auto runtime = Runtime::create({.threads = 2, .devices = id, .calibrated = false, .trace = true});
  ASSERT_TRUE(runtime.has_value()) << runtime.error().message;
  const auto computation = doubling(**runtime);
  ASSERT_NE(computation, nullptr);
  const std::array<float, 4> values = {1, 2, 3, 4};
  ASSERT_TRUE(computation->write("x", std::as_bytes(std::span(values))).has_value());
  const std::uint64_t begin_ns = trace::now_ns();
  for (std::size_t run = 0; run < kRuns; ++run) ASSERT_TRUE(computation->run().has_value());
  const std::uint64_t end_ns = trace::now_ns();

  const trace::Recorder& recorder = (*runtime)->recorder();
  std::size_t programs = 0;
  for (const trace::ExecutionEvent& event : recorder.snapshot()) {
    if (event.kind != trace::Kind::program) continue;
    ++programs;
    EXPECT_EQ(recorder.text_of(event.device), id);
    EXPECT_NE(recorder.text_of(event.what).find("add"), std::string_view::npos);
    EXPECT_EQ(event.plan, 1U);
    EXPECT_GT(event.predicted_us, 0);
    EXPECT_FALSE(event.failed);
    EXPECT_GT(event.duration_ns, 0U);
    if (!id.starts_with("sim")) {
      EXPECT_GE(event.start_ns, begin_ns);
      EXPECT_LE(event.start_ns + event.duration_ns, end_ns);
    }
  }
  EXPECT_EQ(programs, kRuns);
}

}  // namespace shunt::test
