#include "lockstep/server/sync/delivery/estimate_sender.h"

#include <memory>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/client/values/held_estimates.h"
#include "lockstep/server/ps/variable_store.h"

namespace lockstep {
namespace {

constexpr int64_t kSlots = 4;

// Variable "a" has two segments, and "fixed" is not trained.
class EstimateSenderTest : public ::testing::Test {
 protected:
  EstimateSenderTest() {
    v1::ModelSpec model;
    config::v1::OptimizerConfig optimizer;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      variables { name: "a" dtype: DT_FLOAT shape: 65540 trainable: true }
      variables { name: "fixed" dtype: DT_FLOAT shape: 3 }
      variables { name: "b" dtype: DT_FLOAT shape: 5 trainable: true }
    )",
                                                              &model));
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("sgd {} learning_rate { initial: 1 }", &optimizer));
    Compression compression;
    compression.top_k = 0.5;
    store_ = VariableStore::Create(model, optimizer, compression, kSlots).value();
    store_->Initialize(1);
    held_ = std::make_unique<HeldEstimates>(&store_->layout(), kSlots);
  }

  // Performs one step, in which element 0 of each segment of slot j's estimate grows by j + 1.
  void Step() {
    store_->BeginUpdate();
    for (size_t s = 0; s < store_->layout().segments().size(); ++s) {
      const auto& segment = store_->layout().segments()[s];
      if (!store_->layout().variables()[segment.variable].spec.trainable()) continue;
      for (int64_t slot = 0; slot < kSlots; ++slot) {
        std::string bytes(2, '\0');
        const auto difference = static_cast<float>(slot + 1);
        bytes.append(reinterpret_cast<const char*>(&difference), sizeof(difference));
        const float* sum = store_->AddToEstimate(static_cast<int>(s), slot, bytes);
        if (slot == 0) store_->ApplySegment(static_cast<int>(s), sum, 1);
      }
    }
    store_->CommitUpdate(std::vector<std::vector<std::vector<float>>>(kSlots));
  }

  // Calls Feed until a token may follow. Returns the number of pieces sent.
  int Feed(const SlotBlock& block) {
    int pieces = 0;
    for (bool done = false; !done;) {
      StepReplyFrame reply;
      done = feed_.Feed(store_->layout(), store_->step(), store_->estimates(), block, &reply);
      EXPECT_TRUE(done || !reply.estimates.empty());
      for (const StepPiece& piece : reply.estimates) {
        EXPECT_TRUE(held_->Receive(reply.estimates_step, piece).ok());
        ++pieces;
      }
    }
    return pieces;
  }
  // Makes the worker compute the block with the estimates that it holds, and expects them to be correct.
  void Compute(const SlotBlock& block) {
    const auto estimates = held_->Take(store_->step(), block);
    ASSERT_TRUE(estimates.ok()) << estimates.status();
    for (int64_t i = 0; i < block.count; ++i) {
      const int64_t slot = block.first + i;
      for (const auto& segment : store_->layout().segments()) {
        if (!store_->layout().variables()[segment.variable].spec.trainable()) continue;
        float* const estimate = (*estimates)[i] + segment.flat_offset;
        const auto expected = static_cast<float>(store_->step() * (slot + 1));
        EXPECT_EQ(estimate[0], expected) << "slot " << slot;
        EXPECT_EQ(estimate[segment.elements - 1], 0) << "slot " << slot;
        estimate[0] += static_cast<float>(slot + 1);
      }
    }
    held_->Advance();
    feed_.Advance(store_->step(), block);
  }

  std::unique_ptr<VariableStore> store_;
  std::unique_ptr<HeldEstimates> held_;
  EstimateSender feed_;
};

TEST_F(EstimateSenderTest, AWorkerThatKeepsItsBlockIsSentNothing) {
  for (int step = 0; step < 4; ++step) {
    EXPECT_EQ(Feed({0, 2}), 0);
    Compute({0, 2});
    Step();
  }
}

TEST_F(EstimateSenderTest, OnlyTheSlotsThatAreMissingAreSent) {
  Step();
  EXPECT_EQ(Feed({2, 2}), 6) << "two slots of three segments";
  Compute({2, 2});
  Step();
  EXPECT_EQ(Feed({0, 4}), 6);
  Compute({0, 4});
  Step();
  EXPECT_EQ(Feed({1, 1}), 0);
  Compute({1, 1});
  Step();
  EXPECT_EQ(Feed({0, 2}), 3) << "slot 0 was forgotten with the token before";
  Compute({0, 2});
}

TEST_F(EstimateSenderTest, AWorkerThatMissedAStepIsSentEverything) {
  Feed({0, 1});
  Compute({0, 1});
  Step();
  Step();
  EXPECT_EQ(Feed({0, 1}), 3);
  Compute({0, 1});
}

TEST_F(EstimateSenderTest, BoundsFramesAndAllowsVoidingBetween) {
  Step();
  EstimateSender small(70000);
  StepReplyFrame reply;
  EXPECT_FALSE(small.Feed(store_->layout(), store_->step(), store_->estimates(), {0, 2}, &reply));
  EXPECT_EQ(reply.estimates.size(), 3u);
  for (const StepPiece& piece : reply.estimates) ASSERT_TRUE(held_->Receive(1, piece).ok());
  Step();
  for (const size_t pieces : {3, 3}) {
    reply = StepReplyFrame();
    EXPECT_EQ(small.Feed(store_->layout(), store_->step(), store_->estimates(), {0, 2}, &reply), held_->Holds(2, 0));
    EXPECT_EQ(reply.estimates.size(), pieces);
    for (const StepPiece& piece : reply.estimates) ASSERT_TRUE(held_->Receive(2, piece).ok());
  }
  EstimateSender tiny(1);
  reply = StepReplyFrame();
  EXPECT_FALSE(tiny.Feed(store_->layout(), store_->step(), store_->estimates(), {0, 2}, &reply));
  EXPECT_EQ(reply.estimates.size(), 1u) << "a piece is sent however small the limit";
  Compute({0, 2});
}

TEST_F(EstimateSenderTest, ATokenWithoutItsEstimatesIsAnError) {
  Step();
  const auto status = held_->Take(1, {2, 1}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "a token for slot 2 of step 1 without the estimate of its gradient");
  StepPiece piece;
  piece.variable = 2;
  piece.offset = 4;
  const float two[2] = {};
  piece.content = FloatChunks(two, 2);
  EXPECT_EQ(held_->Receive(1, piece).message(), "an estimate of the gradient of b at element 4 with 8 bytes");
  piece.variable = 3;
  EXPECT_EQ(held_->Receive(1, piece).message(), "an estimate for variable number 3");
}

}  // namespace
}  // namespace lockstep
