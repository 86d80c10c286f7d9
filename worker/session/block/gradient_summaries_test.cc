#include "lockstep/worker/session/block/gradient_summaries.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/step/report_parts.h"
#include "lockstep/common/tensor/parameter_layout.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

class FakeSink : public GradientSink {
 public:
  explicit FakeSink(const v1::ModelSpec& model) {
    for (const v1::VariableSpec& variable : model.variables()) {
      gradients.emplace_back(static_cast<size_t>(variable.shape(0)));
    }
  }
  bool OnLoss(float) override { return true; }
  void OnUpdate(int, Elements) override {}
  absl::Status OnSummary(const v1::Summary& summary) override {
    bytes += static_cast<int64_t>(summary.ByteSizeLong());
    for (const auto& value : summary.value()) {
      calls.push_back(value.has_histo() ? absl::StrCat(value.tag(), " of ", value.histo().num())
                                        : absl::StrCat(value.tag(), " ", value.simple_value()));
    }
    return absl::OkStatus();
  }
  float* GradientBuffer(int variable) override { return gradients[variable].data(); }
  void OnGradient(int variable) override { calls.push_back(absl::StrCat("gradient ", variable)); }

  std::vector<std::vector<float>> gradients;
  std::vector<std::string> calls;
  int64_t bytes = 0;
};

v1::ModelSpec ModelOf(const std::vector<int64_t>& elements) {
  v1::ModelSpec model;
  for (const int64_t size : elements) {
    v1::VariableSpec* const variable = model.add_variables();
    variable->set_name(absl::StrCat("v", model.variables_size() - 1));
    variable->set_dtype(v1::DT_FLOAT);
    variable->add_shape(size);
    variable->set_trainable(true);
  }
  return model;
}

SlotKey KeyOf(int64_t step, int64_t slot) {
  SlotKey key;
  key.step = step;
  key.slot = slot;
  return key;
}

class GradientSummariesTest : public ::testing::Test {
 protected:
  GradientSummariesTest() {
    sink_.gradients[0] = {3, 4};
    sink_.gradients[2] = {-2};
  }
  std::vector<std::string> Compute(int64_t step, int64_t slot) {
    sink_.calls.clear();
    summaries_.BeginSlot(KeyOf(step, slot));
    EXPECT_TRUE(summaries_.OnLoss(1));
    summaries_.OnGradient(2);
    summaries_.OnGradient(0);
    return sink_.calls;
  }

  static v1::ModelSpec ModelWithoutTrainingOfTheSecond() {
    v1::ModelSpec model = ModelOf({2, 1, 1});
    model.mutable_variables(1)->set_trainable(false);
    return model;
  }

  const v1::ModelSpec model_ = ModelWithoutTrainingOfTheSecond();
  FakeSink sink_{model_};
  GradientSummaries summaries_{4, model_, &sink_};
};

TEST_F(GradientSummariesTest, ReportsTheFirstSlotBeforeItsGradients) {
  EXPECT_THAT(Compute(8, 0), ElementsAre("v0/gradient of 2", "v0/gradient_norm 5", "v2/gradient of 1",
                                         "v2/gradient_norm 2", "gradient 2", "gradient 0"));
}

TEST_F(GradientSummariesTest, PassesOnAllOtherSlots) {
  EXPECT_THAT(Compute(8, 1), ElementsAre("gradient 2", "gradient 0"));
  EXPECT_THAT(Compute(9, 0), ElementsAre("gradient 2", "gradient 0"));
  GradientSummaries off(0, model_, &sink_);
  off.BeginSlot(KeyOf(8, 0));
  sink_.calls.clear();
  off.OnGradient(2);
  EXPECT_THAT(sink_.calls, ElementsAre("gradient 2"));
}

TEST_F(GradientSummariesTest, ForgetsASlotThatWasBrokenOff) {
  summaries_.BeginSlot(KeyOf(4, 0));
  summaries_.OnGradient(2);
  EXPECT_EQ(Compute(8, 0).size(), 6u);
}

TEST_F(GradientSummariesTest, ANonFiniteGradientHasNoHistogram) {
  sink_.gradients[0][1] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(Compute(4, 0), ElementsAre("v0/gradient_norm inf", "v2/gradient of 1", "v2/gradient_norm 2", "gradient 2",
                                         "gradient 0"));
}

// MaxSummaryBytes is the limit that applies on the wire.
TEST(GradientSummariesSizeTest, TheLargestSummaryFitsIntoAReport) {
  for (const int64_t elements : {1, 2, 100, 775, 20000}) {
    const v1::ModelSpec model = ModelOf(std::vector<int64_t>(30, elements));
    FakeSink sink(model);
    // Puts each element in its own bucket, with an empty one before it, as long as there are buckets.
    for (std::vector<float>& gradient : sink.gradients) {
      for (size_t i = 0; i < gradient.size(); ++i) {
        const double magnitude = 1.05e-12 * std::pow(1.1, static_cast<double>(i / 2 * 2 % 770));
        gradient[i] = static_cast<float>(i % 2 == 0 ? magnitude : -magnitude);
        if (i >= 770) gradient[i] = static_cast<float>(1.05e-12 * std::pow(1.1, static_cast<double>(i % 773)));
      }
    }
    GradientSummaries summaries(1, model, &sink);
    summaries.BeginSlot(SlotKey());
    for (int i = 0; i < model.variables_size(); ++i) summaries.OnGradient(i);
    EXPECT_GT(sink.bytes, 0);
    EXPECT_LE(sink.bytes, MaxSummaryBytes(ParameterLayout::Create(model).value()) - kMaxSummaryBytes) << elements;
  }
}

}  // namespace
}  // namespace lockstep
