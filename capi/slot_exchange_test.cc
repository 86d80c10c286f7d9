#include "lockstep/capi/slot_exchange.h"

#include <xmmintrin.h>

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::ModelSpec Model() {
  v1::ModelSpec model;
  for (const char* name : {"kernel", "mean"}) {
    v1::VariableSpec* const variable = model.add_variables();
    variable->set_name(name);
    variable->set_dtype(v1::DT_FLOAT);
    variable->add_shape(2);
    variable->set_trainable(std::string(name) == "kernel");
  }
  model.add_update_ops()->set_variable("mean");
  return model;
}

class RecordingSink : public GradientSink {
 public:
  bool OnLoss(float loss) override {
    calls.push_back("loss");
    return wanted;
  }
  void OnWeight(float weight) override { calls.push_back(absl::StrCat("weight ", weight)); }
  void OnUpdate(int, Elements) override { calls.push_back("update"); }
  absl::Status OnMetric(const std::string& name, float value) override {
    calls.push_back(absl::StrCat(name, " ", value));
    return absl::OkStatus();
  }
  void RequestStop() override { calls.push_back("stop"); }
  float* GradientBuffer(int) override { return gradient.data(); }
  void OnGradient(int) override { calls.push_back("gradient"); }

  bool wanted = true;
  std::vector<std::string> calls;
  std::array<float, 2> gradient;
};

class SlotExchangeTest : public ::testing::Test {
 protected:
  ~SlotExchangeTest() override {
    exchange_.Cancel();
    if (worker_.joinable()) worker_.join();
  }
  // Offers slot 3 of step 812 from the worker's thread.
  void Offer() {
    slot_.key.step = 812;
    slot_.key.slot = 3;
    worker_ = std::thread([this] { result_ = exchange_.Compute(slot_, &sink_); });
  }
  absl::Status Result() {
    worker_.join();
    return result_;
  }
  void OfferAndTake() {
    Offer();
    ASSERT_TRUE(exchange_.Take(absl::InfiniteDuration()).ok());
  }

  const ParameterLayout layout_ = ParameterLayout::Create(Model()).value();
  SlotExchange exchange_{&layout_};
  RecordingSink sink_;
  ForeignSlot slot_;
  absl::Status result_;
  std::thread worker_;
};

TEST_F(SlotExchangeTest, PassesResultsToTheSinkInOrder) {
  Offer();
  const auto taken = exchange_.Take(absl::InfiniteDuration());
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->key.slot, 3);
  EXPECT_TRUE(exchange_.Loss(0.5f).ok());
  EXPECT_TRUE(exchange_.Weight(2.5f).ok());
  EXPECT_TRUE(exchange_.Metric("accuracy", 1).ok());
  EXPECT_TRUE(exchange_.RequestFinish().ok());
  const std::array<float, 2> mean = {1, 2};
  EXPECT_TRUE(exchange_.Update(0, mean).ok());
  EXPECT_EQ(exchange_.Gradient(0).value(), sink_.gradient.data());
  EXPECT_TRUE(exchange_.Ready(0).ok());
  EXPECT_TRUE(exchange_.Finish().ok());
  EXPECT_TRUE(Result().ok());
  EXPECT_THAT(sink_.calls, ElementsAre("loss", "weight 2.5", "accuracy 1", "stop", "update", "gradient"));
}

