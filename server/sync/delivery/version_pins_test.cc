#include "lockstep/server/sync/delivery/version_pins.h"

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(VersionPinsTest, APinKeepsItsMemoryUntilItIsDropped) {
  VersionPins pins(1);
  auto memory = std::make_shared<int>(5);
  const std::weak_ptr<int> alive = memory;
  const int* const address = memory.get();
  auto pin = pins.Pin(0, 1, std::move(memory));
  EXPECT_EQ(pin.get(), address);
  EXPECT_FALSE(alive.expired());
  pin.reset();
  EXPECT_TRUE(alive.expired());
}

TEST(VersionPinsTest, TheSessionsThatKeepTheOldestVersionsAreFound) {
  VersionPins pins(2);
  const auto memory = std::make_shared<int>();
  // Two keep version 0; session 2 keeps 1 as well.
  std::vector<std::shared_ptr<const void>> kept = {pins.Pin(0, 1, memory), pins.Pin(0, 2, memory),
                                                   pins.Pin(1, 2, memory), pins.Pin(2, 3, memory),
                                                   pins.Pin(3, 4, memory)};
  EXPECT_THAT(pins.FindExcess(0), IsEmpty());
  EXPECT_THAT(pins.FindExcess(2), IsEmpty()) << "0 and 1 are old";
  EXPECT_THAT(pins.FindExcess(3), ElementsAre(1, 2)) << "they keep 0";
  EXPECT_THAT(pins.FindExcess(4), ElementsAre(1, 2)) << "of 0 to 3 the newest two may be kept";
}

TEST(VersionPinsTest, WhoHasLetGoOfAVersionDoesNotAnswerForOthers) {
  VersionPins pins(1);
  const auto memory = std::make_shared<int>();
  const auto first = pins.Pin(0, 1, memory), second = pins.Pin(1, 2, memory);
  pins.Pin(0, 3, memory);
  EXPECT_THAT(pins.FindExcess(2), ElementsAre(1));
}

TEST(VersionPinsTest, AForgottenSessionCountsNoMore) {
  VersionPins pins(1);
  const auto memory = std::make_shared<int>();
  const auto first = pins.Pin(0, 1, memory), second = pins.Pin(1, 2, memory), third = pins.Pin(2, 3, memory);
  EXPECT_THAT(pins.FindExcess(3), ElementsAre(1, 2));
  pins.Forget(1);
  pins.Forget(3);
  EXPECT_THAT(pins.FindExcess(3), IsEmpty());
}

TEST(VersionPinsTest, ManyPinsThatAreDroppedLeaveTheOthersFound) {
  VersionPins pins(0);
  const auto memory = std::make_shared<int>();
  std::vector<std::shared_ptr<const void>> kept;
  for (int i = 0; i < 1000; ++i) {
    auto pin = pins.Pin(i, static_cast<uint64_t>(i), memory);
    if (i % 400 == 0) kept.push_back(std::move(pin));
  }
  EXPECT_THAT(pins.FindExcess(1000), ElementsAre(0, 400, 800));
  EXPECT_THAT(pins.FindExcess(800), ElementsAre(0, 400));
}

}  // namespace
}  // namespace lockstep
