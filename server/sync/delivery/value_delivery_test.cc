#include "lockstep/server/sync/delivery/value_delivery.h"

#include <memory>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/sync/shard/step_shard.h"

namespace lockstep {
namespace {

constexpr uint64_t kSession = 3;

// Variables "w" [3] and "b" [2], one slot, SGD with rate 1.
class ValueDeliveryTest : public ::testing::Test {
 protected:
  void Start(ValuePath path, bool share_values = false, double top_k = 0, int64_t elements = 3) {
    v1::ModelSpec model;
    config::v1::OptimizerConfig optimizer;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      variables { name: "w" dtype: DT_FLOAT shape: 3 trainable: true }
      variables { name: "b" dtype: DT_FLOAT shape: 2 trainable: true }
    )",
                                                              &model));
    model.mutable_variables(0)->set_shape(0, elements);
    v1::ModelSpec constants;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(constants_, &constants));
    model.MergeFrom(constants);
    zeros_.resize(elements);
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString("sgd {} learning_rate { initial: 1 }", &optimizer));
    Compression compression;
    compression.top_k = top_k;
    store_ = VariableStore::Create(model, optimizer, compression, 1, share_values).value();
    store_->Initialize(1);
    shard_ = std::make_unique<StepShard>(store_.get(), /*slots=*/1);
    sums_ = shard_->Begin(0);
    sums_->AddReports({v1::SlotReport()});
    delivery_ = NewValueDelivery(path, {kSession, {}}, shard_.get(), &pins_);
  }
  // Adds a gradient of zeros for a variable.
  void Sum(int64_t variable) {
    StepPiece piece;
    piece.variable = variable;
    piece.content = FloatChunks(zeros_.data(), shard_->layout().variables()[variable].elements);
    ASSERT_TRUE(sums_->AddPiece({0, 1}, piece));
  }
  void Commit() {
    shard_->Commit();
    sums_ = shard_->Begin(shard_->step());
    sums_->AddReports({v1::SlotReport()});
  }
  static StepToken TokenOf(int64_t step) { return {step, {0, 1}}; }

  std::string constants_;  // more variables
  std::vector<float> zeros_;
  std::unique_ptr<VariableStore> store_;
  std::unique_ptr<StepShard> shard_;
  std::shared_ptr<StepSums> sums_;
  VersionPins pins_{2};
  std::unique_ptr<ValueDelivery> delivery_;
};

TEST_F(ValueDeliveryTest, InProcessAWorkerReadsTheValuesWhereTheyAre) {
  Start(ValuePath::kInProcess);
  StepReplyFrame reply;
  EXPECT_TRUE(delivery_->Fill(TokenOf(0), &reply));
  EXPECT_TRUE(reply.values.empty());
  EXPECT_EQ(delivery_->values(), nullptr);
  delivery_->Attach(TokenOf(0), &reply);
  EXPECT_EQ(delivery_->values(), store_->published());
  EXPECT_EQ(delivery_->estimates(), store_->estimates());
  EXPECT_FALSE(delivery_->streams() || delivery_->HasEarlyValues());
  delivery_->Release();
  EXPECT_EQ(delivery_->values(), nullptr);
}

TEST_F(ValueDeliveryTest, StreamedValuesGoWithATokenAndEarlyWithoutOne) {
  Start(ValuePath::kStreamed);
  EXPECT_TRUE(delivery_->streams());
  StepReplyFrame first;
  EXPECT_TRUE(delivery_->Fill(TokenOf(0), &first)) << "the frame takes all of this model";
  EXPECT_EQ(first.values.size(), 2u);
  EXPECT_EQ(first.values_step, 0);
  EXPECT_FALSE(delivery_->HasEarlyValues());
  Sum(1);
  EXPECT_TRUE(delivery_->HasEarlyValues());
  StepReplyFrame early;
  EXPECT_FALSE(delivery_->Fill(absl::nullopt, &early)) << "there is no token";
  ASSERT_EQ(early.values.size(), 1u);
  EXPECT_EQ(early.values[0].variable, 1);
  EXPECT_EQ(early.values_step, 1);
  EXPECT_FALSE(delivery_->HasEarlyValues());
  Sum(0);
  Commit();
  StepReplyFrame rest;
  EXPECT_TRUE(delivery_->Fill(TokenOf(1), &rest));
  EXPECT_EQ(rest.values.size(), 1u) << "the other was sent";
  EXPECT_EQ(delivery_->values(), nullptr) << "they are in the worker's own memory";
}

