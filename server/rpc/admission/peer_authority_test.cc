#include "lockstep/server/rpc/admission/peer_authority.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/security/certificate_authority.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr char kStep[] = "/lockstep.v1.ChiefService/Step";

// A call that remembers why it was ended.
class WatchedCall : public RevocableCall {
 public:
  void OnRevoked(const absl::Status& why) override { why_ = why; }
  const absl::Status& why() const { return why_; }

 private:
  absl::Status why_;
};

class PeerAuthorityTest : public ::testing::Test {
 protected:
  PeerAuthorityTest() {
    static int number = 0;
    folder_ = absl::StrCat(::testing::TempDir(), "/peers", ++number);
    EXPECT_EQ(CreateAuthority(fs_, Path("ca"), "test", validity_), absl::OkStatus());
    Issue("chief", PeerRole::kChief);
    Issue("worker", PeerRole::kWorker);
    PeerAuthority::Options options;
    options.directory = TlsDirectory(Path("chief"));
    options.period = absl::ZeroDuration();
    authority_ = PeerAuthority::Create(options).value();
  }
  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  void Issue(const std::string& kit, PeerRole role) {
    EXPECT_EQ(IssueKit(fs_, Path("ca"), {role, "", {}, validity_}, Path(kit)), absl::OkStatus());
  }
  void Copy(const std::string& from, const std::string& to) {
    EXPECT_EQ(WriteFileAtomically(fs_, Path(to), ReadFile(fs_, Path(from)).value()), absl::OkStatus());
  }
  absl::StatusOr<CallPeer> Admit(const std::string& kit) {
    const std::string certificate = ReadFile(fs_, Path(absl::StrCat(kit, "/tls.crt"))).value();
    PeerAuthority::Evidence evidence;
    evidence.over_tls = true;
    evidence.certificate = certificate;
    return authority_->Admit(evidence, kStep);
  }

  FileSystem* const fs_ = FileSystem::Real();
  const ValidityPeriod validity_ = {absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(1)};
  std::string folder_;
  SimulatedClock clock_;
  std::unique_ptr<PeerAuthority> authority_;
};

TEST_F(PeerAuthorityTest, CertificatesGiveRoles) {
  const auto worker = Admit("worker");
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(worker->role, PeerRole::kWorker);
  EXPECT_EQ(worker->name, "spiffe://lockstep/lockstep/test/worker");
  EXPECT_TRUE(absl::IsPermissionDenied(Admit("chief").status()));
  EXPECT_EQ(authority_->Admit({}, kStep)->name, "local") << "over a unix socket";
  PeerAuthority::Evidence nothing;
  nothing.over_tls = true;
  EXPECT_TRUE(absl::IsUnauthenticated(authority_->Admit(nothing, kStep).status()));
  v1::RunCounters counters;
  authority_->FillCounters(&counters);
  EXPECT_EQ(counters.denied_calls(), 2);
  EXPECT_EQ(counters.certificate_expires_ms() / 1000, absl::ToUnixSeconds(validity_.end));
}

TEST_F(PeerAuthorityTest, WithoutDirectoryAllAreServed) {
  const auto open = PeerAuthority::Create({}).value();
  EXPECT_TRUE(open->trusts_all());
  EXPECT_EQ(open->Admit({}, kStep)->name, "");
  v1::RunCounters counters;
  open->FillCounters(&counters);
  EXPECT_EQ(counters.certificate_expires_ms(), 0);
}

TEST_F(PeerAuthorityTest, RevocationEndsLastingCalls) {
  const auto revoked = std::make_shared<WatchedCall>(), other = std::make_shared<WatchedCall>();
  Issue("other", PeerRole::kWorker);
  authority_->Watch(*Admit("worker"), revoked);
  authority_->Watch(*Admit("other"), other);
  authority_->Sweep();
  EXPECT_EQ(revoked->why(), absl::OkStatus());
  ASSERT_EQ(RevokeCertificate(fs_, Path("ca"), Path("worker/tls.crt"), absl::Now()), absl::OkStatus());
  Copy("ca/crl.pem", "chief/crl.pem");
  authority_->Sweep();
  EXPECT_TRUE(absl::IsAborted(revoked->why())) << revoked->why();
  EXPECT_THAT(std::string(revoked->why().message()), HasSubstr("is revoked"));
  EXPECT_EQ(other->why(), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnauthenticated(Admit("worker").status()));
  EXPECT_TRUE(Admit("other").ok());
}

