#include "lockstep/server/sync/workers/token_leases.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

const absl::Time kStart = absl::FromUnixSeconds(1000);
constexpr absl::Duration kLease = absl::Seconds(5);
constexpr absl::Duration kSecond = absl::Seconds(1);
const StepToken kToken{7, {2, 2}};

std::vector<uint64_t> Expire(absl::Time now, TokenLeases* leases) {
  std::vector<uint64_t> sessions;
  for (const TokenLease& lease : leases->Expire(now)) sessions.push_back(lease.session);
  return sessions;
}

TEST(TokenLeasesTest, AFrameOrHeartbeatRenewsTheLease) {
  TokenLeases leases(kLease);
  leases.Give(1, kToken, /*backup=*/true, kStart);
  leases.Give(2, kToken, /*backup=*/false, kStart);
  ASSERT_TRUE(leases.Find(1) != nullptr);
  EXPECT_EQ(leases.Find(1)->token, kToken);
  EXPECT_TRUE(leases.Find(1)->backup);
  EXPECT_TRUE(leases.Renew(2, kStart + 3 * kSecond));
  EXPECT_THAT(Expire(kStart + 4.9 * kSecond, &leases), ElementsAre());
  EXPECT_THAT(Expire(kStart + kLease, &leases), ElementsAre(1));
  EXPECT_FALSE(leases.Renew(1, kStart + kLease));
  EXPECT_THAT(Expire(kStart + 8 * kSecond, &leases), ElementsAre(2));
  EXPECT_TRUE(leases.empty());
}

TEST(TokenLeasesTest, ALeaseEndsByItsOwnDeadline) {
  TokenLeases leases(kLease);
  leases.Give(1, kToken, false, kStart);
  leases.Give(2, kToken, false, kStart);
  EXPECT_EQ(leases.Release(1)->issued, kStart);
  EXPECT_FALSE(leases.Release(1));
  leases.Clear();
  leases.Give(1, kToken, false, kStart + 3 * kSecond);
  EXPECT_THAT(Expire(kStart + 6 * kSecond, &leases), ElementsAre()) << "whatever the session held before";
  EXPECT_THAT(Expire(kStart + 8 * kSecond, &leases), ElementsAre(1)) << "the other one holds none";
}

TEST(TokenLeasesTest, ASessionThatIsGoneHoldsNoLease) {
  TokenLeases leases(kLease);
  leases.Give(1, kToken, false, kStart);
  EXPECT_TRUE(leases.Remove(1));
  EXPECT_FALSE(leases.Remove(1));
  EXPECT_EQ(leases.Find(1), nullptr);
  EXPECT_THAT(Expire(kStart + kLease, &leases), ElementsAre());
}

TEST(TokenLeasesTest, TimeThatAContributionWaitsIsNotItsWorkers) {
  TokenLeases leases(kLease);
  EXPECT_EQ(leases.Suspend(1, kStart), nullptr);
  leases.Give(1, kToken, false, kStart);
  EXPECT_EQ(leases.Resume(1, kStart), nullptr) << "it does not wait";
  ASSERT_NE(leases.Suspend(1, kStart + kSecond), nullptr);
  EXPECT_EQ(leases.Suspend(1, kStart + 2 * kSecond), nullptr) << "it waits already";
  const TokenLease* const lease = leases.Resume(1, kStart + 3 * kSecond);
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(lease->issued, kStart + 2 * kSecond);
  EXPECT_EQ(lease->deadline, kStart + kLease) << "its deadline is the same";
}

}  // namespace
}  // namespace lockstep
