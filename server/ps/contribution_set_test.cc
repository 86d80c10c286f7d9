#include "lockstep/server/ps/contribution_set.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kSegment = ParameterLayout::kSegmentElements;

// Variables: 0 "w" [3], 1 "mean" [2], 2 "big" [one segment and 4 elements].
std::unique_ptr<VariableStore> NewStore(const Compression& compression = {}, int64_t slots = 1) {
  v1::ModelSpec model;
  config::v1::OptimizerConfig optimizer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    variables { name: "w" dtype: DT_FLOAT shape: 3 trainable: true }
    variables { name: "mean" dtype: DT_FLOAT shape: 2 }
    variables { name: "big" dtype: DT_FLOAT shape: 65540 trainable: true }
    update_ops { variable: "mean" kind: ASSIGN }
  )",
                                                            &model));
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("sgd {} learning_rate { initial: 1 }", &optimizer));
  auto store = VariableStore::Create(model, optimizer, compression, slots).value();
  store->Initialize(1);
  return store;
}

v1::SlotReport Report(int64_t slot, float loss) {
  v1::SlotReport report;
  report.set_slot(slot);
  report.set_loss(loss);
  const float mean[2] = {static_cast<float>(slot), loss};
  report.add_update(std::string(reinterpret_cast<const char*>(mean), sizeof(mean)));
  return report;
}

class ContributionSetTest : public ::testing::Test {
 protected:
  ContributionSetTest() : store_(NewStore()) {
    store_->BeginUpdate();
    gradient_.assign(kSegment + 4, 1.0f);
  }

  StepPiece Piece(int64_t variable, int64_t offset, int64_t elements) const {
    StepPiece piece;
    piece.variable = variable;
    piece.offset = offset;
    piece.content = FloatChunks(gradient_.data(), elements);
    return piece;
  }
  // Contributes all gradients of a block. Returns true if any of them was new.
  bool Contribute(ContributionSet* set, const SlotBlock& block) {
    std::vector<v1::SlotReport> reports;
    for (int64_t slot = block.first; slot < block.end(); ++slot) reports.push_back(Report(slot, 1));
    set->AddReports(reports);
    const bool small = set->AddPiece(block, Piece(0, 0, 3));
    const bool large = set->AddPiece(block, Piece(2, 0, kSegment + 4));
    EXPECT_EQ(small, large);
    return small;
  }

  std::unique_ptr<VariableStore> store_;
  std::vector<float> gradient_;
};

// Returns encoded differences that add `value` to each of the first `count` elements.
std::string Differences(uint16_t count, float value) {
  std::string bytes;
  for (uint16_t i = 0; i < count; ++i) bytes.append(reinterpret_cast<const char*>(&i), sizeof(i));
  for (uint16_t i = 0; i < count; ++i) bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return bytes;
}

StepPiece SparsePiece(int64_t variable, int64_t offset, int64_t slot, const std::string& bytes) {
  StepPiece piece;
  piece.variable = variable;
  piece.offset = offset;
  piece.slot = slot;
  piece.sparse = true;
  piece.content.Append(bytes);
  return piece;
}

TEST(SparseContributionSetTest, SumsEstimatesOfTheDifferences) {
  Compression compression;
  compression.top_k = 0.5;
  const auto store = NewStore(compression, 2);
  // In step 0, slot 0 sends 2 and slot 1 sends 4. In step 1, slot 0 sends nothing and slot 1 sends 1.
  const float sent[2][2] = {{2, 4}, {0, 1}};
  float estimates[2] = {0, 0}, expected = 0;
  for (const auto& step : sent) {
    store->BeginUpdate();
    ContributionSet set(store.get(), 2);
    std::vector<std::string> bytes;
    for (const int64_t slot : {1, 0}) {
      set.AddReports({Report(slot, 1)});
      bytes.push_back(step[slot] == 0 ? "" : Differences(2, step[slot]));
    }
    for (const int64_t slot : {1, 0}) {
      for (const auto& place : std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {2, 0}, {2, kSegment}}) {
        const StepPiece piece = SparsePiece(place.first, place.second, slot, bytes[1 - slot]);
        EXPECT_TRUE(set.AddPiece({slot, 1}, piece));
        // Duplicates are dropped, even if their values differ.
        const std::string lie = Differences(1, 100);
        EXPECT_FALSE(set.AddPiece({slot, 1}, SparsePiece(place.first, place.second, slot, lie)));
      }
      estimates[slot] += step[slot];
    }
    ASSERT_TRUE(set.complete());
    store->CommitUpdate(set.TakeResults().updates);
    expected -= (estimates[0] + estimates[1]) / 2;
    for (const int64_t slot : {0, 1}) {
      EXPECT_EQ(store->estimates()->at(slot)->as<float>()[0], estimates[slot]);
      EXPECT_EQ(store->estimates()->at(slot)->as<float>()[2], 0);
    }
    EXPECT_EQ(store->values()->as<float>()[1], expected);
    EXPECT_EQ(store->values()->as<float>()[store->layout().variables()[2].flat_offset + kSegment], expected);
    EXPECT_EQ(store->values()->as<float>()[2], 0);
  }
}

