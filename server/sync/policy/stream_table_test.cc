#include "lockstep/server/sync/policy/stream_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

MATCHER_P2(IsBatch, position, stream, "") { return arg.position == position && arg.stream == stream; }

TEST(StreamTableTest, EachSessionReadsAStreamOfItsOwn) {
  StreamTable streams;
  EXPECT_THAT(streams.Attach(7), IsBatch(0, 0));
  EXPECT_THAT(streams.Attach(5), IsBatch(0, 1));
  streams.Advance({0, 0});
  EXPECT_THAT(streams.Attach(7), IsBatch(1, 0));
  EXPECT_THAT(streams.positions(), ElementsAre(1, 0));
}

TEST(StreamTableTest, AStreamIsContinuedByAnotherSession) {
  StreamTable streams;
  streams.Attach(1);
  streams.Attach(2);
  streams.Advance({0, 0});
  streams.Detach(1);
  streams.Detach(1);
  EXPECT_THAT(streams.Attach(3), IsBatch(1, 0));
  EXPECT_THAT(streams.Attach(1), IsBatch(0, 2)) << "it has lost its stream";
}

TEST(StreamTableTest, ABatchIsTakenOnce) {
  StreamTable streams;
  streams.Attach(1);
  EXPECT_TRUE(streams.IsNext({0, 0}));
  streams.Advance({0, 0});
  EXPECT_FALSE(streams.IsNext({0, 0}));
  streams.Advance({0, 0});
  EXPECT_THAT(streams.positions(), ElementsAre(1)) << "a retry";
  EXPECT_FALSE(streams.IsNext({1, 0})) << "no session has read that stream";
}

TEST(StreamTableTest, BatchesOfAStepThatIsGivenUpComeAgain) {
  StreamTable streams({3});
  streams.Attach(1);
  streams.Attach(2);
  streams.Advance({0, 3});
  streams.Advance({1, 0});
  streams.Restore({3});
  EXPECT_THAT(streams.positions(), ElementsAre(3, 0));
  EXPECT_THAT(streams.Attach(2), IsBatch(0, 1));
}

TEST(StreamTableTest, ACheckpointContinuesEveryStream) {
  StreamTable streams({3, 0, 5});
  EXPECT_THAT(streams.Attach(9), IsBatch(3, 0));
  EXPECT_THAT(streams.Attach(8), IsBatch(0, 1));
  EXPECT_THAT(streams.positions(), ElementsAre(3, 0, 5));
}

}  // namespace
}  // namespace lockstep
