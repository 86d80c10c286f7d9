#include "lockstep/server/sync/arrivals/arrival_log.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/server/sync/arrivals/recorded_order.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kLogdir[] = "/run";
constexpr char kRun[] = "0123456789abcdef";

class ArrivalLogTest : public ::testing::Test {
 protected:
  ArrivalLogTest() { EXPECT_TRUE(memory_.CreateDirectory(kLogdir).ok()); }

  ArrivalLog::Options OptionsOf(int64_t generation, int64_t step) {
    ArrivalLog::Options options;
    options.fs = &fs_;
    options.clock = &clock_;
    options.logdir = kLogdir;
    options.header.set_run_id(kRun);
    options.header.set_generation(generation);
    options.header.set_step(step);
    options.period = absl::ZeroDuration();
    return options;
  }
  // Starts the file of another incarnation, which continues the run at `step`.
  void Start(int64_t step) {
    log_.reset();
    auto log = ArrivalLog::Create(OptionsOf(++generation_, step));
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
  }
  void Append(int64_t step, int64_t slot, int64_t position) {
    v1::Arrival arrival;
    arrival.set_step(step);
    arrival.set_slot(slot);
    arrival.set_position(position);
    log_->Append(arrival);
  }
  absl::StatusOr<RecordedOrder> Read() { return RecordedOrder::Read(&fs_, kLogdir, kRun, 0, 1000); }
  // Returns the input positions of a step's contributions, in order; empty if fewer than `least` are on record.
  std::vector<int64_t> PositionsOf(int64_t step, int64_t least = 1) {
    const auto order = Read();
    EXPECT_TRUE(order.ok()) << order.status();
    const auto arrivals = order->ArrivalsOf(step, least);
    std::vector<int64_t> positions;
    if (!arrivals.ok()) {
      EXPECT_TRUE(absl::IsNotFound(arrivals.status()));
      return positions;
    }
    for (const v1::Arrival& arrival : *arrivals) positions.push_back(arrival.position());
    return positions;
  }

  SimulatedClock clock_;
  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
  int64_t generation_ = 0;
  std::unique_ptr<ArrivalLog> log_;
};

TEST_F(ArrivalLogTest, ReaderGetsTheOrder) {
  Start(0);
  Append(1, 0, 7);
  Append(1, 1, 3);
  Append(2, 0, 8);
  ASSERT_TRUE(log_->Sync().ok());
  EXPECT_THAT(PositionsOf(1, 2), ElementsAre(7, 3));
  EXPECT_THAT(PositionsOf(2), ElementsAre(8));
  EXPECT_THAT(PositionsOf(2, /*least=*/2), ElementsAre()) << "the step is not complete";
  EXPECT_THAT(PositionsOf(3), ElementsAre());
}

TEST_F(ArrivalLogTest, SyncSurvivesAPowerFailure) {
  Start(0);
  Append(1, 0, 7);
  ASSERT_TRUE(log_->Sync().ok());
  Append(2, 0, 8);
  memory_.DropUnsyncedData();
  EXPECT_THAT(PositionsOf(1), ElementsAre(7));
  EXPECT_THAT(PositionsOf(2), ElementsAre());
}

TEST_F(ArrivalLogTest, RestartVoidsLaterSteps) {
  Start(0);
  for (int64_t step = 1; step <= 5; ++step) Append(step, 0, step);
  Start(3);
  Append(4, 0, 40);
  ASSERT_TRUE(log_->Sync().ok());
  EXPECT_THAT(PositionsOf(3), ElementsAre(3));
  EXPECT_THAT(PositionsOf(4), ElementsAre(40));
  EXPECT_THAT(PositionsOf(5), ElementsAre()) << "of the chief that was killed";
}

TEST_F(ArrivalLogTest, ChiefWithoutRecordVoidsSteps) {
  Start(0);
  for (int64_t step = 1; step <= 5; ++step) Append(step, 0, step);
  Start(3);  // records nothing
  Start(4);
  Append(5, 0, 50);
  ASSERT_TRUE(log_->Sync().ok());
  EXPECT_THAT(PositionsOf(4), ElementsAre());
  EXPECT_THAT(PositionsOf(5), ElementsAre(50));
  EXPECT_TRUE(ArrivalLog::HasFiles(&fs_, kLogdir).value());
}

TEST_F(ArrivalLogTest, StepThatBeginsAgainReplacesIts) {
  Start(0);
  Append(1, 0, 7);
  Append(1, 1, 3);
  Append(1, 0, 3);
  Append(1, 1, 9);
  ASSERT_TRUE(log_->Sync().ok());
  EXPECT_THAT(PositionsOf(1), ElementsAre(3, 9));
}