TEST_F(SlotExchangeTest, RejectsCallsWithoutAnOpenSlot) {
  for (const absl::Status& status :
       {exchange_.Loss(1), exchange_.Weight(1), exchange_.Metric("m", 1), exchange_.Ready(0), exchange_.RequestFinish(),
        exchange_.Finish(), exchange_.Drop()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(exchange_.Take(absl::ZeroDuration()).status()));
}

TEST_F(SlotExchangeTest, RejectsCallsOutOfOrder) {
  OfferAndTake();
  const std::array<float, 2> mean = {1, 2};
  EXPECT_TRUE(absl::IsFailedPrecondition(exchange_.Take(absl::ZeroDuration()).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(exchange_.Update(0, mean)));
  EXPECT_TRUE(absl::IsFailedPrecondition(exchange_.Ready(0)));
  EXPECT_TRUE(absl::IsFailedPrecondition(exchange_.Weight(1)));
  EXPECT_TRUE(exchange_.Loss(1).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(exchange_.Loss(1)));
  EXPECT_THAT(std::string(exchange_.Ready(0).message()), HasSubstr("no update of \"mean\""));
  EXPECT_TRUE(exchange_.Update(0, mean).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(exchange_.Update(0, mean)));
  EXPECT_THAT(std::string(exchange_.Ready(0).message()), HasSubstr("memory was not asked for"));
  EXPECT_TRUE(exchange_.Gradient(0).ok());
  EXPECT_TRUE(exchange_.Ready(0).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(exchange_.Ready(0)));
  EXPECT_TRUE(absl::IsFailedPrecondition(exchange_.Metric("late", 1)));
  EXPECT_TRUE(absl::IsFailedPrecondition(exchange_.Weight(1)));
}

TEST_F(SlotExchangeTest, RefusesWrongAndSecondWeights) {
  OfferAndTake();
  ASSERT_TRUE(exchange_.Loss(1).ok());
  EXPECT_EQ(exchange_.Weight(-1).message(),
            "the weight of slot 3 of step 812 is -1, must be a finite number, 0 or more");
  EXPECT_TRUE(absl::IsInvalidArgument(exchange_.Weight(std::numeric_limits<float>::infinity())));
  EXPECT_TRUE(absl::IsInvalidArgument(exchange_.Weight(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(exchange_.Weight(0).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(exchange_.Weight(1)));
}

TEST_F(SlotExchangeTest, NamesWhatAnArgumentDoesNotFit) {
  OfferAndTake();
  ASSERT_TRUE(exchange_.Loss(1).ok());
  const std::array<float, 3> three = {};
  EXPECT_EQ(exchange_.Update(0, three).message(), "the update of \"mean\" has 3 elements, the variable has 2");
  const std::array<int64_t, 1> integer = {};
  EXPECT_EQ(exchange_.Update(0, integer).message(), "the update of \"mean\" is int64, the variable is float32");
  EXPECT_EQ(exchange_.Update(1, three).message(), "there is no update op 1; the model has 1");
  EXPECT_EQ(exchange_.Gradient(7).status().message(), "there is no variable 7; the model has 2");
  EXPECT_THAT(std::string(exchange_.Gradient(1).status().message()), HasSubstr("\"mean\" is not trainable"));
  EXPECT_EQ(exchange_.Finish().message(), "variable \"kernel\" has no gradient in slot 3 of step 812");
}

TEST_F(SlotExchangeTest, ASlotThatIsNotWantedIsDropped) {
  sink_.wanted = false;
  OfferAndTake();
  EXPECT_TRUE(absl::IsCancelled(exchange_.Loss(1)));
  EXPECT_TRUE(exchange_.Drop().ok());
  EXPECT_TRUE(absl::IsCancelled(Result()));
}

TEST_F(SlotExchangeTest, StopWithdrawsASlotThatNobodyHolds) {
  Offer();
  exchange_.Stop();
  EXPECT_TRUE(absl::IsCancelled(Result()));
}

TEST_F(SlotExchangeTest, StopLeavesTheOpenSlotToTheProgram) {
  OfferAndTake();
  exchange_.Stop();
  EXPECT_TRUE(exchange_.Loss(1).ok());
  EXPECT_TRUE(exchange_.Drop().ok());
  EXPECT_TRUE(absl::IsCancelled(Result()));
}

TEST_F(SlotExchangeTest, CancelTakesTheOpenSlotAway) {
  OfferAndTake();
  exchange_.Cancel();
  EXPECT_TRUE(absl::IsCancelled(Result()));
  EXPECT_TRUE(absl::IsFailedPrecondition(exchange_.Loss(1)));
}

TEST_F(SlotExchangeTest, TakeReturnsTheEnd) {
  exchange_.Close(absl::OkStatus());
  EXPECT_TRUE(absl::IsOutOfRange(exchange_.Take(absl::InfiniteDuration()).status()));
  exchange_.Close(absl::UnavailableError("no chief"));
  EXPECT_TRUE(absl::IsUnavailable(exchange_.Take(absl::InfiniteDuration()).status()));
}

TEST_F(SlotExchangeTest, FunctionRunsInTheWorkersThread) {
  Offer();
  std::thread::id thread;
  int calls = 0;
  const absl::Status left = exchange_.Run(absl::InfiniteDuration(), [&](const ForeignSlot& slot) {
    thread = std::this_thread::get_id();
    EXPECT_EQ(slot.key.step, 812);
    EXPECT_TRUE(exchange_.Loss(1).ok());
    EXPECT_TRUE(exchange_.Drop().ok());
    ++calls;
    return false;
  });
  EXPECT_TRUE(absl::IsCancelled(left)) << left;
  EXPECT_EQ(thread, worker_.get_id());
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(absl::IsCancelled(Result()));
  EXPECT_THAT(sink_.calls, ElementsAre("loss"));
}

TEST_F(SlotExchangeTest, RunReturnsTheEnd) {
  const auto function = [](const ForeignSlot&) { return true; };
  EXPECT_TRUE(absl::IsDeadlineExceeded(exchange_.Run(absl::ZeroDuration(), function)));
  exchange_.Close(absl::UnavailableError("no chief"));
  EXPECT_TRUE(absl::IsUnavailable(exchange_.Run(absl::InfiniteDuration(), function)));
}

TEST_F(SlotExchangeTest, FunctionMustFinishItsSlot) {
  Offer();
  const absl::Status left = exchange_.Run(absl::InfiniteDuration(), [](const ForeignSlot&) { return true; });
  EXPECT_EQ(left, absl::FailedPreconditionError("slot 3 of step 812 is still open; finish or drop it first"));
  EXPECT_TRUE(exchange_.Drop().ok());
  EXPECT_TRUE(absl::IsCancelled(Result()));
}

TEST_F(SlotExchangeTest, FunctionMustKeepTheRounding) {
  const auto round_down = [&](const ForeignSlot&) {
    EXPECT_TRUE(exchange_.Drop().ok());
    _mm_setcsr(_mm_getcsr() | 0x2000);
    return true;
  };
  worker_ = std::thread([this] {
    exchange_.Compute(slot_, &sink_).IgnoreError();
    result_ = exchange_.Compute(slot_, &sink_);
  });
  const absl::Status left = exchange_.Run(absl::InfiniteDuration(), round_down);
  EXPECT_TRUE(absl::IsFailedPrecondition(left)) << left;
  exchange_.Stop();
  EXPECT_TRUE(absl::IsCancelled(Result()));
}

TEST_F(SlotExchangeTest, AThreadThatRoundsOtherwiseGetsNoSlot) {
  Offer();
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8000);
  const absl::Status status = exchange_.Take(absl::InfiniteDuration()).status();
  _mm_setcsr(mode);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

}  // namespace
}  // namespace lockstep
