#include "lockstep/common/security/certificate_authority.h"

#include <sys/stat.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/security/tls_directory.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class CertificateAuthorityTest : public ::testing::Test {
 protected:
  CertificateAuthorityTest() {
    static int number = 0;
    folder_ = absl::StrCat(::testing::TempDir(), "/authority", ++number);
    EXPECT_TRUE(CreateAuthority(fs_, Path("ca"), "fashion", Years(10)).ok());
  }
  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  ValidityPeriod Years(int years) const { return {now_ - absl::Hours(1), now_ + years * absl::Hours(24 * 365)}; }
  absl::Status Issue(PeerRole role, const std::string& kit) {
    KitRequest request;
    request.role = role;
    request.validity = Years(1);
    return IssueKit(fs_, Path("ca"), request, Path(kit));
  }
  absl::Status Check(const std::string& kit, TlsDirectory::End end, absl::Time now) const {
    return TlsDirectory(Path(kit)).Check(fs_, end, now);
  }
  void Copy(const std::string& from, const std::string& to) {
    ASSERT_TRUE(WriteFileAtomically(fs_, Path(to), ReadFile(fs_, Path(from)).value()).ok());
  }
  void ExpectRefused(const std::string& kit, TlsDirectory::End end, const std::string& why) {
    const absl::Status status = Check(kit, end, now_);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }

  FileSystem* const fs_ = FileSystem::Real();
  const absl::Time now_ = absl::Now();
  std::string folder_;
};

TEST_F(CertificateAuthorityTest, KitsServeTheirEnds) {
  ASSERT_TRUE(Issue(PeerRole::kChief, "chief").ok());
  ASSERT_TRUE(Issue(PeerRole::kWorker, "worker").ok());
  EXPECT_EQ(Check("chief", TlsDirectory::End::kServer, now_), absl::OkStatus());
  EXPECT_EQ(Check("chief", TlsDirectory::End::kClient, now_), absl::OkStatus());
  EXPECT_EQ(Check("worker", TlsDirectory::End::kClient, now_), absl::OkStatus());
  ExpectRefused("worker", TlsDirectory::End::kServer,
                "it is for the role worker; a chief needs one for the role chief");
  const Certificate worker = TlsDirectory(Path("worker")).ReadCertificate(fs_).value();
  EXPECT_EQ(worker.name(), "spiffe://lockstep/lockstep/fashion/worker");
}

TEST_F(CertificateAuthorityTest, KeysAreForTheirOwnerAlone) {
  ASSERT_TRUE(Issue(PeerRole::kWorker, "worker").ok());
  for (const char* const name : {"ca/ca.key", "worker/tls.key"}) {
    struct stat file;
    ASSERT_EQ(stat(Path(name).c_str(), &file), 0) << name;
    EXPECT_EQ(file.st_mode & 0777, 0600u) << name;
  }
}

TEST_F(CertificateAuthorityTest, SecondAuthorityIsRefused) {
  EXPECT_TRUE(absl::IsAlreadyExists(CreateAuthority(fs_, Path("ca"), "fashion", Years(10))));
  EXPECT_TRUE(absl::IsInvalidArgument(CreateAuthority(fs_, Path("other"), "a/b", Years(10))));
}

TEST_F(CertificateAuthorityTest, KitNeedsAuthority) {
  const absl::Status status = IssueKit(fs_, Path("none"), KitRequest(), Path("kit"));
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("lockstep certs init"));
}

TEST_F(CertificateAuthorityTest, WrongFilesAreNamed) {
  ASSERT_TRUE(Issue(PeerRole::kWorker, "worker").ok());
  ASSERT_TRUE(Issue(PeerRole::kWorker, "other").ok());
  Copy("other/tls.key", "worker/tls.key");
  ExpectRefused("worker", TlsDirectory::End::kClient, "tls.key: it is not the key of the certificate in tls.crt");
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("other/tls.key"), "no key").ok());
  ExpectRefused("other", TlsDirectory::End::kClient, "tls.key: it has no unencrypted private key");
  ASSERT_TRUE(fs_->Remove(Path("other/tls.key")).ok());
  ExpectRefused("other", TlsDirectory::End::kClient, "tls.key");
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("other/tls.crt"), "nothing").ok());
  ExpectRefused("other", TlsDirectory::End::kClient, "tls.crt: it has no certificate in PEM format");
  ExpectRefused("absent", TlsDirectory::End::kClient, "ca.crt");
}

