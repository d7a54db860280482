#include "read_bandwidth.h"

#include <array>
#include <chrono>
#include <numeric>
#include <span>
#include <thread>

namespace shunt::cli {
namespace {

// Larger than the caches of most machines, and long enough that starting threads does not count.
constexpr std::size_t kBufferBytes = std::size_t{512} << 20U;

// Independent sums let many reads be under way at once.
std::uint64_t sum_of(std::span<const std::uint64_t> words) {
  std::array<std::uint64_t, 32> sums{};
  for (std::size_t at = 0; at + sums.size() <= words.size(); at += sums.size())
    for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += words[at + lane];
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

}  // namespace

ReadBandwidth::ReadBandwidth(std::uint32_t threads) : threads_(threads), words_(kBufferBytes / sizeof(std::uint64_t)) {
  std::iota(words_.begin(), words_.end(), std::uint64_t{1});
}

double ReadBandwidth::measure() {
  std::vector<std::uint64_t> sums(threads_, 0);
  const std::size_t share = words_.size() / threads_;
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> readers;
    for (std::uint32_t index = 1; index < threads_; ++index)
      readers.emplace_back([&, index] { sums[index] = sum_of(std::span(words_).subspan(index * share, share)); });
    sums[0] = sum_of(std::span(words_).first(share));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  sum_ += std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
  return static_cast<double>(share * threads_ * sizeof(std::uint64_t)) / seconds;
}

}  // namespace shunt::cli