TEST(SparseContributionSetTest, TakesDifferencesThatLieInTwoRuns) {
  Compression compression;
  compression.top_k = 0.5;
  const auto store = NewStore(compression, 2);
  store->BeginUpdate();
  ContributionSet set(store.get(), 2);
  const std::string three = Differences(3, 7), left = three.substr(0, 5), right = three.substr(5);
  StepPiece piece = SparsePiece(0, 0, 1, left);
  piece.content.Append(right);
  set.AddReports({Report(0, 1), Report(1, 1)});
  EXPECT_TRUE(set.AddPiece({0, 2}, piece));
  EXPECT_TRUE(set.AddPiece({0, 2}, SparsePiece(0, 0, 0, "")));
  const auto& segment = store->layout().segments()[0];
  const FloatChunks values = store->next_published()->Segment(store->layout(), segment);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(values.Contiguous(0, 3)[i], -3.5f);
}

TEST_F(ContributionSetTest, SumsAreAppliedUndivided) {
  const auto first_value = [&](bool applies_sum) {
    ContributionSet::Options options;
    options.applies_sum = applies_sum;
    ContributionSet set(store_.get(), 2, options);
    EXPECT_TRUE(Contribute(&set, {0, 1}) && Contribute(&set, {1, 1}));
    const FloatChunks values = store_->next_published()->Segment(store_->layout(), store_->layout().segments()[0]);
    return values.Contiguous(0, 3)[0];
  };
  const float before = store_->values()->as<float>()[0];
  EXPECT_NE(first_value(false), before);
  EXPECT_EQ(first_value(true) - before, 2 * (first_value(false) - before));
}

TEST_F(ContributionSetTest, IsCompleteWhenSegmentsHaveAllSlots) {
  ContributionSet set(store_.get(), 2);
  set.AddReports({Report(0, 2)});
  set.AddReports({Report(1, 4)});
  EXPECT_EQ(set.num_finished_segments(), 0u);
  EXPECT_TRUE(set.AddPiece({0, 1}, Piece(0, 0, 3)));
  EXPECT_TRUE(set.AddPiece({1, 1}, Piece(0, 0, 3)));
  EXPECT_GT(set.num_finished_segments(), 0u);
  EXPECT_FALSE(set.complete());
  EXPECT_THAT(set.finished_segments(), ElementsAre(0));
  EXPECT_TRUE(set.AddPiece({0, 1}, Piece(2, 0, kSegment + 4)));
  EXPECT_TRUE(set.AddPiece({1, 1}, Piece(2, kSegment, 4)));
  EXPECT_FALSE(set.complete());
  EXPECT_TRUE(set.AddPiece({1, 1}, Piece(2, 0, kSegment)));
  EXPECT_TRUE(set.complete());
  EXPECT_THAT(set.finished_segments(), ElementsAre(0, 3, 2)) << "in the order in which they became final";
  const ContributionSet::Results results = set.TakeResults();
  EXPECT_EQ(results.mean_loss, 3);
  ASSERT_EQ(results.updates.size(), 2u);
  EXPECT_THAT(results.updates[1][0], ElementsAre(1, 4));
}