TEST_F(CertificateAuthorityTest, ForeignAuthorityIsRefused) {
  ASSERT_TRUE(Issue(PeerRole::kWorker, "worker").ok());
  ASSERT_TRUE(CreateAuthority(fs_, Path("strangers"), "fashion", Years(1)).ok());
  Copy("strangers/ca.crt", "worker/ca.crt");
  ExpectRefused("worker", TlsDirectory::End::kClient, "is refused: ");
}

TEST_F(CertificateAuthorityTest, ExpiredCertificateIsRefused) {
  ASSERT_TRUE(Issue(PeerRole::kWorker, "worker").ok());
  const absl::Status status = Check("worker", TlsDirectory::End::kClient, now_ + 2 * absl::Hours(24 * 365));
  EXPECT_THAT(std::string(status.message()), HasSubstr("certificate has expired (20"));
}

TEST_F(CertificateAuthorityTest, RevokedCertificatesAreRefused) {
  ASSERT_TRUE(Issue(PeerRole::kWorker, "first").ok());
  ASSERT_TRUE(Issue(PeerRole::kWorker, "second").ok());
  ASSERT_TRUE(Issue(PeerRole::kWorker, "third").ok());
  ASSERT_EQ(RevokeCertificate(fs_, Path("ca"), Path("first/tls.crt"), now_), absl::OkStatus());
  ASSERT_EQ(RevokeCertificate(fs_, Path("ca"), Path("second/tls.crt"), now_), absl::OkStatus());
  const TrustedAuthorities trusted = TlsDirectory(Path("ca")).ReadAuthorities(fs_).value();
  for (const char* const kit : {"first", "second"}) {
    const absl::Status status = trusted.Verify(TlsDirectory(Path(kit)).ReadCertificate(fs_).value(), now_);
    EXPECT_THAT(std::string(status.message()), HasSubstr("is revoked")) << kit;
  }
  EXPECT_EQ(trusted.Verify(TlsDirectory(Path("third")).ReadCertificate(fs_).value(), now_), absl::OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument(RevokeCertificate(fs_, Path("ca"), Path("ca/ca.key"), now_)));
}

TEST_F(CertificateAuthorityTest, ClientsAskForTheirChief) {
  KitRequest request;
  request.role = PeerRole::kChief;
  request.hosts = {"chief.test", "10.0.0.1", "::1"};
  request.validity = Years(1);
  ASSERT_EQ(IssueKit(fs_, Path("ca"), request, Path("chief")), absl::OkStatus());
  ASSERT_TRUE(Issue(PeerRole::kWorker, "worker").ok());
  const Certificate chief = TlsDirectory(Path("chief")).ReadCertificate(fs_).value();
  const Certificate worker = TlsDirectory(Path("worker")).ReadCertificate(fs_).value();
  EXPECT_TRUE(chief.IsForHost("chief.test") && chief.IsForHost("10.0.0.1") && chief.IsForHost("::1"));
  EXPECT_FALSE(chief.IsForHost("other.test") || chief.IsForHost("10.0.0.2") || chief.IsForHost(""));
  EXPECT_EQ(CheckIsChief(chief, "moved.test", worker.identity()), absl::OkStatus()) << "the role is enough";
  EXPECT_THAT(std::string(CheckIsChief(worker, "chief.test", worker.identity()).message()),
              HasSubstr("which is not a chief's"));
  const auto elsewhere = ParsePeerUri(PeerUri("other", PeerRole::kWorker, ""));
  EXPECT_THAT(std::string(CheckIsChief(chief, "chief.test", elsewhere).message()),
              HasSubstr("this certificate is for"));
  request.hosts = {"a,URI:spiffe://lockstep/lockstep/fashion/operator"};
  EXPECT_TRUE(absl::IsInvalidArgument(IssueKit(fs_, Path("ca"), request, Path("chief"))));
}

}  // namespace
}  // namespace lockstep
