#include "lockstep/worker/session/block/block_computer.h"

#include <xmmintrin.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/client/testing/fake_chief_client.h"
#include "lockstep/worker/session/testing/tiny_workload.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class DamagedBatches : public BatchSource {
 public:
  const ExampleSpec& spec() const override { return spec_; }
  absl::StatusOr<Batch> Get(int64_t, int64_t) override { return absl::DataLossError("record 7 is damaged"); }

 private:
  ExampleSpec spec_;
};

class BlockComputerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    v1::ModelSpec model = TinyWorkload().model->spec();
    client_.streams = {{}};
    channel_ = client_.OpenStepChannel({}, model).value();
  }
  std::unique_ptr<BlockComputer> New(Workload workload) {
    auto computer = BlockComputer::Create(config::v1::RunSpec(), std::move(workload), &wanted_, &slots_);
    EXPECT_TRUE(computer.ok()) << computer.status();
    return *std::move(computer);
  }
  BlockComputer::Result Compute(Workload workload, int64_t step = 0) {
    return New(std::move(workload))->Compute(FakeChiefClient::Gives(step, 0, 2).assignment, channel_.get());
  }

  FakeChiefClient client_;
  std::unique_ptr<StepChannel> channel_;
  std::atomic<bool> wanted_{true};
  std::atomic<int64_t> slots_{0};
};

TEST_F(BlockComputerTest, SendsTheReportsAndTheSumOfABlock) {
  const BlockComputer::Result result = Compute(TinyWorkload());
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(slots_.load(), 2);
  EXPECT_EQ(client_.calls().reports, 2);
  EXPECT_EQ(client_.calls().gradients, 1);
  EXPECT_EQ(client_.calls().await_token, 0) << "the end is the caller's";
}

TEST_F(BlockComputerTest, AnInputThatFailsIsTheWorkersOwnError) {
  Workload workload = TinyWorkload();
  workload.batches = std::make_unique<DamagedBatches>();
  const BlockComputer::Result result = Compute(std::move(workload));
  EXPECT_TRUE(absl::IsDataLoss(result.status));
  EXPECT_TRUE(result.own);
  EXPECT_EQ(client_.calls().ends_of_input, 0);
}

TEST_F(BlockComputerTest, AnInputThatEndsIsSaidInPlaceOfTheContribution) {
  const BlockComputer::Result result = Compute(TinyWorkload(nullptr, nullptr, /*input_end=*/3), /*step=*/3);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(client_.calls().ends_of_input, 1);
  EXPECT_EQ(client_.calls().reports, 0);
  EXPECT_EQ(client_.calls().gradients, 0);
}

// A model that determines its input from the slot's key. The input ends at step `end`.
class KeyedModel : public TinyModel {
 public:
  explicit KeyedModel(int64_t end) : TinyModel(nullptr, nullptr), end_(end) {}
  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override {
    EXPECT_EQ(batch.size, 0);
    if (key.step >= end_) return absl::OutOfRangeError("the input has ended");
    return TinyModel::ComputeGradients(values, batch, key, sink);
  }

 private:
  const int64_t end_;
};

TEST_F(BlockComputerTest, AModelMayFindItsInputByTheSlotsKey) {
  for (const int64_t step : {2, 3}) {
    Workload workload;
    workload.model = std::make_unique<KeyedModel>(3);
    EXPECT_TRUE(Compute(std::move(workload), step).status.ok());
  }
  EXPECT_EQ(client_.calls().reports, 2);
  EXPECT_EQ(client_.calls().ends_of_input, 1);
}

TEST_F(BlockComputerTest, GivesUpAnUnwantedBlockBeforeSending) {
  const BlockComputer::Result result = Compute(TinyWorkload([this] { wanted_ = false; }));
  EXPECT_TRUE(absl::IsCancelled(result.status));
  EXPECT_FALSE(result.own);
  EXPECT_EQ(slots_.load(), 0);
  EXPECT_EQ(client_.calls().reports, 0);
}