TEST_F(ValueDeliveryTest, ASlowLinkGetsAWholeVersionIfTokensLast) {
  Start(ValuePath::kStreamed, /*share_values=*/false, /*top_k=*/0, /*elements=*/(1 << 20) + 1);
  const auto finishes = NewValueDelivery(ValuePath::kStreamed, {kSession, {}}, shard_.get(), &pins_,
                                         /*finishes_versions=*/true);
  StepReplyFrame first, other;
  EXPECT_FALSE(finishes->Fill(TokenOf(0), &first)) << "more than a frame takes";
  EXPECT_FALSE(delivery_->Fill(TokenOf(0), &other));
  for (const int64_t variable : {0, 1}) Sum(variable);
  Commit();
  StepReplyFrame rest, again;
  EXPECT_EQ(finishes->Fill(TokenOf(0), &rest), 0);
  EXPECT_EQ(rest.values_step, 0);
  EXPECT_FALSE(delivery_->Fill(TokenOf(1), &again)) << "from the start";
  EXPECT_EQ(again.values_step, 1);
  finishes->Attach(TokenOf(0), &rest);
  StepReplyFrame next;
  EXPECT_FALSE(finishes->Fill(TokenOf(1), &next));
  EXPECT_EQ(next.values_step, 1) << "the next token has the newest";
}

TEST_F(ValueDeliveryTest, WhatWaitsToBeReadIsPinned) {
  Start(ValuePath::kStreamed);
  StepReplyFrame reply;
  ASSERT_TRUE(delivery_->Fill(TokenOf(0), &reply));
  VersionPins none(0);
  EXPECT_TRUE(pins_.FindExcess(1).empty()) << "two old versions may be kept";
  const auto another = NewValueDelivery(ValuePath::kStreamed, {kSession, {}}, shard_.get(), &none);
  StepReplyFrame held;
  ASSERT_TRUE(another->Fill(TokenOf(0), &held));
  ASSERT_EQ(none.FindExcess(1).size(), 1u);
  EXPECT_EQ(none.FindExcess(1)[0].session, kSession);
  held = StepReplyFrame();
  EXPECT_TRUE(none.FindExcess(1).empty());
}

TEST_F(ValueDeliveryTest, StreamedEstimatesComeBeforeTheToken) {
  Start(ValuePath::kStreamed, /*share_values=*/false, /*top_k=*/0.5);
  StepReplyFrame reply;
  EXPECT_TRUE(delivery_->Fill(TokenOf(0), &reply));
  EXPECT_TRUE(reply.estimates.empty()) << "at step 0 both ends know that they are zeros";
  for (const int64_t variable : {0, 1}) sums_->AddPiece({0, 1}, SparsePiece(0, variable, 0, ""));
  Commit();
  const auto newcomer = NewValueDelivery(ValuePath::kStreamed, {kSession, {}}, shard_.get(), &pins_);
  StepReplyFrame later;
  EXPECT_TRUE(newcomer->Fill(TokenOf(1), &later));
  EXPECT_EQ(later.estimates.size(), 2u);
  delivery_->OnContributed(TokenOf(0));
  StepReplyFrame known;
  EXPECT_TRUE(delivery_->Fill(TokenOf(1), &known));
  EXPECT_TRUE(known.estimates.empty()) << "it made them itself";
}

TEST_F(ValueDeliveryTest, PinsMappedValuesDuringAContribution) {
  Start(ValuePath::kShared, /*share_values=*/true);
  StepReplyFrame reply;
  EXPECT_TRUE(delivery_->Fill(TokenOf(0), &reply));
  EXPECT_TRUE(reply.values.empty());
  delivery_->Attach(TokenOf(0), &reply);
  EXPECT_TRUE(reply.values_memory);
  EXPECT_EQ(delivery_->values().get(), store_->published().get());
  EXPECT_FALSE(delivery_->streams());
  delivery_->Release();
  EXPECT_EQ(delivery_->values(), nullptr);
  delivery_->Attach(TokenOf(0), &reply);
  delivery_->OnClosed();
  EXPECT_EQ(delivery_->values(), nullptr) << "the memory is used again";
}

TEST_F(ValueDeliveryTest, AVersionWithoutSharedMemoryIsStreamed) {
  Start(ValuePath::kShared, /*share_values=*/false);
  EXPECT_TRUE(delivery_->streams());
  StepReplyFrame reply;
  EXPECT_TRUE(delivery_->Fill(TokenOf(0), &reply));
  EXPECT_EQ(reply.values.size(), 2u);
  delivery_->Attach(TokenOf(0), &reply);
  EXPECT_FALSE(reply.values_memory);
  Sum(0);
  EXPECT_TRUE(delivery_->HasEarlyValues());
}

class ConstantDeliveryTest : public ValueDeliveryTest {
 protected:
  ConstantDeliveryTest() { constants_ = R"pb(variables { name: "base" dtype: DT_FLOAT shape: 4 })pb"; }
  // Sets "base" between two steps.
  void Assign(float value, ValueDelivery* delivery) {
    shard_->Abort();
    store_->DropUpdate();
    ASSERT_TRUE(store_->Assign({{"base", Tensor::FromValues<float>({4}, {value, 0, 0, 0})}}).ok());
    delivery->OnValuesSet({shard_->layout().variables()[2].first_segment});
    sums_ = shard_->Begin(shard_->step());
    sums_->AddReports({v1::SlotReport()});
  }
};