TEST_F(ArrivalLogTest, TornTailEndsTheRecord) {
  Start(0);
  Append(1, 0, 7);
  ASSERT_TRUE(log_->Sync().ok());
  const std::string path = ArrivalFile(kLogdir, 1);
  const uint64_t whole = memory_.NewRandomAccessFile(path).value()->size();
  Append(2, 0, 8);
  log_.reset();
  const uint64_t size = memory_.NewRandomAccessFile(path).value()->size();
  for (uint64_t cut = size - 1; cut >= whole; --cut) {
    memory_.Truncate(path, cut);
    EXPECT_THAT(PositionsOf(1), ElementsAre(7)) << cut;
    EXPECT_THAT(PositionsOf(2), ElementsAre()) << cut;
  }
}

TEST_F(ArrivalLogTest, EveryFlippedByteIsFound) {
  Start(0);
  Append(1, 0, 7);
  ASSERT_TRUE(log_->Sync().ok());
  const std::string path = ArrivalFile(kLogdir, 1);
  const uint64_t whole = memory_.NewRandomAccessFile(path).value()->size();
  Append(2, 0, 8);
  log_.reset();
  const uint64_t size = memory_.NewRandomAccessFile(path).value()->size();
  for (uint64_t at = 0; at < size; ++at) {
    memory_.FlipBits(path, at, 0x10);
    const auto order = Read();
    if (order.ok()) {
      EXPECT_GE(at, whole - 30) << "the header";
      const auto second = order->ArrivalsOf(2, 1);
      EXPECT_TRUE(absl::IsNotFound(second.status())) << at;
      EXPECT_THAT(second.status().message(), HasSubstr(path)) << "names the damaged file";
    } else {
      EXPECT_TRUE(absl::IsDataLoss(order.status())) << at << ": " << order.status();
    }
    memory_.FlipBits(path, at, 0x10);
  }
  EXPECT_THAT(PositionsOf(2), ElementsAre(8));
}

TEST_F(ArrivalLogTest, ForeignFilesAreNamed) {
  ASSERT_TRUE(WriteFileAtomically(&memory_, "/run/arrivals-1", "<!DOCTYPE html><html></html>").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Read().status()));
  EXPECT_THAT(Read().status().message(), HasSubstr("/run/arrivals-1 is not an order of arrival"));
  const auto log = ArrivalLog::Create(OptionsOf(1, 0));
  EXPECT_TRUE(absl::IsAlreadyExists(log.status())) << log.status();
  ASSERT_TRUE(memory_.Remove("/run/arrivals-1").ok());
  Start(0);
  EXPECT_THAT(RecordedOrder::Read(&fs_, kLogdir, "fedcba9876543210", 0, 9).status().message(),
              HasSubstr("is of run 0123456789abcdef, and the logdir of run fedcba9876543210"));
}

TEST_F(ArrivalLogTest, FailedCreationLeavesNoFile) {
  fs_.FillDiskAfter(0);
  EXPECT_TRUE(absl::IsResourceExhausted(ArrivalLog::Create(OptionsOf(1, 0)).status()));
  fs_.Heal();
  EXPECT_FALSE(ArrivalLog::HasFiles(&fs_, kLogdir).value());
  Start(0);
}

// FencedFiles does not show a file until it has been renamed.
TEST_F(ArrivalLogTest, FileAppearsByARename) {
  fs_.FailMatching(FaultyFileSystem::Operation::kRename, "arrivals-1", absl::InternalError("Input/output error"));
  EXPECT_TRUE(absl::IsInternal(ArrivalLog::Create(OptionsOf(1, 0)).status()));
  fs_.Heal();
  EXPECT_THAT(memory_.ListDirectory(kLogdir).value(), ElementsAre());
  Start(0);
  EXPECT_THAT(memory_.ListDirectory(kLogdir).value(), ElementsAre("arrivals-1"));
}

TEST_F(ArrivalLogTest, FullDiskLosesNothing) {
  Start(0);
  Append(1, 0, 7);
  fs_.FillDiskAfter(0);
  EXPECT_TRUE(absl::IsResourceExhausted(log_->Sync()));
  Append(2, 0, 8);
  fs_.Heal();
  ASSERT_TRUE(log_->Sync().ok());
  EXPECT_THAT(PositionsOf(1), ElementsAre(7));
  EXPECT_THAT(PositionsOf(2), ElementsAre(8));
}

}  // namespace
}  // namespace lockstep
