#include "lockstep/common/security/peer_identity.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(PeerIdentityTest, UriOfKitNamesRunAndRole) {
  const std::string uri = PeerUri("fashion", PeerRole::kWorker, "w-1");
  EXPECT_EQ(uri, "spiffe://lockstep/lockstep/fashion/worker/w-1");
  const auto identity = ParsePeerUri(uri);
  ASSERT_TRUE(identity.has_value());
  EXPECT_EQ(identity->uri, uri);
  EXPECT_EQ(identity->run, "spiffe://lockstep/lockstep/fashion");
  EXPECT_EQ(identity->role, PeerRole::kWorker);
}

TEST(PeerIdentityTest, DomainsOfOthersAreTaken) {
  const auto identity = ParsePeerUri("spiffe://cluster.local/lockstep/fashion/viewer");
  ASSERT_TRUE(identity.has_value());
  EXPECT_EQ(identity->role, PeerRole::kViewer);
  EXPECT_NE(identity->run, ParsePeerUri(PeerUri("fashion", PeerRole::kViewer, ""))->run);
}

TEST(PeerIdentityTest, OtherUrisGiveNoRole) {
  for (const std::string uri :
       {"", "spiffe://", "spiffe://d/lockstep/run", "spiffe://d/lockstep/run/admin", "spiffe://d/lockstep/run/local",
        "spiffe://d/lockstep/run/anonymous", "spiffe://d/lockstep//worker", "spiffe:///lockstep/run/worker",
        "spiffe://d/other/run/worker", "spiffe://d/lockstep/run/worker/a/b", "https://d/lockstep/run/worker",
        "spiffe://d/lockstep/run/worker/", "spiffe://d/lockstep/run/Worker", "spiffe://d/lockstep/r%20n/worker"}) {
    EXPECT_FALSE(ParsePeerUri(uri).has_value()) << uri;
  }
  EXPECT_FALSE(ParsePeerUri(absl::StrCat("spiffe://d/lockstep/", std::string(65, 'r'), "/worker")).has_value());
}

TEST(PeerIdentityTest, EveryRoleHasOneName) {
  for (const std::string& name : IssuedRoleNames()) EXPECT_EQ(PeerRoleName(*ParsePeerRole(name)), name);
  EXPECT_EQ(PeerRoleName(PeerRole::kAnonymous), "anonymous");
  EXPECT_EQ(PeerRoleName(PeerRole::kLocal), "local");
}

}  // namespace
}  // namespace lockstep
