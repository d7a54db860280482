// Array functions of several sizes, each on the device that measures fastest: where it ran, why, and how long it took
// beside a plain loop.
//
//   arrays [DEVICES]
#include "shunt/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

namespace {

using namespace shunt;

template <class Work>
double us_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

Status run(const char* devices) {
  SHUNT_TRY_ASSIGN(const auto runtime, Runtime::create({.devices = devices}));
  SHUNT_TRY_ASSIGN(const auto arrays, Arrays::create(*runtime));
  float largest = 0;
  for (std::size_t size = 16; size <= std::size_t{1} << 22U; size *= 8) {
    std::vector<float> a(size, 1.5F);
    std::vector<float> b(size, 0.25F);
    std::vector<float> sum(size);
    ArrayRun last;
    double best_us = INFINITY;
    double loop_us = INFINITY;
    for (int call = 0; call < 100; ++call) {
      best_us = std::min(best_us, us_of([&] { last = arrays->add(a, b, sum).value_or(ArrayRun{}); }));
      for (const float value : sum) largest = std::fmax(largest, std::fabs(value - 1.75F));
      loop_us = std::min(loop_us, us_of([&] { std::ranges::transform(a, b, sum.begin(), std::plus<>()); }));
    }
    fmt::print("{:8} elements: {:10} {:7.1f} us, a plain loop {:7.1f} us; {}\n", size, last.device, best_us, loop_us,
               words_of(last.reason));
  }
  fmt::print("largest difference: {:.1e}\n\n{}", largest, arrays->explain());
  if (!(largest < 1e-6F)) return fail(Code::internal, "that is too much");
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  const Status status = run(count > 1 ? arguments[1] : "");
  if (!status) std::fprintf(stderr, "arrays: %s\n", status.error().message.c_str());
  return status ? 0 : 1;
}
