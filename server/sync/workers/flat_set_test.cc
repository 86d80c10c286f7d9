#include "lockstep/server/sync/workers/flat_set.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

TEST(FlatSetTest, KeepsEachElementOnceInOrder) {
  FlatSet<int> set;
  for (const int element : {3, 1, 2, 3, 1}) set.insert(element);
  EXPECT_THAT(set, ElementsAre(1, 2, 3));
  EXPECT_EQ(set.front(), 1);
  EXPECT_TRUE(set.contains(2));
  EXPECT_FALSE(set.contains(0));
  EXPECT_FALSE(set.contains(4));
}

TEST(FlatSetTest, EverySetOfChangesLeavesWhatAStandardSetHas) {
  FlatSet<unsigned> flat;
  std::set<unsigned> standard;
  unsigned number = 1;
  for (int i = 0; i < 2000; ++i) {
    number = number * 1103515245 + 12345;
    const unsigned element = number >> 16 & 31;
    const bool in = (number >> 24 & 1) != 0;
    flat.Set(element, in);
    if (in) {
      standard.insert(element);
    } else {
      standard.erase(element);
    }
    ASSERT_THAT(flat, ElementsAreArray(standard));
  }
  flat.clear();
  EXPECT_TRUE(flat.empty());
}

}  // namespace
}  // namespace lockstep
