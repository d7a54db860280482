// Damaged files give an error or a model that runs, never a crash, and take no more memory than the file warrants.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>

#include "models/generate.h"
#include "models/gguf/gguf_bytes.h"
#include "models/random/random_model.h"
#include "models/reference.h"
#include "models/summary.h"
#include "models/text/utf8.h"
#include "sanitized.h"

namespace {

std::atomic<std::size_t> live_bytes{0};
std::atomic<std::size_t> peak_bytes{0};

}  // namespace

// Counts the program's allocations.
void* operator new(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  const std::size_t usable = malloc_usable_size(memory);
  const std::size_t live = live_bytes.fetch_add(usable) + usable;
  std::size_t peak = peak_bytes.load();
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live)) {
  }
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return operator new(size); }
void operator delete(void* memory) noexcept {
  if (memory != nullptr) live_bytes.fetch_sub(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { operator delete(memory); }

namespace shunt::models {
namespace {

constexpr std::size_t kFree = std::size_t{64} << 20;

std::vector<std::byte> nano() {
  TestFolder folder;
  const Status made = make_model("nano", "Q8_0", folder.file("nano"));
  EXPECT_TRUE(made.has_value()) << made.error().message;
  return read_bytes(folder.file("nano"));
}

// Opens the bytes as a model and discards it; returns whether that worked.
bool loads(std::span<const std::byte> bytes) {
  if (auto file = GgufFile::from_memory(bytes); file) {
    EXPECT_EQ(summarize(**file).tensors.size(), (*file)->weights().size());
  } else {
    EXPECT_FALSE(file.error().message.empty());
    return false;
  }
  auto model = Model::from_memory(bytes);
  EXPECT_TRUE(model.has_value() || !model.error().message.empty());
  return model.has_value();
}

// Runs `body` and returns its peak memory.
template <class Body>
std::size_t peak_of(Body body) {
  const std::size_t before = live_bytes.load();
  peak_bytes.store(before);
  body();
  return peak_bytes.load() - before;
}

enum class Outcome : std::uint8_t { refused, ran };

// Opens the bytes as a model and generates a few tokens. Everything allocated before the first op, including mapped
// memory for cache and programs, must stay in proportion to the file.
Outcome use(std::span<const std::byte> bytes, const Runtime& runtime, const SessionOptions& options) {
  std::unique_ptr<Model> model;
  std::unique_ptr<Session> session;
  std::string why;
  const auto keep = [&](auto result, auto& place) {
    if (result) place = std::move(*result);
    if (!result) why = result.error().message;
    return result.has_value();
  };
  const Plan* plan = nullptr;
  const std::size_t peak = peak_of([&] {
    // Prefills up to 8 tokens, then decodes one at a time.
    static_cast<void>(keep(Model::from_memory(bytes), model) &&
                      keep(Session::create(*model, runtime, options), session) && keep(session->plan_for(8, 1), plan) &&
                      keep(session->plan_for(1, 1), plan));
  });
  const Runner::Memory mapped = session == nullptr ? Runner::Memory{} : session->memory();
  EXPECT_LT(peak + mapped.copied_weights + mapped.state + mapped.programs, 4 * bytes.size() + kFree);
  if (plan == nullptr || !why.empty()) {
    EXPECT_FALSE(why.empty());
    return Outcome::refused;
  }
  const Tokenizer& tokenizer = model->tokenizer();
  const auto prompt = tokenizer.encode("a bc", {.add_bos = tokenizer.adds_bos(), .parse_special = true});
  if (!prompt) {
    EXPECT_FALSE(prompt.error().message.empty());
    return Outcome::refused;
  }
  const auto generation = generate(*session, *prompt, {.max_tokens = 3, .ignore_end = true}, {});
  if (!generation) {
    EXPECT_FALSE(generation.error().message.empty());
    return Outcome::refused;
  }
  EXPECT_TRUE(is_utf8(generation->text));
  return Outcome::ran;
}

TEST(DamagedGguf, CutAtEveryByteIsAnError) {
  const std::vector<std::byte> whole = nano();
  ASSERT_LT(whole.size(), 65536U);
  auto runtime = Loaded::take(Runtime::create({.threads = 1}));
  ASSERT_EQ(use(whole, *runtime, {}), Outcome::ran);
  auto file = GgufFile::from_memory(whole);
  ASSERT_TRUE(file.has_value());
  const std::size_t last = (*file)->weights().size() - 1;
  const auto end = static_cast<std::size_t>((*file)->mapped(last).data() - whole.data()) + (*file)->mapped(last).size();
  constexpr std::size_t kStep = test::kSanitized ? 7 : 1;
  for (std::size_t size = 0; size < end; size += kStep) {
    auto cut = GgufFile::from_memory(std::span(whole).first(size));
    ASSERT_FALSE(cut.has_value()) << "cut at byte " << size;
    ASSERT_EQ(cut.error().code, Code::invalid) << "cut at byte " << size;
    ASSERT_FALSE(cut.error().message.empty()) << "cut at byte " << size;
  }
  // The padding after the last tensor carries nothing.
  for (std::size_t size = end; size < whole.size(); ++size)
    ASSERT_EQ(use(std::span(whole).first(size), *runtime, {}), Outcome::ran) << "cut at byte " << size;
}

// 6,000 files in four parts, so that they can run in parallel; 1,000 under sanitizers, where the fuzzers have more.
class FlippedBits : public testing::TestWithParam<unsigned> {};
constexpr unsigned kParts = 4;
constexpr unsigned kFilesOfPart = test::kSanitized ? 250 : 1500;

TEST_P(FlippedBits, GiveAnErrorOrACompletedRun) {
  const std::vector<std::byte> whole = nano();
  ASSERT_LT(whole.size(), 65536U);
  const std::size_t header = GgufFile::from_memory(whole).value()->data_offset();
  auto runtime = Loaded::take(Runtime::create({.threads = 1}));
  unsigned refused = 0;
  unsigned ran = 0;
  for (unsigned seed = GetParam() * kFilesOfPart; seed < (GetParam() + 1) * kFilesOfPart; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<std::byte> bytes = whole;
    // Damages mostly the header, which has the structure; every fourth file anywhere. Half of them by one bit only.
    const std::size_t range = seed % 4 == 0 ? bytes.size() : header;
    const std::uint32_t flips = random() % 2 == 0 ? 1 : 2 + random() % 8;
    for (std::uint32_t flip = 0; flip < flips; ++flip) {
      const std::size_t at = random() % range;
      bytes[at] ^= std::byte{1} << random() % 8;
    }
    static_cast<void>(loads(bytes));
    const Outcome outcome = use(bytes, *runtime, {.context = seed % 8 < 4 ? 0U : 32U});
    (outcome == Outcome::ran ? ran : refused) += 1;
    if (HasFailure()) return;
  }
  // Neither all were harmless nor all refused, so both outcomes were exercised.
  EXPECT_GT(refused, kFilesOfPart / 10);
  EXPECT_GT(ran, kFilesOfPart / 10);
  RecordProperty("ran", static_cast<int>(ran));
}

INSTANTIATE_TEST_SUITE_P(Seeds, FlippedBits, testing::Range(0U, kParts));

// Files whose few bytes demand as much as possible.
TEST(DamagedGguf, MemoryStaysInProportion) {
  constexpr std::uint64_t kMany = 4000000;
  constexpr std::uint32_t kU8 = 0, kU32 = 4, kBool = 7, kString = 8, kArray = 9;
  std::vector<std::pair<std::string, GgufBytes>> files;
  for (const std::uint32_t type : {kU8, kBool, kString}) {
    GgufBytes list(3, 0, 1);
    list.key("k", kArray).number(type).number(kMany).zeros(kMany * (type == kString ? 8 : 1));
    files.emplace_back("array of type " + std::to_string(type), std::move(list));
  }
  GgufBytes keys(3, 0, 16384);
  for (std::uint32_t i = 0; i < 16384; ++i) keys.key("k" + std::to_string(i), kU8).number(std::uint8_t{1});
  files.emplace_back("keys", std::move(keys));
  GgufBytes tensors(3, 262144, 0);
  for (std::uint64_t i = 0; i < 262144; ++i) tensors.tensor("t" + std::to_string(i), {8}, 0, 32 * i);
  tensors.pad(32).zeros(std::size_t{32} * 262144);
  files.emplace_back("tensors", std::move(tensors));
  GgufBytes claims(3, 262144, 16384);
  claims.key("k", kU32).number(1U).zeros(std::size_t{16} << 20);
  files.emplace_back("claims", std::move(claims));
  for (const auto& [name, file] : files) {
    const std::size_t peak = peak_of([&] { (void)loads(file.bytes()); });
    EXPECT_LT(peak, 4 * file.bytes().size() + kFree) << name;
  }
}

}  // namespace
}  // namespace shunt::models