TEST_F(ContributionSetTest, WeightsOfSlotsDivideSumAndLoss) {
  ContributionSet set(store_.get(), 3);
  const float before = store_->values()->as<float>()[0];
  v1::SlotReport light = Report(0, 8), heavy = Report(2, 2);
  light.set_weight(0.5f);
  heavy.set_weight(2.5f);
  light.set_metrics("light");
  heavy.set_metrics("heavy");
  set.AddReports({heavy});
  set.AddReports({Report(1, 4), light});
  heavy.set_weight(100);
  set.AddReports({heavy});
  gradient_.assign(gradient_.size(), 6.0f);
  EXPECT_TRUE(set.AddPiece({0, 3}, Piece(0, 0, 3)));
  EXPECT_TRUE(set.AddPiece({0, 3}, Piece(2, 0, kSegment + 4)));
  ASSERT_TRUE(set.complete());
  const ContributionSet::Results results = set.TakeResults();
  EXPECT_EQ(results.mean_loss, (0.5 * 8 + 4 + 2.5 * 2) / 4) << "each slot keeps its first weight";
  const std::vector<SlotMetrics>& metrics = results.metrics;
  ASSERT_EQ(metrics.size(), 2u) << "a slot without metrics has none";
  EXPECT_EQ(metrics[0].serialized, "light");
  EXPECT_EQ(metrics[0].weight, 0.5);
  EXPECT_EQ(metrics[1].serialized, "heavy");
  EXPECT_EQ(metrics[1].weight, 2.5);
  store_->CommitUpdate(results.updates);
  EXPECT_EQ(store_->values()->as<float>()[0], before - 6.0f / 4);
}

TEST_F(ContributionSetTest, WeightsThatSumToZeroGiveNoMean) {
  for (const bool applies_sum : {false, true}) {
    for (const bool skips : {false, true}) {
      ContributionSet::Options options;
      options.skips_non_finite = skips;
      options.applies_sum = applies_sum;
      ContributionSet set(store_.get(), 2, options);
      v1::SlotReport reports[] = {Report(0, 1), Report(1, 1)};
      for (v1::SlotReport& report : reports) report.set_weight(0);
      set.AddReports(reports);
      set.AddPiece({0, 2}, Piece(0, 0, 3));
      set.AddPiece({0, 2}, Piece(2, 0, kSegment + 4));
      EXPECT_EQ(set.complete(), skips);
      ASSERT_TRUE(set.FindNonFinite({0, 1})) << "the loss is a mean also where the gradients are summed";
      EXPECT_EQ(set.FindNonFinite({0, 1})->what, "mean over the slots, whose weights sum to 0,");
    }
  }
}

// Returns a store with SGD at rate 1 and clip.mean_by_global_norm.
std::unique_ptr<VariableStore> NewClippingStore(float limit) {
  auto store = NewStore();
  config::v1::OptimizerConfig optimizer;
  optimizer.mutable_sgd();
  optimizer.mutable_learning_rate()->set_initial(1);
  optimizer.mutable_clip()->set_mean_by_global_norm(limit);
  EXPECT_TRUE(store->SetOptimizer(optimizer).ok());
  return store;
}

// Returns the values of the trained variables.
std::vector<float> Trained(const VariableStore& store) {
  std::vector<float> values;
  for (const auto& variable : store.layout().variables()) {
    const float* const first = store.values()->as<float>() + variable.flat_offset;
    if (variable.spec.trainable()) values.insert(values.end(), first, first + variable.elements);
  }
  return values;
}

TEST_F(ContributionSetTest, TheMeanIsClippedOverAllVariables) {
  // The mean is 2 in each of 3 + 65,540 elements.
  const double norm = 2 * std::sqrt(65543.0);
  std::vector<float> reference;
  for (const std::vector<SlotBlock>& order : std::vector<std::vector<SlotBlock>>{
           {{0, 4}}, {{2, 2}, {0, 2}}, {{3, 1}, {0, 1}, {2, 1}, {1, 1}}, {{1, 1}, {0, 2}, {2, 1}, {0, 1}, {2, 2}}}) {
    const auto store = NewClippingStore(1);
    const float before = store->values()->as<float>()[0];
    store->BeginUpdate();
    ContributionSet set(store.get(), 4);
    for (const SlotBlock& block : order) {
      EXPECT_FALSE(set.complete());
      EXPECT_EQ(set.num_finished_segments(), 0u) << "no value is final before the last sum";
      gradient_.assign(gradient_.size(), 2.0f * static_cast<float>(block.count));
      Contribute(&set, block);
    }
    ASSERT_TRUE(set.complete());
    EXPECT_THAT(set.finished_segments(), ElementsAre(0, 2, 3));
    store->CommitUpdate(set.TakeResults().updates);
    EXPECT_EQ(store->values()->as<float>()[0], before - 8.0f / static_cast<float>(4 * norm));
    if (reference.empty()) reference = Trained(*store);
    EXPECT_EQ(Trained(*store), reference);
  }
}

TEST_F(ContributionSetTest, AShortMeanKeepsItsBits) {
  std::vector<float> values[2];
  for (const bool clips : {false, true}) {
    const auto store = clips ? NewClippingStore(1e6f) : NewStore();
    store->BeginUpdate();
    ContributionSet set(store.get(), 3);
    for (const SlotBlock& block : {SlotBlock{0, 2}, SlotBlock{2, 1}}) Contribute(&set, block);
    ASSERT_TRUE(set.complete());
    store->CommitUpdate(set.TakeResults().updates);
    values[clips] = Trained(*store);
  }
  EXPECT_EQ(values[0], values[1]);
}

