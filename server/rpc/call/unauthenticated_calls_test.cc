#include "lockstep/server/rpc/call/unauthenticated_calls.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

class NumberedCall : public EvictableCall {
 public:
  NumberedCall(int number, std::vector<int>* evicted) : number_(number), evicted_(evicted) {}
  void OnEvicted() override { evicted_->push_back(number_); }

 private:
  const int number_;
  std::vector<int>* const evicted_;
};

class UnauthenticatedCallsTest : public ::testing::Test {
 protected:
  static UnauthenticatedCalls::Options Limits() {
    UnauthenticatedCalls::Options options;
    options.most = 3;
    options.most_young = 5;
    options.patience = absl::Seconds(1);
    return options;
  }
  UnauthenticatedCallsTest() : options_(Limits()) {
    options_.clock = &clock_;
    calls_ = std::make_unique<UnauthenticatedCalls>(options_);
    for (int i = 0; i < 9; ++i) all_.push_back(std::make_shared<NumberedCall>(i, &evicted_));
  }
  void Enter(int first, int last) {
    for (int i = first; i <= last; ++i) calls_->Enter(all_[i]);
  }

  SimulatedClock clock_;
  UnauthenticatedCalls::Options options_;
  std::unique_ptr<UnauthenticatedCalls> calls_;
  std::vector<int> evicted_;
  std::vector<std::shared_ptr<NumberedCall>> all_;
};

TEST_F(UnauthenticatedCallsTest, AllMayStayForAMoment) {
  Enter(0, 4);
  clock_.Advance(absl::Milliseconds(999));
  calls_->Sweep();
  EXPECT_THAT(evicted_, ElementsAre());
}

TEST_F(UnauthenticatedCallsTest, TheOldestOfTooManyGoWhenTheyStay) {
  Enter(0, 3);
  clock_.Advance(absl::Milliseconds(500));
  Enter(4, 4);
  clock_.Advance(absl::Milliseconds(500));
  calls_->Sweep();
  EXPECT_THAT(evicted_, ElementsAre(0, 1)) << "three may stay as long as they like";
  clock_.Advance(absl::Seconds(10));
  Enter(5, 5);
  EXPECT_THAT(evicted_, ElementsAre(0, 1, 2)) << "one that comes makes the oldest go";
  EXPECT_EQ(calls_->num_evicted(), 3);
}

TEST_F(UnauthenticatedCallsTest, EvictsTheFirstOfTooManyYoungOnes) {
  Enter(0, 6);
  EXPECT_THAT(evicted_, ElementsAre(0, 1));
}

TEST_F(UnauthenticatedCallsTest, ForgetsCallsThatHaveLeft) {
  Enter(0, 6);
  calls_->Leave(all_[3].get());
  calls_->Leave(all_[3].get());
  calls_->Leave(all_[0].get());
  Enter(7, 7);
  EXPECT_THAT(evicted_, ElementsAre(0, 1));
  Enter(8, 8);
  EXPECT_THAT(evicted_, ElementsAre(0, 1, 2));
  EXPECT_EQ(all_[3].use_count(), 1);
  EXPECT_EQ(all_[2].use_count(), 1);
  EXPECT_EQ(all_[8].use_count(), 2);
}

}  // namespace
}  // namespace lockstep
