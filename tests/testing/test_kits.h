#ifndef LOCKSTEP_TESTS_TESTING_TEST_KITS_H_
#define LOCKSTEP_TESTS_TESTING_TEST_KITS_H_

#include <string>

#include "absl/time/time.h"
#include "lockstep/common/security/peer_identity.h"

namespace lockstep {

// Certificate authorities and kits (folders for --tls_dir) in a test's temporary folder. Errors are test failures. Not
// thread-safe.
class TestKits {
 public:
  // Creates the authority "ca" of the run "test".
  TestKits();

  // Makes another authority.
  void MakeAuthority(const std::string& name, const std::string& run = "test");
  // Creates or replaces the kit `name`, and returns its folder. The kit is valid for `valid_for` from now on.
  std::string Issue(const std::string& name, PeerRole role, const std::string& authority = "ca",
                    absl::Duration valid_for = absl::Hours(1), const std::string& peer = "");
  // Revokes the kit's certificate, and puts the revocation list into the chief's kit.
  void Revoke(const std::string& kit, const std::string& chief_kit);
  // Returns the path of a file or folder.
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const;
  std::string Read(const std::string& name) const;

 private:
  std::string folder_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_TEST_KITS_H_
