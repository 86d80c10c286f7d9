#include "lockstep/server/sync/delivery/version_pins.h"

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/server/sync/step_connection.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<uint64_t> SessionsOf(const std::vector<PinHolder>& holders) {
  std::vector<uint64_t> sessions;
  for (const PinHolder& holder : holders) sessions.push_back(holder.session);
  return sessions;
}
std::vector<uint64_t> Excess(VersionPins* pins, int64_t current) { return SessionsOf(pins->FindExcess(current)); }

TEST(VersionPinsTest, APinKeepsItsMemoryUntilItIsDropped) {
  VersionPins pins(1);
  auto memory = std::make_shared<int>(5);
  const std::weak_ptr<int> alive = memory;
  const int* const address = memory.get();
  auto pin = pins.Pin(0, {1, {}}, std::move(memory));
  EXPECT_EQ(pin.get(), address);
  EXPECT_FALSE(alive.expired());
  pin.reset();
  EXPECT_TRUE(alive.expired());
}

TEST(VersionPinsTest, TheSessionsThatKeepTheOldestVersionsAreFound) {
  VersionPins pins(2);
  const auto memory = std::make_shared<int>();
  // Sessions 1 and 2 keep version 0. Session 2 also keeps version 1.
  std::vector<std::shared_ptr<const void>> kept = {pins.Pin(0, {1, {}}, memory), pins.Pin(0, {2, {}}, memory),
                                                   pins.Pin(1, {2, {}}, memory), pins.Pin(2, {3, {}}, memory),
                                                   pins.Pin(3, {4, {}}, memory)};
  EXPECT_THAT(Excess(&pins, 0), IsEmpty());
  EXPECT_THAT(Excess(&pins, 2), IsEmpty()) << "0 and 1 are old";
  EXPECT_THAT(Excess(&pins, 3), ElementsAre(1, 2)) << "they keep 0";
  EXPECT_THAT(Excess(&pins, 4), ElementsAre(1, 2)) << "of 0 to 3 the newest two may be kept";
}

TEST(VersionPinsTest, ConstantsAreOldOnceTheyAreReplaced) {
  VersionPins pins(0);
  const auto memory = std::make_shared<int>();
  std::vector<std::shared_ptr<const void>> kept;
  for (uint64_t session = 1; session <= 4; ++session) {
    kept.push_back(pins.PinConstants({session, {}}, memory));
    EXPECT_EQ(Excess(&pins, /*current=*/1000).size(), session == 4 ? 1 : 0) << "steps do not matter";
    pins.OnConstantsReplaced();
  }
  EXPECT_THAT(Excess(&pins, 1000), ElementsAre(1, 2)) << "of four replaced ones the newest two may be kept";
}

TEST(VersionPinsTest, WhoHasLetGoOfAVersionDoesNotAnswerForOthers) {
  VersionPins pins(1);
  const auto memory = std::make_shared<int>();
  const auto first = pins.Pin(0, {1, {}}, memory), second = pins.Pin(1, {2, {}}, memory);
  pins.Pin(0, {3, {}}, memory);
  EXPECT_THAT(Excess(&pins, 2), ElementsAre(1));
}

// A listener that ignores all events.
class Stream : public StepListener {
 public:
  void OnReplyReady() override {}
  void OnResume() override {}
  void OnClosed(const absl::Status&, bool) override {}
};

TEST(VersionPinsTest, AStreamThatIsOverStillCounts) {
  VersionPins pins(1);
  const auto memory = std::make_shared<int>();
  const auto first = std::make_shared<Stream>(), second = std::make_shared<Stream>();
  auto gone = std::make_shared<Stream>();
  const auto a = pins.Pin(0, {1, first}, memory), b = pins.Pin(1, {1, second}, memory),
             c = pins.Pin(1, {2, gone}, memory), d = pins.Pin(2, {1, second}, memory);
  gone.reset();
  const std::vector<PinHolder> found = pins.FindExcess(3);
  ASSERT_EQ(found.size(), 3u) << "two streams of session 1, one of which keeps 1 and 2, and one of session 2";
  EXPECT_THAT(SessionsOf(found), ElementsAre(1, 1, 2));
  EXPECT_NE(found[0].stream.lock(), found[1].stream.lock());
  EXPECT_EQ(found[2].stream.lock(), nullptr);
}

TEST(VersionPinsTest, WhatWasCurrentBeforeItWasReplacedIsOld) {
  VersionPins pins(1);
  const auto memory = std::make_shared<int>();
  std::vector<std::shared_ptr<const void>> kept;
  for (uint64_t session = 1; session <= 3; ++session) {
    kept.push_back(pins.Pin(5, {session, {}}, memory));
    if (session < 3) pins.OnCurrentReplaced();
  }
  EXPECT_THAT(Excess(&pins, 5), ElementsAre(1)) << "the second is old as well, the third current";
}

TEST(VersionPinsTest, ManyPinsThatAreDroppedLeaveTheOthersFound) {
  VersionPins pins(0);
  const auto memory = std::make_shared<int>();
  std::vector<std::shared_ptr<const void>> kept;
  for (int i = 0; i < 1000; ++i) {
    auto pin = pins.Pin(i, {static_cast<uint64_t>(i), {}}, memory);
    if (i % 400 == 0) kept.push_back(std::move(pin));
  }
  EXPECT_THAT(Excess(&pins, 1000), ElementsAre(0, 400, 800));
  EXPECT_THAT(Excess(&pins, 800), ElementsAre(0, 400));
}

}  // namespace
}  // namespace lockstep
