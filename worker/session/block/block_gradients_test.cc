#include "lockstep/worker/session/block/block_gradients.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/step/report_parts.h"
#include "lockstep/common/tensor/rounding.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep {
namespace {

constexpr int64_t kElements = 5;

v1::ModelSpec OneVariable(int64_t elements = kElements) {
  v1::ModelSpec model;
  auto* variable = model.add_variables();
  variable->set_name("w");
  variable->set_dtype(v1::DT_FLOAT);
  variable->add_shape(elements);
  variable->set_trainable(true);
  return model;
}

// Records what was sent.
class RecordingChannel : public StepChannel {
 public:
  absl::StatusOr<Assignment> AwaitToken() override { return absl::UnimplementedError("not used"); }
  absl::Status SendReports(absl::Span<const v1::SlotReport> reports) override {
    EXPECT_EQ(sends, 0) << "reports come before gradients";
    num_reports = reports.size();
    return absl::OkStatus();
  }
  float* GradientBuffer(int) override { return buffer.as<float>(); }
  absl::Status SendGradient(int) override {
    ++sends;
    return absl::OkStatus();
  }
  absl::Status SendDifferences(int64_t slot, int, int64_t offset, absl::string_view bytes) override {
    if (offset > 0) {
      EXPECT_TRUE(later_segments.emplace(offset, bytes).second);
      return absl::OkStatus();
    }
    EXPECT_GT(num_reports, 0u) << "reports come before differences";
    differences[slot] = std::string(bytes);
    return absl::OkStatus();
  }
  absl::Status SendEndOfInput() override {
    ADD_FAILURE() << "the block is computed";
    return absl::OkStatus();
  }
  absl::Status SendDigests(absl::Span<const uint64_t> of_gradients) override {
    EXPECT_GT(sends + differences.size(), 0u) << "digests come after gradients";
    digests.assign(of_gradients.begin(), of_gradients.end());
    return absl::OkStatus();
  }
  void Leave() override {}
  void CancelWait() override {}
  void Cancel() override {}