TEST_F(ConstantDeliveryTest, ATokenWaitsForConstantsThatWereSet) {
  Start(ValuePath::kStreamed);
  StepReplyFrame first;
  EXPECT_FALSE(delivery_->Fill(TokenOf(0), &first));
  EXPECT_EQ(first.values.size(), 1u) << "the constant variable, alone";
  EXPECT_EQ(first.values_owner.get(), store_->published()->constants.get()) << "it keeps no version";
  StepReplyFrame rest;
  ASSERT_TRUE(delivery_->Fill(TokenOf(0), &rest));
  EXPECT_EQ(rest.values.size(), 2u);
  delivery_->Attach(TokenOf(0), &rest);
  for (const int64_t variable : {0, 1}) Sum(variable);
  Commit();
  StepReplyFrame second;
  ASSERT_TRUE(delivery_->Fill(TokenOf(1), &second));
  EXPECT_EQ(second.values.size(), 2u) << "without the constant variable";
  Assign(5, delivery_.get());
  StepReplyFrame again;
  ASSERT_TRUE(delivery_->Fill(TokenOf(1), &again));
  ASSERT_EQ(again.values.size(), 1u);
  EXPECT_EQ(again.values[0].variable, 2);
  EXPECT_EQ(again.values[0].content.Contiguous(0, 1)[0], 5);
}

TEST_F(ConstantDeliveryTest, NoConstantsComeWithoutAToken) {
  Start(ValuePath::kStreamed);
  StepReplyFrame constants, values, early, again;
  EXPECT_FALSE(delivery_->Fill(TokenOf(0), &constants));
  ASSERT_TRUE(delivery_->Fill(TokenOf(0), &values));
  delivery_->Attach(TokenOf(0), &values);
  Assign(5, delivery_.get());
  Sum(1);
  EXPECT_TRUE(delivery_->HasEarlyValues());
  EXPECT_FALSE(delivery_->Fill(absl::nullopt, &early));
  ASSERT_EQ(early.values.size(), 1u);
  EXPECT_EQ(early.values[0].variable, 1) << "the worker computes with the constant variable";
  ASSERT_TRUE(delivery_->Fill(TokenOf(0), &again));
  ASSERT_EQ(again.values.size(), 1u);
  EXPECT_EQ(again.values[0].variable, 2);
}

TEST_F(ConstantDeliveryTest, AVersionThatIsFinishedKeepsItsConstants) {
  Start(ValuePath::kStreamed, /*share_values=*/false, /*top_k=*/0, /*elements=*/(1 << 20) + 1);
  const auto finishes = NewValueDelivery(ValuePath::kStreamed, {kSession, {}}, shard_.get(), &pins_,
                                         /*finishes_versions=*/true);
  StepReplyFrame constants, part, rest, next;
  EXPECT_FALSE(finishes->Fill(TokenOf(0), &constants));
  EXPECT_FALSE(finishes->Fill(TokenOf(0), &part)) << "more than a frame takes";
  for (const int64_t variable : {0, 1}) Sum(variable);
  Commit();
  Assign(5, finishes.get());
  EXPECT_EQ(finishes->Fill(TokenOf(0), &rest), 0);
  for (const StepPiece& piece : rest.values) EXPECT_NE(piece.variable, 2);
  finishes->Attach(TokenOf(0), &rest);
  EXPECT_FALSE(finishes->Fill(TokenOf(1), &next));
  ASSERT_EQ(next.values.size(), 1u);
  EXPECT_EQ(next.values[0].content.Contiguous(0, 1)[0], 5);
}

TEST_F(ConstantDeliveryTest, MappedConstantsHaveTheirOwnMemory) {
  Start(ValuePath::kShared, /*share_values=*/true);
  StepReplyFrame first, second, third;
  ASSERT_TRUE(delivery_->Fill(TokenOf(0), &first));
  delivery_->Attach(TokenOf(0), &first);
  ASSERT_TRUE(first.constants_memory);
  for (const int64_t variable : {0, 1}) Sum(variable);
  Commit();
  delivery_->Attach(TokenOf(1), &second);
  EXPECT_FALSE(IsSameMemory(*second.values_memory, *first.values_memory));
  EXPECT_TRUE(IsSameMemory(*second.constants_memory, *first.constants_memory));
  Assign(5, delivery_.get());
  delivery_->Attach(TokenOf(1), &third);
  EXPECT_FALSE(IsSameMemory(*third.constants_memory, *first.constants_memory));
}

TEST_F(ValueDeliveryTest, KeepsAtLeastTwoOldVersions) {
  Start(ValuePath::kStreamed);
  const int64_t version = shard_->layout().flat_elements() * static_cast<int64_t>(sizeof(float));
  EXPECT_EQ(MaxOldVersions(*shard_, 0, 1), 2u);
  EXPECT_EQ(MaxOldVersions(*shard_, 10 * version, 1), 10u);
}

}  // namespace
}  // namespace lockstep
