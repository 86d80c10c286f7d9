#include "lockstep/common/security/tls_directory.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

absl::Status Wrong(const std::string& file, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("--tls_dir: ", file, ": ", why));
}

absl::StatusOr<std::string> Read(FileSystem* fs, const std::string& file) {
  absl::StatusOr<std::string> text = ReadFile(fs, file);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(absl::StrCat("--tls_dir: ", text.status().message()));
}

// A password callback that refuses, so that OpenSSL never asks for the password of an encrypted key.
int NoPassword(char*, int, int, void*) { return -1; }

absl::Status CheckKey(const std::string& file, const std::string& pem, const Certificate& certificate) {
  const std::shared_ptr<BIO> reader(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  const std::shared_ptr<EVP_PKEY> key(PEM_read_bio_PrivateKey(reader.get(), nullptr, NoPassword, nullptr),
                                      EVP_PKEY_free);
  ERR_clear_error();
  if (key == nullptr) return Wrong(file, "it has no unencrypted private key in PEM format");
  const bool fits = X509_check_private_key(certificate.x509(), key.get()) == 1;
  ERR_clear_error();
  return fits ? absl::OkStatus() : Wrong(file, "it is not the key of the certificate in tls.crt");
}

}  // namespace

absl::StatusOr<bool> TlsDirectory::HasCertificate(FileSystem* fs) const {
  ASSIGN_OR_RETURN(const bool has_certificate, fs->Exists(certificate()));
  ASSIGN_OR_RETURN(const bool has_key, fs->Exists(key()));
  return has_certificate || has_key;
}

absl::StatusOr<TrustedAuthorities> TlsDirectory::ReadAuthorities(FileSystem* fs) const {
  ASSIGN_OR_RETURN(const std::string text, Read(fs, authorities()));
  std::string revoked;
  ASSIGN_OR_RETURN(const bool has_revocations, fs->Exists(revocations()));
  if (has_revocations) {
    ASSIGN_OR_RETURN(revoked, Read(fs, revocations()));
    if (revoked.empty()) return Wrong(revocations(), "it is empty");
  }
  auto trusted = TrustedAuthorities::FromPem(text, revoked);
  if (trusted.ok()) return trusted;
  const bool is_list = absl::StrContains(trusted.status().message(), "revoked");
  return Wrong(is_list ? revocations() : authorities(), trusted.status().message());
}

absl::StatusOr<Certificate> TlsDirectory::ReadCertificate(FileSystem* fs) const {
  ASSIGN_OR_RETURN(const std::string text, Read(fs, certificate()));
  auto parsed = Certificate::FromPem(text);
  if (!parsed.ok()) return Wrong(certificate(), parsed.status().message());
  return parsed;
}

absl::Status TlsDirectory::Check(FileSystem* fs, End end, absl::Time now) const {
  ASSIGN_OR_RETURN(const TrustedAuthorities trusted, ReadAuthorities(fs));
  ASSIGN_OR_RETURN(const bool has_certificate, HasCertificate(fs));
  if (!has_certificate && end == End::kClient) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Certificate own, ReadCertificate(fs));
  ASSIGN_OR_RETURN(const std::string key_text, Read(fs, key()));
  RETURN_IF_ERROR(CheckKey(key(), key_text, own));
  const absl::Status verified = trusted.Verify(own, now);
  if (!verified.ok()) return Wrong(certificate(), absl::StrCat(verified.message(), " (by ca.crt beside it)"));
  if (end == End::kServer && own.identity() && own.identity()->role != PeerRole::kChief) {
    return Wrong(certificate(), absl::StrCat("it is for the role ", PeerRoleName(own.identity()->role),
                                             "; a chief needs one for the role chief"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
