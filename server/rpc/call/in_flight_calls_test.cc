#include "lockstep/server/rpc/call/in_flight_calls.h"

#include <atomic>
#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(InFlightCallsTest, WithoutCallsThereIsNothingToWaitFor) { InFlightCalls().WaitUntilNone(); }

TEST(InFlightCallsTest, ACallThatIsGoneIsNotWaitedFor) {
  InFlightCalls calls;
  { const InFlightCalls::Member member(&calls); }
  calls.WaitUntilNone();
}

TEST(InFlightCallsTest, TheLastCallEndsTheWait) {
  InFlightCalls calls;
  auto first = std::make_unique<InFlightCalls::Member>(&calls);
  auto second = std::make_unique<InFlightCalls::Member>(&calls);
  std::atomic<bool> all_gone(false);
  std::thread waiter([&] {
    calls.WaitUntilNone();
    EXPECT_TRUE(all_gone);
  });
  first.reset();
  all_gone = true;
  second.reset();
  waiter.join();
}

}  // namespace
}  // namespace lockstep