  AlignedBuffer buffer{(ParameterLayout::kSegmentElements + kElements) * sizeof(float)};
  size_t num_reports = 0;
  int sends = 0;
  std::map<int64_t, std::string> differences;     // of the first segment, by slot
  std::map<int64_t, std::string> later_segments;  // by offset
  std::vector<uint64_t> digests;
};

std::vector<float> Gradient(int64_t slot) {
  std::vector<float> gradient(kElements);
  Philox(11, static_cast<uint64_t>(slot)).FillNormal(absl::MakeSpan(gradient));
  return gradient;
}

std::vector<float> TreeSum(int64_t begin, int64_t size, int64_t end, v1::DataType type) {
  std::vector<float> left = size == 1 ? Gradient(begin) : TreeSum(begin, size / 2, end, type);
  if (size > 1 && begin + size / 2 >= end) return left;
  if (size > 1) {
    const std::vector<float> right = TreeSum(begin + size / 2, size / 2, end, type);
    for (int64_t i = 0; i < kElements; ++i) left[i] += right[i];
  }
  RoundTo(type, kElements, left.data());
  return left;
}

TEST(BlockGradientsTest, AnUpdateHasItsVariablesTypeAndSize) {
  v1::ModelSpec model = OneVariable();
  v1::VariableSpec* const seen = model.add_variables();
  seen->set_name("seen");
  seen->set_dtype(v1::DT_INT64);
  model.add_update_ops()->set_variable("seen");
  const auto layout = *ParameterLayout::Create(model);
  const std::atomic<bool> wanted(true);
  BlockGradients sink(&layout, &wanted, Compression());
  v1::Token token;
  token.set_slot_count(1);
  const auto report = [&](Elements value) {
    RecordingChannel channel;
    sink.BeginBlock(&channel, token);
    sink.BeginSlot(0);
    sink.OnLoss(1);
    sink.OnUpdate(0, value);
    const std::vector<float> gradient = Gradient(0);
    std::copy(gradient.begin(), gradient.end(), sink.GradientBuffer(0));
    sink.OnGradient(0);
    EXPECT_EQ(channel.num_reports, sink.status().ok() ? 1u : 0u);
    EXPECT_EQ(channel.sends, sink.status().ok() ? 1 : 0);
    return sink.status();
  };
  const int64_t right = 7;
  const float wrong[] = {7, 0};
  EXPECT_TRUE(report({&right, 1}).ok());
  EXPECT_EQ(report(wrong), absl::InvalidArgumentError("the update of seen is float32, the variable is int64"));
  const int64_t longer[] = {7, 0};
  EXPECT_EQ(report(longer), absl::InvalidArgumentError("the update of seen has 2 elements, the variable has 1"));
  EXPECT_EQ(report({&right, 0}), absl::InvalidArgumentError("the update of seen has 0 elements, the variable has 1"));
}

class BlockGradientsTypeTest : public ::testing::TestWithParam<v1::DataType> {};

TEST_P(BlockGradientsTypeTest, SumsTheSlotsOfABlockAlongTheTree) {
  const v1::DataType type = GetParam();
  const auto layout = *ParameterLayout::Create(OneVariable());
  const std::atomic<bool> wanted(true);
  Compression compression;
  compression.gradients = type;
  BlockGradients sink(&layout, &wanted, compression);
  for (int64_t count = 1; count <= 17; ++count) {
    for (int64_t first : {int64_t{0}, int64_t{32}}) {
      RecordingChannel channel;
      v1::Token token;
      token.set_first_slot(first);
      token.set_slot_count(count);
      sink.BeginBlock(&channel, token);
      for (int64_t slot = first; slot < first + count; ++slot) {
        sink.BeginSlot(slot);
        EXPECT_TRUE(sink.OnLoss(1.0f));
        std::memcpy(sink.GradientBuffer(0), Gradient(slot).data(), kElements * sizeof(float));
        sink.OnGradient(0);
        EXPECT_EQ(channel.sends, slot + 1 == first + count ? 1 : 0);
      }
      EXPECT_EQ(channel.num_reports, static_cast<size_t>(count));
      const std::vector<float> expected = TreeSum(first, 32, first + count, type);
      EXPECT_EQ(std::memcmp(channel.buffer.data(), expected.data(), kElements * sizeof(float)), 0)
          << count << " slots from " << first;
    }
  }
}

TEST(BlockGradientsTest, AWeightMultipliesTheGradientOfItsSlot) {
  const auto layout = *ParameterLayout::Create(OneVariable());
  const std::atomic<bool> wanted(true);
  BlockGradients sink(&layout, &wanted);
  RecordingChannel channel;
  v1::Token token;
  token.set_slot_count(3);
  sink.BeginBlock(&channel, token);
  const float weights[] = {0.5f, 1, 3};
  for (int64_t slot = 0; slot < 3; ++slot) {
    sink.BeginSlot(slot);
    sink.OnLoss(1);
    sink.OnWeight(weights[slot]);
    std::memcpy(sink.GradientBuffer(0), Gradient(slot).data(), kElements * sizeof(float));
    sink.OnGradient(0);
  }
  for (int64_t i = 0; i < kElements; ++i) {
    const float expected = (Gradient(0)[i] * 0.5f + Gradient(1)[i]) + Gradient(2)[i] * 3;
    EXPECT_EQ(channel.buffer.as<float>()[i], expected);
  }
  EXPECT_EQ(sink.reports()[0].weight(), 0.5f);
  EXPECT_FALSE(sink.reports()[1].has_weight()) << "1 is what an absent weight means";
  EXPECT_EQ(sink.reports()[2].weight(), 3);
}

TEST(BlockGradientsTest, MetricsAndSummariesShareOneBound) {
  const auto layout = *ParameterLayout::Create(OneVariable());
  const std::atomic<bool> wanted(true);
  BlockGradients sink(&layout, &wanted);
  RecordingChannel channel;
  v1::Token token;
  token.set_slot_count(1);
  sink.BeginBlock(&channel, token);
  sink.BeginSlot(0);
  sink.OnLoss(1);
  EXPECT_TRUE(sink.OnMetric("accuracy", 0.5f).ok());
  v1::Summary large;
  large.add_value()->set_tag(std::string(MaxSummaryBytes(layout) - 30, 'x'));
  EXPECT_TRUE(sink.OnSummary(large).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(sink.OnMetric("recall", 0.25f)));
  v1::Summary metrics;
  ASSERT_TRUE(metrics.ParseFromString(sink.reports()[0].metrics()));
  ASSERT_EQ(metrics.value_size(), 1);
  EXPECT_EQ(metrics.value(0).tag(), "accuracy");
  EXPECT_EQ(metrics.value(0).simple_value(), 0.5f);
}

INSTANTIATE_TEST_SUITE_P(Types, BlockGradientsTypeTest, ::testing::Values(v1::DT_FLOAT, v1::DT_BFLOAT16, v1::DT_HALF));

TEST(BlockGradientsTest, TopKSendsTheLargestDifferences) {
  const auto layout = *ParameterLayout::Create(OneVariable());
  const std::atomic<bool> wanted(true);
  Compression compression;
  compression.top_k = 0.4;  // two of five
  BlockGradients sink(&layout, &wanted, compression);
  RecordingChannel channel;
  float estimates[2][kElements] = {{0, 0, 0, 0, 0}, {1, 1, 1, 1, 1}};
  float* const pointers[2] = {estimates[0], estimates[1]};
  v1::Token token;
  token.set_first_slot(2);
  token.set_slot_count(2);
  const float gradient[kElements] = {1, -3, 2, 0, 5};
  for (int step = 0; step < 3; ++step) {
    channel.differences.clear();
    sink.BeginBlock(&channel, token, pointers);
    for (const int64_t slot : {2, 3}) {
      EXPECT_TRUE(channel.differences.empty());
      sink.BeginSlot(slot);
      EXPECT_TRUE(sink.OnLoss(1));
      std::memcpy(sink.GradientBuffer(0), gradient, sizeof(gradient));
      sink.OnGradient(0);
    }
    EXPECT_EQ(channel.sends, 0);
    // Slot 2 sends elements 1 and 4 first, then 0 and 2, and then nothing is left. The differences of slot 3 are 0 -4 1
    // -1 4.
    const std::vector<size_t> counts = {2, 2, 0};
    EXPECT_EQ(channel.differences[2].size(), counts[step] * kDifferenceBytes);
    EXPECT_EQ(channel.differences[3].size(), counts[step] * kDifferenceBytes);
    if (step == 0) {
      EXPECT_EQ(std::vector<float>(estimates[0], estimates[0] + kElements), (std::vector<float>{0, -3, 0, 0, 5}));
      EXPECT_EQ(std::vector<float>(estimates[1], estimates[1] + kElements), (std::vector<float>{1, -3, 1, 1, 5}));
    }
  }
  for (const auto& estimate : estimates) EXPECT_EQ(std::memcmp(estimate, gradient, sizeof(gradient)), 0);
}

TEST(BlockGradientsTest, TopKComparesEachSegmentWithItsOwnEstimate) {
  constexpr int64_t kSegment = ParameterLayout::kSegmentElements;
  const auto layout = *ParameterLayout::Create(OneVariable(kSegment + kElements));
  const std::atomic<bool> wanted(true);
  Compression compression;
  compression.top_k = 0.2;  // one of the second segment's five
  BlockGradients sink(&layout, &wanted, compression);
  RecordingChannel channel;
  std::vector<float> estimate(kSegment + kElements, 1);
  float* const pointers[] = {estimate.data()};
  v1::Token token;
  token.set_slot_count(1);
  sink.BeginBlock(&channel, token, pointers);
  sink.BeginSlot(0);
  EXPECT_TRUE(sink.OnLoss(1));
  std::fill_n(sink.GradientBuffer(0), kSegment + kElements, 1.0f);
  sink.GradientBuffer(0)[kSegment + 3] = 6;
  sink.OnGradient(0);
  EXPECT_TRUE(channel.differences.at(0).empty());
  std::string expected("\x03\0", 2);  // the index in the segment, and the number to add
  const float difference = 5;
  expected.append(reinterpret_cast<const char*>(&difference), sizeof(difference));
  EXPECT_EQ(channel.later_segments.at(kSegment), expected);
  EXPECT_EQ(estimate[kSegment + 3], 6);
}

uint64_t DigestOfGradientWith(uint32_t bits) {
  const auto layout = *ParameterLayout::Create(OneVariable());
  const std::atomic<bool> wanted(true);
  BlockGradients sink(&layout, &wanted);
  RecordingChannel channel;
  v1::Token token;
  token.set_slot_count(1);
  token.set_digest(true);
  sink.BeginBlock(&channel, token);
  sink.BeginSlot(0);
  EXPECT_TRUE(sink.OnLoss(1));
  std::memcpy(sink.GradientBuffer(0), Gradient(0).data(), kElements * sizeof(float));
  std::memcpy(sink.GradientBuffer(0) + 2, &bits, sizeof(bits));
  sink.OnGradient(0);
  sink.EndBlock();
  EXPECT_EQ(std::memcmp(channel.buffer.as<float>() + 2, &bits, sizeof(bits)), 0) << "what is sent stays as it is";
  EXPECT_EQ(channel.digests.size(), 1u);
  return channel.digests.at(0);
}

// Different processors produce NaNs with different signs.
TEST(BlockGradientsTest, DigestsEveryNaNAlike) {
  const uint64_t digest = DigestOfGradientWith(0x7fc00000);
  EXPECT_EQ(DigestOfGradientWith(0xffc00000), digest);
  EXPECT_EQ(DigestOfGradientWith(0x7f800001), digest);
  EXPECT_NE(DigestOfGradientWith(0x7f800000), digest) << "an infinity";
}

TEST(BlockGradientsTest, TellsTheModelWhenNobodyWantsTheGradients) {
  const auto layout = *ParameterLayout::Create(OneVariable());
  const std::atomic<bool> wanted(false);
  BlockGradients sink(&layout, &wanted);
  RecordingChannel channel;
  v1::Token token;
  token.set_slot_count(1);
  sink.BeginBlock(&channel, token);
  sink.BeginSlot(0);
  EXPECT_FALSE(sink.OnLoss(1.0f));
}

}  // namespace
}  // namespace lockstep