TEST_F(BlockComputerTest, AChangedFloatingPointModeStopsBlocks) {
  const unsigned mode = _mm_getcsr();
  const auto computer = New(TinyWorkload([mode] { _mm_setcsr(mode | 0x8000); }));
  EXPECT_TRUE(computer->Compute(FakeChiefClient::Gives(0, 0, 1).assignment, channel_.get()).status.ok());
  const BlockComputer::Result result = computer->Compute(FakeChiefClient::Gives(1, 0, 1).assignment, channel_.get());
  _mm_setcsr(mode);
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status)) << result.status;
  EXPECT_TRUE(result.own);
  EXPECT_EQ(slots_.load(), 1);
}

TEST_F(BlockComputerTest, RefusesAConfigurationThatDoesNotFitTheModel) {
  config::v1::RunSpec config;
  config.mutable_optimizer()->add_multipliers()->set_variables("no_such_variable");
  const auto computer = BlockComputer::Create(config, TinyWorkload(), &wanted_, &slots_);
  EXPECT_TRUE(absl::IsInvalidArgument(computer.status()));
  EXPECT_THAT(std::string(computer.status().message()), HasSubstr("no_such_variable"));
}

// A batch source that records which batches are read.
class NotedBatches : public EmptyBatches {
 public:
  explicit NotedBatches(std::vector<std::pair<int64_t, int64_t>>* read) : EmptyBatches(0), read_(*read) {}
  absl::StatusOr<Batch> Get(int64_t step, int64_t slot) override {
    read_.emplace_back(step, slot);
    return EmptyBatches::Get(step, slot);
  }

 private:
  std::vector<std::pair<int64_t, int64_t>>& read_;
};

TEST_F(BlockComputerTest, AStreamTokenNamesTheBatch) {
  std::vector<std::pair<int64_t, int64_t>> read;
  Workload workload = TinyWorkload();
  workload.batches = std::make_unique<NotedBatches>(&read);
  auto given = FakeChiefClient::Gives(7, 0, 1).assignment;
  given.token.set_stream(2);
  given.token.set_position(40);
  EXPECT_TRUE(New(std::move(workload))->Compute(given, channel_.get()).status.ok());
  EXPECT_THAT(read, ElementsAre(Pair(40, 2)));
}

class RecordedHints : public EmptyBatches {
 public:
  RecordedHints() : EmptyBatches(0) {}
  void Prefetch(int64_t step, int64_t slot) override { hints.emplace_back(step, slot); }
  std::vector<std::pair<int64_t, int64_t>> hints;
};

TEST(PrefetchFollowingTest, HintsAtTheNextThreeBatchesOfTheBlock) {
  v1::Token token;
  token.set_step(7);
  token.set_first_slot(4);
  token.set_slot_count(2);
  RecordedHints batches;
  PrefetchFollowing(token, 4, &batches);
  PrefetchFollowing(token, 5, &batches);
  token.set_slot_count(1);
  PrefetchFollowing(token, 4, &batches);
  const std::vector<std::pair<int64_t, int64_t>> expected = {{7, 5}, {8, 4}, {8, 5}, {8, 4}, {8, 5},
                                                             {9, 4}, {8, 4}, {9, 4}, {10, 4}};
  EXPECT_EQ(batches.hints, expected);
}

TEST(PrefetchFollowingTest, HintsAtTheNextThreeBatchesOfAStream) {
  v1::Token token;
  token.set_step(7);
  token.set_slot_count(1);
  token.set_stream(2);
  token.set_position(40);
  RecordedHints batches;
  PrefetchFollowing(token, 0, &batches);
  EXPECT_THAT(batches.hints, ElementsAre(Pair(41, 2), Pair(42, 2), Pair(43, 2)));
}

TEST(PrefetchFollowingTest, AnExtraBlockDisplacesNothing) {
  v1::Token token;
  token.set_step(7);
  token.set_first_slot(4);
  token.set_slot_count(2);
  token.set_extra(true);
  RecordedHints batches;
  PrefetchFollowing(token, 4, &batches);
  EXPECT_TRUE(batches.hints.empty());
}

}  // namespace
}  // namespace lockstep
