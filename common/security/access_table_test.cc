#include "lockstep/common/security/access_table.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr char kStatus[] = "/lockstep.v1.ChiefService/GetStatus";
constexpr char kStep[] = "/lockstep.v1.ChiefService/Step";
constexpr char kEnd[] = "/lockstep.v1.ChiefService/RequestEnd";

TEST(AccessTableTest, TextShowsEachRoleAndCall) {
  EXPECT_EQ(AccessTableText(),
            "                              anonymous    viewer    reader    worker  operator     local\n"
            "Health/Check                        yes       yes       yes       yes       yes       yes\n"
            "ChiefService/GetStatus                -       yes       yes       yes       yes       yes\n"
            "ChiefService/WatchRun                 -       yes       yes       yes       yes       yes\n"
            "ChiefService/ReadVariables            -         -       yes       yes       yes       yes\n"
            "ChiefService/GetRunSpec               -         -         -       yes         -       yes\n"
            "ChiefService/OpenSession              -         -         -       yes         -       yes\n"
            "ChiefService/SetInitialValues         -         -         -       yes         -       yes\n"
            "ChiefService/GetCanaryValues          -         -         -       yes         -       yes\n"
            "ChiefService/Heartbeat                -         -         -       yes         -       yes\n"
            "ChiefService/Step                     -         -         -       yes         -       yes\n"
            "ChiefService/AddSummary               -         -         -       yes         -       yes\n"
            "ChiefService/RequestEnd               -         -         -       yes       yes       yes\n");
}

TEST(AccessTableTest, UnknownCallsAreForLocalPeersAlone) {
  for (const PeerRole role : {PeerRole::kAnonymous, PeerRole::kViewer, PeerRole::kReader, PeerRole::kWorker,
                              PeerRole::kOperator, PeerRole::kChief}) {
    EXPECT_FALSE(MayCall(role, "/lockstep.v1.ChiefService/New"));
  }
  EXPECT_TRUE(MayCall(PeerRole::kLocal, "/lockstep.v1.ChiefService/New")) << "the acceptor answers UNIMPLEMENTED";
}

TEST(AccessTableTest, ChiefHasRightsOfOperator) {
  EXPECT_TRUE(MayCall(PeerRole::kChief, kEnd));
  EXPECT_FALSE(MayCall(PeerRole::kChief, kStep));
}

TEST(AccessTableTest, RefusalNamesPeerAndRoles) {
  const absl::Status anonymous = CheckAccess(PeerRole::kAnonymous, "", kStatus);
  EXPECT_TRUE(absl::IsUnauthenticated(anonymous));
  EXPECT_EQ(
      anonymous.message(),
      "ChiefService/GetStatus is for the roles viewer, reader, worker, operator, local; the peer is anonymous: it "
      "has shown no certificate with a role");
  const absl::Status viewer = CheckAccess(PeerRole::kViewer, "spiffe://x", kStep);
  EXPECT_TRUE(absl::IsPermissionDenied(viewer));
  EXPECT_EQ(viewer.message(), "ChiefService/Step is for the roles worker, local; the peer is spiffe://x, a viewer");
  EXPECT_TRUE(CheckAccess(PeerRole::kWorker, "w", kStep).ok());
}

}  // namespace
}  // namespace lockstep
