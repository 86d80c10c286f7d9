#include "lockstep/server/chief/reads/read_table.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using Choice = ReadTable::Choice;

class ReadTableTest : public ::testing::Test {
 protected:
  ReadTableTest() : table_(Limits()) {}
  static ReadTable::Limits Limits() {
    ReadTable::Limits limits;
    limits.max_reads = 3;
    return limits;
  }
  static absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }
  // Begins a read of the step that Choose returns.
  void Begin(uint64_t id, int64_t current, double seconds) {
    table_.Expire(At(seconds));
    const Choice choice = table_.Choose(current, At(seconds));
    ASSERT_NE(choice, Choice::kFull);
    table_.Begin(id, choice == Choice::kPinned ? *table_.pinned_step() : current, At(seconds));
  }
  absl::Status Use(uint64_t id, double seconds) {
    table_.Expire(At(seconds));
    return table_.Use(id, At(seconds));
  }

  ReadTable table_;
};

TEST_F(ReadTableTest, AReadPinsItsStepUntilItEnds) {
  EXPECT_FALSE(table_.pinned_step().has_value());
  Begin(7, /*current=*/5, 0);
  EXPECT_EQ(table_.pinned_step(), 5);
  EXPECT_TRUE(Use(7, 1).ok());
  EXPECT_TRUE(table_.reads(7));
  table_.End(7);
  EXPECT_FALSE(table_.pinned_step().has_value());
  EXPECT_TRUE(absl::IsAborted(Use(7, 1)));
  EXPECT_FALSE(table_.reads(7));
}

TEST_F(ReadTableTest, ReadsOfTheSameStepShareIt) {
  Begin(1, 5, 0);
  for (double t = 5; t < 60; t += 5) ASSERT_TRUE(Use(1, t).ok());
  Begin(2, 5, 60);
  EXPECT_TRUE(Use(1, 60).ok()) << "the step is still the current one";
  table_.End(1);
  EXPECT_EQ(table_.pinned_step(), 5);
  table_.End(2);
  EXPECT_FALSE(table_.pinned_step().has_value());
}

TEST_F(ReadTableTest, WithinTheGraceAReadJoinsAnOlderStep) {
  Begin(1, 5, 0);
  Begin(2, 9, 1.999);
  EXPECT_EQ(table_.pinned_step(), 5);
  EXPECT_TRUE(Use(1, 1.999).ok());
  EXPECT_TRUE(Use(2, 1.999).ok());
}

TEST_F(ReadTableTest, AfterTheGraceAReadCutsThoseOfAnOlderStep) {
  Begin(1, 5, 0);
  Begin(2, 6, 1.5);
  Begin(3, 9, 2);
  EXPECT_EQ(table_.pinned_step(), 9);
  for (const uint64_t id : {1, 2}) {
    EXPECT_FALSE(table_.reads(id));
    const absl::Status cut = Use(id, 3);
    EXPECT_TRUE(absl::IsResourceExhausted(cut));
    EXPECT_THAT(std::string(cut.message()), HasSubstr("the values of step 5 are gone"));
    EXPECT_TRUE(absl::IsResourceExhausted(Use(id, 3))) << "every time";
  }
  EXPECT_TRUE(Use(3, 3).ok());
}

// The read that cut it began at that moment, so the grace period starts over.
TEST_F(ReadTableTest, ARestartedReadGetsTheGraceAgain) {
  Begin(1, 5, 0);
  Begin(2, 9, 2);
  ASSERT_TRUE(absl::IsResourceExhausted(Use(1, 2.01)));
  Begin(3, 10, 2.01);
  for (double t = 2.1; t < 4; t += 0.1) {
    Begin(100, 20, t);
    table_.End(100);
  }
  EXPECT_TRUE(Use(3, 3.99).ok());
}

TEST_F(ReadTableTest, ASlowReadLastsAsLongAsNoOtherBegins) {
  Begin(1, 5, 0);
  for (double t = 9; t < 1000; t += 9) ASSERT_TRUE(Use(1, t).ok());
}

TEST_F(ReadTableTest, AReadThatIsNotContinuedIsForgotten) {
  Begin(1, 5, 0);
  Begin(2, 5, 1);
  EXPECT_TRUE(Use(1, 9.999).ok());
  EXPECT_TRUE(Use(2, 10.999).ok());
  EXPECT_TRUE(absl::IsAborted(Use(1, 20)));
  EXPECT_EQ(table_.pinned_step(), 5);
  table_.Expire(At(21));
  EXPECT_FALSE(table_.pinned_step().has_value());
  EXPECT_FALSE(table_.Knows(2));
}

TEST_F(ReadTableTest, ACutReadIsForgottenToo) {
  Begin(1, 5, 0);
  Begin(2, 9, 5);
  for (double t = 6; t < 10; ++t) EXPECT_TRUE(absl::IsResourceExhausted(Use(1, t)));
  EXPECT_TRUE(absl::IsAborted(Use(1, 10)));
  EXPECT_EQ(table_.pinned_step(), 9);
}

TEST_F(ReadTableTest, ReadsThatWereCutPinNothing) {
  Begin(1, 5, 0);
  Begin(2, 9, 5);
  table_.End(2);
  EXPECT_FALSE(table_.pinned_step().has_value());
  EXPECT_TRUE(absl::IsResourceExhausted(Use(1, 6)));
}

TEST_F(ReadTableTest, TooManyReadsOfAStepAreRefusedAndNobodyIsCut) {
  for (const uint64_t id : {1, 2, 3}) Begin(id, 5, 0);
  EXPECT_EQ(table_.Choose(5, At(9)), Choice::kFull);
  EXPECT_EQ(table_.Choose(6, At(1)), Choice::kFull);
  EXPECT_EQ(table_.Choose(6, At(2)), Choice::kCurrent) << "they are about to be cut";
  table_.End(2);
  EXPECT_EQ(table_.Choose(5, At(9)), Choice::kPinned);
  Begin(4, 6, 2);
  EXPECT_EQ(table_.Choose(6, At(2)), Choice::kPinned) << "those that were cut do not count";
}

TEST_F(ReadTableTest, NoReadIsNamedZero) {
  EXPECT_TRUE(table_.Knows(0));
  EXPECT_FALSE(table_.Knows(1));
  EXPECT_TRUE(absl::IsAborted(Use(0, 0)));
}

}  // namespace
}  // namespace lockstep
