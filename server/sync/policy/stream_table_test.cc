#include "lockstep/server/sync/policy/stream_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

MATCHER_P2(IsBatch, position, stream, "") {
  return arg.has_value() && arg->position == position && arg->stream == stream;
}

TEST(StreamTableTest, EachSessionReadsAStreamOfItsOwn) {
  StreamTable streams;
  EXPECT_THAT(streams.Attach(7), IsBatch(0, 0));
  EXPECT_THAT(streams.Attach(5), IsBatch(0, 1));
  streams.Advance({0, 0});
  EXPECT_THAT(streams.Attach(7), IsBatch(1, 0));
  EXPECT_TRUE(streams.Reads(5, 1));
  EXPECT_FALSE(streams.Reads(5, 0) || streams.Reads(9, 0));
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
  EXPECT_THAT(streams.Attach(1), IsBatch(1, 0)) << "a retry";
  EXPECT_FALSE(streams.IsNext({1, 0})) << "no session has read that stream";
}

TEST(StreamTableTest, PositionsAreThoseOfTheLastCommit) {
  StreamTable streams({3});
  streams.Attach(1);
  streams.Attach(2);
  streams.Advance({0, 3});
  EXPECT_THAT(streams.positions(), ElementsAre(3));
  streams.Commit();
  EXPECT_THAT(streams.positions(), ElementsAre(4, 0));
}

TEST(StreamTableTest, UncommittedBatchesComeAgain) {
  StreamTable streams({3});
  streams.Attach(1);
  streams.Attach(2);
  streams.Advance({0, 3});
  streams.Commit();
  streams.Advance({0, 4});
  streams.Advance({0, 5});
  streams.Advance({1, 0});
  streams.Rollback();
  EXPECT_THAT(streams.Attach(1), IsBatch(4, 0));
  EXPECT_THAT(streams.Attach(2), IsBatch(0, 1));
}

TEST(StreamTableTest, RollbackReopensAnEndedStream) {
  StreamTable streams;
  streams.Attach(1);
  streams.Advance({0, 0});
  streams.Commit();
  streams.Advance({0, 1});
  streams.End(1);
  streams.Rollback();
  EXPECT_FALSE(streams.all_ended());
  EXPECT_THAT(streams.Attach(1), IsBatch(1, 0)) << "the step that had the batch was given up";
  EXPECT_THAT(streams.Attach(2), IsBatch(0, 1)) << "no stream has ended, so a new one may begin";
}

TEST(StreamTableTest, RollbackKeepsTheEndOfACommittedStream) {
  StreamTable streams;
  for (const uint64_t session : {1, 2}) streams.Attach(session);
  streams.Advance({0, 0});
  streams.Commit();
  streams.End(1);
  streams.Advance({1, 0});
  streams.Rollback();
  EXPECT_THAT(streams.Attach(2), IsBatch(0, 1));
  EXPECT_FALSE(streams.Attach(1).has_value()) << "every batch of its stream is in the values";
}

TEST(StreamTableTest, ACheckpointContinuesEveryStream) {
  StreamTable streams({3, 0, 5});
  EXPECT_THAT(streams.Attach(9), IsBatch(3, 0));
  EXPECT_THAT(streams.Attach(8), IsBatch(0, 1));
  EXPECT_THAT(streams.positions(), ElementsAre(3, 0, 5));
}

TEST(StreamTableTest, AStreamThatHasEndedIsNotReadAgain) {
  StreamTable streams;
  EXPECT_FALSE(streams.all_ended());
  for (const uint64_t session : {1, 2}) streams.Attach(session);
  streams.Detach(2);
  streams.End(1);
  EXPECT_FALSE(streams.all_ended()) << "nobody has read the other one to its end";
  EXPECT_THAT(streams.Attach(1), IsBatch(0, 1)) << "it takes over the stream that no session reads";
  EXPECT_FALSE(streams.Attach(2).has_value()) << "a new stream would make the input longer";
  streams.End(1);
  EXPECT_TRUE(streams.all_ended());
  EXPECT_THAT(streams.positions(), IsEmpty());
}

}  // namespace
}  // namespace lockstep