TEST_F(PeerAuthorityTest, RemovedTokenEndsLastingCalls) {
  ASSERT_EQ(WriteFileAtomically(fs_, Path("tokens"), "the-old-token-0123\nthe-new-token-0123\n"), absl::OkStatus());
  PeerAuthority::Options options;
  options.directory = TlsDirectory(Path("chief"));
  options.token_file = Path("tokens");
  options.period = absl::ZeroDuration();
  authority_ = PeerAuthority::Create(options).value();
  PeerAuthority::Evidence evidence;
  evidence.over_tls = true;
  evidence.authorization = "Bearer the-old-token-0123";
  const auto peer = authority_->Admit(evidence, "/lockstep.v1.ChiefService/WatchRun");
  ASSERT_TRUE(peer.ok()) << peer.status();
  const auto call = std::make_shared<WatchedCall>();
  authority_->Watch(*peer, call);
  authority_->Sweep();
  EXPECT_EQ(call->why(), absl::OkStatus());
  ASSERT_EQ(WriteFileAtomically(fs_, Path("tokens"), "the-new-token-0123\n"), absl::OkStatus());
  authority_->Sweep();
  EXPECT_TRUE(absl::IsAborted(call->why())) << call->why();
}

TEST_F(PeerAuthorityTest, DamagedFilesChangeNothing) {
  ASSERT_EQ(WriteFileAtomically(fs_, Path("chief/ca.crt"), "half a fi"), absl::OkStatus());
  authority_->Sweep();
  EXPECT_TRUE(Admit("worker").ok());
}

TEST_F(PeerAuthorityTest, RemovedAuthorityEndsLastingCalls) {
  const auto call = std::make_shared<WatchedCall>();
  authority_->Watch(*Admit("worker"), call);
  ASSERT_EQ(CreateAuthority(fs_, Path("new"), "test", validity_), absl::OkStatus());
  Copy("new/ca.crt", "chief/ca.crt");
  authority_->Sweep();
  EXPECT_TRUE(absl::IsAborted(call->why()));
  EXPECT_TRUE(absl::IsUnauthenticated(Admit("worker").status()));
}

TEST_F(PeerAuthorityTest, ExpiryEndsLastingCalls) {
  clock_.SetWallClock(absl::Now() - clock_.WallTime());
  PeerAuthority::Options options;
  options.directory = TlsDirectory(Path("chief"));
  options.clock = &clock_;
  authority_ = PeerAuthority::Create(options).value();
  const auto call = std::make_shared<WatchedCall>();
  authority_->Watch(*Admit("worker"), call);
  clock_.Advance(absl::Minutes(50));
  authority_->Sweep();
  EXPECT_EQ(call->why(), absl::OkStatus());
  clock_.Advance(absl::Minutes(20));
  authority_->Sweep();
  EXPECT_TRUE(absl::IsAborted(call->why())) << call->why();
  EXPECT_THAT(std::string(call->why().message()), HasSubstr("has expired"));
  EXPECT_TRUE(absl::IsUnauthenticated(Admit("worker").status()));
}

TEST_F(PeerAuthorityTest, WrongFilesAreNamedAtTheStart) {
  PeerAuthority::Options options;
  options.directory = TlsDirectory(Path("absent"));
  EXPECT_THAT(std::string(PeerAuthority::Create(options).status().message()), HasSubstr("absent/ca.crt"));
  options.directory = TlsDirectory("");
  options.token_file = "tokens";
  EXPECT_TRUE(absl::IsInvalidArgument(PeerAuthority::Create(options).status()));
}

}  // namespace
}  // namespace lockstep
