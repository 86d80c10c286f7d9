#include "lockstep/tests/testing/test_kits.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/security/certificate_authority.h"

namespace lockstep {

TestKits::TestKits() : folder_(absl::StrCat(::testing::TempDir(), "/kits-XXXXXX")) {
  EXPECT_NE(mkdtemp(&folder_[0]), nullptr);
  MakeAuthority("ca");
}

void TestKits::MakeAuthority(const std::string& name, const std::string& run) {
  const absl::Time now = absl::Now();
  EXPECT_EQ(CreateAuthority(FileSystem::Real(), Path(name), run, {now - absl::Hours(2), now + absl::Hours(2)}),
            absl::OkStatus());
}

std::string TestKits::Issue(const std::string& name, PeerRole role, const std::string& authority,
                            absl::Duration valid_for, const std::string& peer) {
  KitRequest request;
  request.role = role;
  request.name = peer;
  request.validity = {absl::Now() - absl::Hours(1), absl::Now() + valid_for};
  EXPECT_EQ(IssueKit(FileSystem::Real(), Path(authority), request, Path(name)), absl::OkStatus());
  return Path(name);
}

void TestKits::Revoke(const std::string& kit, const std::string& chief_kit) {
  EXPECT_EQ(RevokeCertificate(FileSystem::Real(), Path("ca"), Path(absl::StrCat(kit, "/tls.crt")), absl::Now()),
            absl::OkStatus());
  Write(absl::StrCat(chief_kit, "/crl.pem"), Read("ca/crl.pem"));
}

void TestKits::Write(const std::string& name, const std::string& text) const {
  const std::string path = Path(name);
  EXPECT_EQ(FileSystem::Real()->CreateDirectory(std::string(Dirname(path))), absl::OkStatus());
  EXPECT_EQ(WriteFileAtomically(FileSystem::Real(), path, text), absl::OkStatus());
}

std::string TestKits::Read(const std::string& name) const {
  return ReadFile(FileSystem::Real(), Path(name)).value_or(std::string());
}

}  // namespace lockstep
