#include "run/pool/memory_budget.h"

#include <gtest/gtest.h>

#include "shunt/runtime.h"

namespace shunt {
namespace {

MemoryBudget following(std::uint64_t held, std::uint64_t free) {
  MemoryBudget budget(usable_of(held + free), true);
  budget.look(held, free);
  budget.note_plan();
  return budget;
}

TEST(MemoryBudget, FollowsWhatIsFreeOrHeld) {
  MemoryBudget budget = following(0, 1000);
  EXPECT_EQ(budget.bytes(), 950U);
  budget.look(800, 200);
  EXPECT_EQ(budget.bytes(), 950U);
  EXPECT_FALSE(budget.is_short());
  budget.look(800, 100);
  EXPECT_EQ(budget.bytes(), 855U);
  EXPECT_EQ(budget.taken(), 100U);
  EXPECT_EQ(budget.given_back(), 0U);
  EXPECT_FALSE(budget.is_short()) << "what is held stays possible";
  budget.look(800, 5);
  EXPECT_FALSE(budget.is_short());
  budget.look(800, 3);
  EXPECT_TRUE(budget.is_short());
  budget.look(0, 3);
  EXPECT_FALSE(budget.is_short()) << "there is nothing to give up";
}

TEST(MemoryBudget, GivesUpTwiceAsMuchEachTimeWhileMemoryStaysShort) {
  MemoryBudget budget = following(0, 1000);
  std::uint64_t held = 950;
  std::vector<std::uint64_t> all = {held};
  while (held != 0 && all.size() < 20) {
    budget.look(held, 0);
    if (!budget.is_short()) break;
    budget.give_up();
    EXPECT_LT(budget.bytes(), held);
    held = budget.bytes();
    all.push_back(held);
  }
  EXPECT_EQ(held, 0U);
  EXPECT_LE(all.size(), 7U);
  EXPECT_EQ(all[1], 902U) << "only a little at first";
}

TEST(MemoryBudget, HasGrownOnceNotablyMoreIsThereThanPlansWereMadeWith) {
  MemoryBudget budget = following(0, 1000);
  budget.look(500, 500);
  EXPECT_FALSE(budget.has_grown());
  budget.look(500, 540);
  EXPECT_FALSE(budget.has_grown());
  budget.look(500, 600);
  EXPECT_TRUE(budget.has_grown());
  EXPECT_EQ(budget.given_back(), 100U);
  budget.note_plan();
  EXPECT_FALSE(budget.has_grown());
}

TEST(MemoryBudget, IsReducedWhereAllocationsFailAllTheSame) {
  MemoryBudget budget = following(0, 1000);
  EXPECT_TRUE(budget.reduce(2000)) << "others have it";
  EXPECT_EQ(budget.bytes(), 950U);
  EXPECT_FALSE(budget.reduce(800));
  EXPECT_EQ(budget.bytes(), 600U);
  budget.look(600, 400);
  EXPECT_EQ(budget.bytes(), 600U) << "a look does not undo that";
  budget.look(600, 500);
  EXPECT_EQ(budget.bytes(), 1045U) << "more memory does";
}

TEST(MemoryBudget, OfTheUserFollowsNothing) {
  MemoryBudget budget(500, false);
  EXPECT_FALSE(budget.follows());
  EXPECT_FALSE(budget.is_short());
  EXPECT_FALSE(budget.has_grown());
  EXPECT_FALSE(budget.reduce(400));
  EXPECT_EQ(budget.bytes(), 300U);
  EXPECT_FALSE(MemoryBudget(kNoBudget, true).follows()) << "the free memory is unknown";
}

TEST(BudgetsFromText, LeavesOutTheDevicesThatFollowFreeMemory) {
  using Map = std::map<std::string, std::uint64_t>;
  EXPECT_EQ(*budgets_from_text("auto"), Map());
  EXPECT_EQ(*budgets_from_text("a:0=1KiB, b:0=auto, auto"), (Map{{"a:0", 1024}}));
  EXPECT_EQ(*budgets_from_text("a:0=1KiB,a:0=auto"), Map());
  for (const char* text : {"=auto", "automatic", "a:0=auto2", "auto="})
    EXPECT_FALSE(budgets_from_text(text).has_value()) << text;
}

}  // namespace
}  // namespace shunt