TEST_F(ContributionSetTest, AHeldSetWithANaNMaySkip) {
  const auto store = NewClippingStore(1);
  store->BeginUpdate();
  ContributionSet::Options options;
  options.skips_non_finite = true;
  ContributionSet set(store.get(), 1, options);
  gradient_[1] = std::numeric_limits<float>::quiet_NaN();
  Contribute(&set, {0, 1});
  EXPECT_TRUE(set.complete());
  EXPECT_TRUE(set.FindNonFinite({0, 1}));
  store->SkipUpdate();
  EXPECT_EQ(store->step(), 1);
}

TEST_F(ContributionSetTest, EveryOrderOfBlocksGivesTheSameValues) {
  const std::vector<std::vector<SlotBlock>> orders = {
      {{0, 4}}, {{2, 2}, {0, 2}}, {{3, 1}, {0, 1}, {2, 1}, {1, 1}}, {{1, 1}, {0, 2}, {2, 1}, {0, 1}, {2, 2}}};
  std::string reference;
  for (const auto& order : orders) {
    const auto store = NewStore();
    store->BeginUpdate();
    ContributionSet set(store.get(), 4);
    for (const SlotBlock& block : order) {
      // If all gradients are ones, the sum over the block is the block's number of slots.
      gradient_.assign(gradient_.size(), static_cast<float>(block.count));
      Contribute(&set, block);
    }
    ASSERT_TRUE(set.complete());
    store->CommitUpdate(set.TakeResults().updates);
    const std::string bytes(store->values()->data(), 3 * sizeof(float));
    if (reference.empty()) reference = bytes;
    EXPECT_EQ(bytes, reference);
    EXPECT_EQ(store->values()->as<float>()[0], -1);
  }
}

TEST_F(ContributionSetTest, CoveredPiecesAreNotNew) {
  ContributionSet set(store_.get(), 4);
  EXPECT_TRUE(Contribute(&set, {0, 2}));
  EXPECT_FALSE(Contribute(&set, {0, 2}));
  EXPECT_FALSE(Contribute(&set, {1, 1}));
  EXPECT_TRUE(Contribute(&set, {0, 4})) << "a larger block replaces the smaller ones inside it";
  EXPECT_TRUE(set.complete());
  EXPECT_FALSE(Contribute(&set, {2, 2}));
}

// The bits of an integer may be those of a NaN.
TEST(ContributionSetIntegersTest, AreAllFinite) {
  v1::ModelSpec model;
  config::v1::OptimizerConfig optimizer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    variables { name: "w" dtype: DT_FLOAT shape: 3 trainable: true }
    variables { name: "flags" dtype: DT_UINT8 shape: 5 }
    update_ops { variable: "flags" kind: ASSIGN }
  )",
                                                            &model));
  optimizer.mutable_sgd();
  const auto store = VariableStore::Create(model, optimizer).value();
  store->Initialize(1);
  store->BeginUpdate();
  ContributionSet set(store.get(), 1);
  v1::SlotReport report;
  report.set_loss(1);
  report.add_update(std::string(5, '\xff'));
  set.AddReports({report});
  EXPECT_FALSE(set.FindNonFinite({0, 1}));
  const auto updates = set.TakeResults().updates;
  ASSERT_EQ(updates[0][0].size(), 2u) << "in floats";
  EXPECT_EQ(std::memcmp(updates[0][0].data(), report.update(0).data(), 5), 0);
}

TEST_F(ContributionSetTest, ASlotKeepsItsFirstReport) {
  ContributionSet set(store_.get(), 2);
  set.AddReports({Report(0, 2)});
  set.AddReports({Report(1, 4), Report(0, 100)});
  EXPECT_EQ(set.TakeResults().mean_loss, 3);
}

// Returns what is not finite and its slot, such as "loss 3", or "" if everything is finite.
std::string NonFinite(const ContributionSet& set, const SlotBlock& block) {
  const auto found = set.FindNonFinite(block);
  return found ? absl::StrCat(found->what, found->slot ? absl::StrCat(" ", *found->slot) : "") : "";
}

