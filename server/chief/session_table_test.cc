#include "lockstep/server/chief/session_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Outcome = SessionTable::Outcome;

constexpr int64_t kGeneration = 3;

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(seconds); }

class SessionTableTest : public ::testing::Test {
 protected:
  static SessionTable::Limits Limits() {
    SessionTable::Limits limits;
    limits.max_sessions = 3;
    limits.expiry = absl::Seconds(60);
    return limits;
  }
  void Add(uint64_t id, int64_t seconds) {
    ASSERT_EQ(table_.Open("worker", /*incarnation=*/id, id, At(seconds)).outcome, Outcome::kAdded);
  }

  SessionTable table_{kGeneration, Limits()};
};

TEST_F(SessionTableTest, AWorkersIncarnationHasOneSession) {
  EXPECT_EQ(table_.Open("a", 1, 10, At(0)).id, 10u);
  EXPECT_EQ(table_.ChangesOf(10), 0);
  const SessionTable::Opened again = table_.Open("a", 1, 11, At(1), /*changes=*/3);
  EXPECT_EQ(table_.ChangesOf(10), 3);
  EXPECT_EQ(again.outcome, Outcome::kFound);
  EXPECT_EQ(again.id, 10u);
  EXPECT_EQ(table_.Open("a", 2, 11, At(2)).outcome, Outcome::kAdded);
  EXPECT_EQ(table_.Open("b", 1, 12, At(2)).outcome, Outcome::kAdded);
  EXPECT_EQ(table_.size(), 3u);
  EXPECT_EQ(table_.WorkerOf(12).name, "b");
}

TEST_F(SessionTableTest, AnIdIsGivenOnceAndIsNever0) {
  Add(10, 0);
  EXPECT_EQ(table_.Open("b", 1, 10, At(0)).outcome, Outcome::kIdTaken);
  EXPECT_EQ(table_.Open("b", 1, 0, At(0)).outcome, Outcome::kIdTaken);
  EXPECT_EQ(table_.size(), 1u);
}

TEST_F(SessionTableTest, AFullTableTakesKnownWorkersAlone) {
  for (uint64_t id = 1; id <= 3; ++id) Add(id, 0);
  EXPECT_EQ(table_.Open("b", 1, 4, At(1)).outcome, Outcome::kFull);
  EXPECT_EQ(table_.Open("worker", 2, 4, At(1)).outcome, Outcome::kFound);
  EXPECT_TRUE(table_.Remove(1));
  EXPECT_EQ(table_.Open("b", 1, 4, At(1)).outcome, Outcome::kAdded);
}

// Tests the row "unknown" of the table in the class comment.
TEST_F(SessionTableTest, AnUnknownSessionMayOnlyBeOpened) {
  EXPECT_TRUE(absl::IsAborted(table_.Use(10, kGeneration, At(0))));
  EXPECT_TRUE(absl::IsAborted(table_.MarkStreamed(10, kGeneration, At(0))));
  EXPECT_FALSE(table_.Remove(10));
  EXPECT_EQ(table_.size(), 0u);
  EXPECT_EQ(table_.WorkerOf(10).name, "");
}

TEST_F(SessionTableTest, ASessionThatWasRemovedIsUnknown) {
  Add(10, 0);
  EXPECT_TRUE(table_.Remove(10));
  EXPECT_TRUE(absl::IsAborted(table_.Use(10, kGeneration, At(0))));
  EXPECT_EQ(table_.Open("worker", 10, 11, At(0)).outcome, Outcome::kAdded);
}

TEST_F(SessionTableTest, AnotherGenerationIsAbortedUnused) {
  Add(10, 0);
  for (const int64_t generation : {kGeneration - 1, kGeneration + 1}) {
    EXPECT_TRUE(absl::IsAborted(table_.MarkStreamed(10, generation, At(61))));
    EXPECT_TRUE(absl::IsAborted(table_.Use(10, generation, At(61))));
  }
  EXPECT_EQ(table_.Use(10, 2, At(61)).message(), "session 10 of generation 2 is unknown; the chief's generation is 3");
  EXPECT_FALSE(table_.AllHaveStreamed());
  EXPECT_THAT(table_.Idle(At(61)), ElementsAre(10));
}

TEST_F(SessionTableTest, ASessionIsIdleAfterItsExpiryAndNotBefore) {
  Add(1, 0);
  Add(2, 10);
  EXPECT_THAT(table_.Idle(At(60)), IsEmpty());
  EXPECT_THAT(table_.Idle(At(61)), ElementsAre(1));
  EXPECT_THAT(table_.Idle(At(71)), ElementsAre(1, 2));
  EXPECT_EQ(table_.size(), 2u);
}

TEST_F(SessionTableTest, EveryUseKeepsASession) {
  for (uint64_t id = 1; id <= 3; ++id) Add(id, 0);
  EXPECT_TRUE(table_.Use(1, kGeneration, At(50)).ok());
  EXPECT_TRUE(table_.MarkStreamed(2, kGeneration, At(50)).ok());
  EXPECT_EQ(table_.Open("worker", 3, 9, At(50)).outcome, Outcome::kFound);
  EXPECT_THAT(table_.Idle(At(110)), IsEmpty());
}

TEST_F(SessionTableTest, AStreamedSessionIsIdleToo) {
  Add(1, 0);
  ASSERT_TRUE(table_.MarkStreamed(1, kGeneration, At(0)).ok());
  EXPECT_THAT(table_.Idle(At(61)), ElementsAre(1));
}

TEST_F(SessionTableTest, ListsTheLeastRecentlyUsedFirst) {
  Add(1, 0);
  Add(2, 1);
  Add(3, 2);
  ASSERT_TRUE(table_.Use(1, kGeneration, At(3)).ok());
  EXPECT_THAT(table_.OldestFirst(), ElementsAre(2, 3, 1));
}

TEST_F(SessionTableTest, KnowsWhetherEverySessionHasHadAStream) {
  EXPECT_FALSE(table_.AllHaveStreamed());
  Add(1, 0);
  Add(2, 0);
  EXPECT_TRUE(table_.MarkStreamed(1, kGeneration, At(0)).ok());
  EXPECT_FALSE(table_.AllHaveStreamed());
  EXPECT_TRUE(table_.MarkStreamed(2, kGeneration, At(0)).ok());
  EXPECT_TRUE(table_.MarkStreamed(2, kGeneration, At(0)).ok());
  EXPECT_TRUE(table_.AllHaveStreamed());
  Add(3, 0);
  EXPECT_FALSE(table_.AllHaveStreamed());
}

TEST_F(SessionTableTest, OpeningAStreamedSessionAgainLeavesItStreamed) {
  Add(1, 0);
  ASSERT_TRUE(table_.MarkStreamed(1, kGeneration, At(0)).ok());
  ASSERT_EQ(table_.Open("worker", 1, 2, At(1)).outcome, Outcome::kFound);
  EXPECT_TRUE(table_.AllHaveStreamed());
}

}  // namespace
}  // namespace lockstep
