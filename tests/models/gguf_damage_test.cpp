// Damaged files: an error or a model that runs, never a crash, and no more memory than the file warrants.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <random>

#include "models/gguf_bytes.h"
#include "models/random_model.h"
#include "models/reference.h"
#include "models/summary.h"

namespace {

std::atomic<std::size_t> live_bytes{0};
std::atomic<std::size_t> peak_bytes{0};

}  // namespace

// Counts what the program allocates.
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

// Opens the bytes as a model and forgets it; whether that worked.
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

void expect_runs(std::span<const std::byte> bytes, const Runtime& runtime) {
  auto model = Model::from_memory(bytes);
  ASSERT_TRUE(model.has_value());
  auto session = Session::create(**model, runtime, {.context = 32});
  if (!session) {
    EXPECT_FALSE(session.error().message.empty());
    return;
  }
  const Token tokens[] = {1, 70, 80};
  const Status done = (*session)->append(0, tokens);
  EXPECT_TRUE(done.has_value() || !done.error().message.empty());
}

// Runs `body` and gives the most memory that it had at a time.
template <class Body>
std::size_t peak_of(Body body) {
  const std::size_t before = live_bytes.load();
  peak_bytes.store(before);
  body();
  return peak_bytes.load() - before;
}

TEST(DamagedGguf, CutAtEveryByteIsAnError) {
  const std::vector<std::byte> whole = nano();
  ASSERT_LT(whole.size(), 65536U);
  ASSERT_TRUE(loads(whole));
  // The padding behind the last tensor carries nothing.
  auto file = GgufFile::from_memory(whole);
  ASSERT_TRUE(file.has_value());
  const std::size_t last = (*file)->weights().size() - 1;
  const auto end = static_cast<std::size_t>((*file)->mapped(last).data() - whole.data()) + (*file)->mapped(last).size();
  for (std::size_t size = 0; size < end; ++size) {
    auto cut = GgufFile::from_memory(std::span(whole).first(size));
    ASSERT_FALSE(cut.has_value()) << "cut at byte " << size;
    ASSERT_EQ(cut.error().code, Code::invalid) << "cut at byte " << size;
  }
}

TEST(DamagedGguf, FlippedBitsGiveAnErrorOrAModelThatRuns) {
  constexpr unsigned kFiles = 10000;
  constexpr int kRuns = 200;
  const std::vector<std::byte> whole = nano();
  const std::size_t header = GgufFile::from_memory(whole).value()->data_offset();
  auto runtime = Loaded::take(Runtime::create({.threads = 1, .devices = "cpu:simd,cpu:scalar"}));
  int runs = 0;
  int errors = 0;
  for (unsigned seed = 0; seed < kFiles; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<std::byte> bytes = whole;
    // Mostly in the header, where the structure is; every tenth file anywhere.
    const std::size_t range = seed % 10 == 0 ? bytes.size() : header;
    for (unsigned flip = 0; flip <= random() % 8; ++flip) bytes[random() % range] ^= std::byte{1} << random() % 8;
    bool loaded = false;
    const std::size_t peak = peak_of([&] { loaded = loads(bytes); });
    ASSERT_LT(peak, 4 * bytes.size() + kFree);
    if (!loaded) ++errors;
    if (loaded && runs++ < kRuns) expect_runs(bytes, *runtime);
    if (HasFailure()) return;
  }
  EXPECT_GT(errors, 1000);
  EXPECT_GT(runs, kRuns);
}

// Files that say as much as they can with few bytes.
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