TEST_F(ContributionSetTest, NamesTheSlotWithANonFiniteLoss) {
  ContributionSet set(store_.get(), 4);
  set.AddReports({Report(0, 1), Report(1, 1)});
  EXPECT_EQ(NonFinite(set, {0, 4}), "");
  set.AddReports({Report(2, 1), Report(3, std::numeric_limits<float>::infinity())});
  EXPECT_EQ(NonFinite(set, {0, 4}), "loss 3");
  EXPECT_EQ(NonFinite(set, {2, 2}), "loss 3");
  EXPECT_EQ(NonFinite(set, {0, 2}), "");
  ContributionSet other(store_.get(), 1);
  other.AddReports({Report(0, std::numeric_limits<float>::quiet_NaN())});
  EXPECT_EQ(NonFinite(other, {0, 1}), "loss 0");
}

TEST_F(ContributionSetTest, NamesTheNonFiniteUpdate) {
  ContributionSet set(store_.get(), 2);
  v1::SlotReport report = Report(1, 1);
  const float mean[2] = {1, -std::numeric_limits<float>::infinity()};
  report.set_update(0, std::string(reinterpret_cast<const char*>(mean), sizeof(mean)));
  set.AddReports({Report(0, 1), report});
  EXPECT_EQ(NonFinite(set, {0, 1}), "");
  EXPECT_EQ(NonFinite(set, {0, 2}), "update of mean 1");
}

TEST_F(ContributionSetTest, AGradientThatIsNotFiniteIsNotApplied) {
  // Tests every kind of position: inside a full vector, and in the remainder after the last full one.
  for (const int64_t place : {int64_t{0}, int64_t{7}, int64_t{31}, kSegment - 1, kSegment + 3}) {
    const auto store = NewStore();
    store->BeginUpdate();
    ContributionSet set(store.get(), 2);
    gradient_.assign(gradient_.size(), 3e38f);
    gradient_[place] =
        place % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
    set.AddReports({Report(0, 1), Report(1, 1)});
    set.AddPiece({0, 2}, Piece(2, 0, kSegment + 4));
    EXPECT_EQ(NonFinite(set, {0, 2}), "gradient of big") << place;
    EXPECT_THAT(set.finished_segments(), ElementsAre(place < kSegment ? 3 : 2)) << "the other segment";
    gradient_.assign(gradient_.size(), 1.0f);
    set.AddPiece({0, 2}, Piece(0, 0, 3));
    EXPECT_FALSE(set.complete());
  }
}

TEST_F(ContributionSetTest, NonFiniteGradientsCompleteTheSet) {
  ContributionSet::Options options;
  options.skips_non_finite = true;
  ContributionSet set(store_.get(), 1, options);
  set.AddReports({Report(0, 1)});
  gradient_[3] = std::numeric_limits<float>::quiet_NaN();
  set.AddPiece({0, 1}, Piece(2, 0, kSegment + 4));
  EXPECT_FALSE(set.complete());
  gradient_[3] = 1;
  set.AddPiece({0, 1}, Piece(0, 0, 3));
  EXPECT_TRUE(set.complete());
  EXPECT_EQ(NonFinite(set, {0, 1}), "gradient of big");
  store_->SkipUpdate();
  EXPECT_EQ(store_->step(), 1);
  EXPECT_EQ(store_->values()->as<float>()[0], 0);
}

TEST_F(ContributionSetTest, AnOverflowingSumIsNotFinite) {
  ContributionSet set(store_.get(), 2);
  gradient_.assign(gradient_.size(), 3e38f);
  Contribute(&set, {0, 1});
  EXPECT_EQ(NonFinite(set, {0, 2}), "");
  Contribute(&set, {1, 1});
  EXPECT_NE(NonFinite(set, {0, 2}), "");
  EXPECT_EQ(set.num_finished_segments(), 0u);
}

TEST_F(ContributionSetTest, ThreadsMayContributeSideBySide) {
  ContributionSet set(store_.get(), 8);
  std::vector<std::thread> threads;
  for (int64_t slot = 0; slot < 8; ++slot) {
    for (int copy = 0; copy < 2; ++copy) {
      threads.emplace_back([this, &set, slot] {
        set.AddReports({Report(slot, 1)});
        set.AddPiece({slot, 1}, Piece(0, 0, 3));
        set.AddPiece({slot, 1}, Piece(2, 0, kSegment + 4));
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(set.complete());
  store_->CommitUpdate(set.TakeResults().updates);
  EXPECT_EQ(store_->values()->as<float>()[0], -1);
  EXPECT_EQ(store_->values()->as<float>()[store_->layout().variables()[2].flat_offset + kSegment + 3], -1);
}

}  // namespace
}  // namespace lockstep
