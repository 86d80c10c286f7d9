#include "lockstep/common/security/certificate_authority.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/security/certificate.h"
#include "lockstep/common/security/tls_directory.h"

namespace lockstep {
namespace {

constexpr absl::string_view kAuthorityName = "lockstep CA ";
constexpr char kAuthorityKey[] = "ca.key";
// Maximum length of a common name (RFC 5280).
constexpr size_t kMostNameCharacters = 64;

using Key = std::shared_ptr<EVP_PKEY>;
using X509Pointer = std::shared_ptr<X509>;

absl::Status LibraryError(absl::string_view what) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  absl::Status status =
      absl::InternalError(absl::StrCat("OpenSSL could not ", what, ": ", reason == nullptr ? "" : reason));
  ERR_clear_error();
  return status;
}

// Returns the text that `write` puts into a memory buffer.
template <typename Write>
absl::StatusOr<std::string> ToPem(absl::string_view what, const Write& write) {
  const std::shared_ptr<BIO> text(BIO_new(BIO_s_mem()), BIO_free);
  if (write(text.get()) != 1) return LibraryError(absl::StrCat("write ", what));
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<std::string> KeyPem(const Key& key) {
  return ToPem("a key", [&key](BIO* text) {
    return PEM_write_bio_PrivateKey(text, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

absl::StatusOr<std::string> CertificatePem(const X509Pointer& certificate) {
  return ToPem("a certificate", [&certificate](BIO* text) { return PEM_write_bio_X509(text, certificate.get()); });
}

// Replaces a file such that only its owner may read it. FileSystem is not used, because it creates files that everybody
// may read.
absl::Status WriteKeyFile(const std::string& path, absl::string_view data) {
  const std::string temporary = absl::StrCat(path, ".tmp");
  const auto failed = [&](absl::string_view what) {
    return absl::InternalError(absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(errno)));
  };
  unlink(temporary.c_str());
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return failed("create");
  const auto close_file = absl::MakeCleanup([file] { close(file); });
  if (write(file, data.data(), data.size()) != static_cast<ssize_t>(data.size()) || fsync(file) != 0) {
    return failed("write");
  }
  return rename(temporary.c_str(), path.c_str()) == 0 ? absl::OkStatus() : failed("replace");
}

// Sets a serial number of 127 random bits. RFC 5280 allows at most 20 bytes.
absl::Status DrawSerial(X509* certificate) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) return LibraryError("draw a serial number");
  bytes[0] &= 0x7f;
  const std::shared_ptr<BIGNUM> number(BN_bin2bn(bytes, sizeof(bytes), nullptr), BN_free);
  return BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr
             ? absl::OkStatus()
             : LibraryError("set a serial number");
}

absl::Status AddExtension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  if (extension == nullptr) return LibraryError(absl::StrCat("make the extension ", value));
  const int added = X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
  return added == 1 ? absl::OkStatus() : LibraryError(absl::StrCat("add the extension ", value));
}

struct CertificateRequest {
  std::string common_name;
  ValidityPeriod validity;
  Key key;
  std::vector<std::pair<int, std::string>> extensions;
};

// Returns a certificate that is signed by `issuer`, or self-signed if `issuer` is null.
absl::StatusOr<X509Pointer> Sign(const CertificateRequest& request, X509* issuer, const Key& issuer_key) {
  X509Pointer certificate(X509_new(), X509_free);
  X509* const raw = certificate.get();
  X509_set_version(raw, 2);  // version 3
  RETURN_IF_ERROR(DrawSerial(raw));
  ASN1_TIME_set(X509_getm_notBefore(raw), absl::ToTimeT(request.validity.begin));
  ASN1_TIME_set(X509_getm_notAfter(raw), absl::ToTimeT(request.validity.end));
  X509_set_pubkey(raw, request.key.get());
  X509_NAME* const subject = X509_get_subject_name(raw);
  X509_NAME_add_entry_by_NID(subject, NID_organizationName, MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>("lockstep"), -1, -1, 0);
  const std::string common_name = request.common_name.substr(0, kMostNameCharacters);
  X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  X509* const signer = issuer == nullptr ? raw : issuer;
  X509_set_issuer_name(raw, X509_get_subject_name(signer));
  for (const auto& extension : request.extensions) {
    RETURN_IF_ERROR(AddExtension(raw, signer, extension.first, extension.second));
  }
  if (X509_sign(raw, issuer_key.get(), EVP_sha256()) == 0) return LibraryError("sign a certificate");
  return certificate;
}

absl::StatusOr<Key> NewKey() {
  Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  if (key == nullptr) return LibraryError("make a key");
  return key;
}

// An authority that was read from its folder.
struct Authority {
  Certificate certificate;
  Key key;
  // Name of the run in the identities that the authority issues.
  std::string run;
};

absl::StatusOr<Authority> ReadAuthority(FileSystem* fs, const std::string& directory) {
  const TlsDirectory files(directory);
  ASSIGN_OR_RETURN(const bool exists, fs->Exists(files.authorities()));
  if (!exists) {
    return absl::NotFoundError(absl::StrCat(directory, " has no authority; make one: lockstep certs init ", directory));
  }
  ASSIGN_OR_RETURN(const std::string pem, ReadFile(fs, files.authorities()));
  ASSIGN_OR_RETURN(const std::string key_pem, ReadFile(fs, JoinPath(directory, kAuthorityKey)));
  ASSIGN_OR_RETURN(Certificate certificate, Certificate::FromPem(pem));
  const std::shared_ptr<BIO> reader(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())), BIO_free);
  Key key(PEM_read_bio_PrivateKey(reader.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  if (key == nullptr || X509_check_private_key(certificate.x509(), key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        absl::StrCat(JoinPath(directory, kAuthorityKey), " is not the key of ca.crt beside it"));
  }
  char name[kMostNameCharacters + 1] = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.x509()), NID_commonName, name, sizeof(name));
  absl::string_view run = name;
  if (!absl::ConsumePrefix(&run, kAuthorityName) || !IsPeerName(run)) {
    return absl::InvalidArgumentError(absl::StrCat(files.authorities(), " was not made by lockstep certs init"));
  }
  return Authority{std::move(certificate), std::move(key), std::string(run)};
}

// Returns the subject alternative names of a kit.
absl::StatusOr<std::string> AlternativeNames(const std::string& uri, const std::vector<std::string>& hosts) {
  std::vector<std::string> names = {absl::StrCat("URI:", uri)};
  for (const std::string& host : hosts) {
    ASN1_OCTET_STRING* const address = a2i_IPADDRESS(host.c_str());
    ERR_clear_error();
    const bool is_address = address != nullptr;
    ASN1_OCTET_STRING_free(address);
    // Reject any other host, because a comma in it would begin another name.
    if (!is_address && !IsPeerName(host)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", host, "\" is neither a host name nor an address"));
    }
    names.push_back(absl::StrCat(is_address ? "IP:" : "DNS:", host));
  }
  return absl::StrJoin(names, ",");
}

}  // namespace

absl::Status CreateAuthority(FileSystem* fs, const std::string& directory, const std::string& run,
                             const ValidityPeriod& validity) {
  if (!IsPeerName(run) || run.size() + kAuthorityName.size() > kMostNameCharacters) {
    return absl::InvalidArgumentError(absl::StrCat("the name \"", run, "\" must have 1 to ",
                                                   kMostNameCharacters - kAuthorityName.size(),
                                                   " letters, digits, dots, dashes and underscores"));
  }
  const TlsDirectory files(directory);
  ASSIGN_OR_RETURN(const bool exists, fs->Exists(files.authorities()));
  if (exists) return absl::AlreadyExistsError(absl::StrCat(files.authorities(), " exists already"));
  // Do not overwrite this file, which may be the only copy of another authority's key.
  const std::string key_file = JoinPath(directory, kAuthorityKey);
  ASSIGN_OR_RETURN(const bool has_key, fs->Exists(key_file));
  if (has_key) return absl::AlreadyExistsError(absl::StrCat(key_file, " exists already"));
  RETURN_IF_ERROR(fs->CreateDirectory(directory));
  CertificateRequest request;
  request.common_name = absl::StrCat(kAuthorityName, run);
  request.validity = validity;
  ASSIGN_OR_RETURN(request.key, NewKey());
  request.extensions = {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                        {NID_key_usage, "critical,keyCertSign,cRLSign"},
                        {NID_subject_key_identifier, "hash"}};
  ASSIGN_OR_RETURN(const X509Pointer certificate, Sign(request, nullptr, request.key));
  ASSIGN_OR_RETURN(const std::string key_pem, KeyPem(request.key));
  ASSIGN_OR_RETURN(const std::string pem, CertificatePem(certificate));
  RETURN_IF_ERROR(WriteKeyFile(key_file, key_pem));
  return WriteFileAtomically(fs, files.authorities(), pem);
}

absl::Status IssueKit(FileSystem* fs, const std::string& directory, const KitRequest& request, const std::string& kit) {
  if (!request.name.empty() && !IsPeerName(request.name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the name \"", request.name, "\" must have 1 to 64 letters, digits, dots, dashes and underscores"));
  }
  ASSIGN_OR_RETURN(const Authority authority, ReadAuthority(fs, directory));
  const std::string uri = PeerUri(authority.run, request.role, request.name);
  CertificateRequest certificate;
  certificate.common_name = absl::StrCat(PeerRoleName(request.role), request.name.empty() ? "" : " ", request.name);
  certificate.validity = request.validity;
  certificate.validity.end = std::min(request.validity.end, authority.certificate.not_after());
  ASSIGN_OR_RETURN(certificate.key, NewKey());
  ASSIGN_OR_RETURN(const std::string names, AlternativeNames(uri, request.hosts));
  const bool is_chief = request.role == PeerRole::kChief;
  // A chief is also a client of its own run: status and probe on its machine use its kit.
  certificate.extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                            {NID_key_usage, "critical,digitalSignature"},
                            {NID_ext_key_usage, is_chief ? "serverAuth,clientAuth" : "clientAuth"},
                            {NID_subject_alt_name, names},
                            {NID_authority_key_identifier, "keyid"}};
  ASSIGN_OR_RETURN(const X509Pointer issued, Sign(certificate, authority.certificate.x509(), authority.key));
  ASSIGN_OR_RETURN(const std::string key_pem, KeyPem(certificate.key));
  ASSIGN_OR_RETURN(const std::string pem, CertificatePem(issued));
  const TlsDirectory from(directory), to(kit);
  RETURN_IF_ERROR(fs->CreateDirectory(kit));
  ASSIGN_OR_RETURN(const std::string authorities, ReadFile(fs, from.authorities()));
  RETURN_IF_ERROR(WriteFileAtomically(fs, to.authorities(), authorities));
  ASSIGN_OR_RETURN(const bool has_revocations, fs->Exists(from.revocations()));
  if (has_revocations) {
    ASSIGN_OR_RETURN(const std::string revocations, ReadFile(fs, from.revocations()));
    RETURN_IF_ERROR(WriteFileAtomically(fs, to.revocations(), revocations));
  }
  RETURN_IF_ERROR(WriteKeyFile(to.key(), key_pem));
  return WriteFileAtomically(fs, to.certificate(), pem);
}

absl::Status RevokeCertificate(FileSystem* fs, const std::string& directory, const std::string& certificate,
                               absl::Time now) {
  ASSIGN_OR_RETURN(const Authority authority, ReadAuthority(fs, directory));
  ASSIGN_OR_RETURN(const std::string pem, ReadFile(fs, certificate));
  const auto revoked = Certificate::FromPem(pem);
  if (!revoked.ok()) return absl::InvalidArgumentError(absl::StrCat(certificate, ": ", revoked.status().message()));
  X509* const issuer = authority.certificate.x509();
  if (X509_verify(revoked->x509(), authority.key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(absl::StrCat(certificate, " was issued by another authority"));
  }
  const TlsDirectory files(directory);
  std::shared_ptr<X509_CRL> list(X509_CRL_new(), X509_CRL_free);
  ASSIGN_OR_RETURN(const bool exists, fs->Exists(files.revocations()));
  if (exists) {
    ASSIGN_OR_RETURN(const std::string old, ReadFile(fs, files.revocations()));
    const std::shared_ptr<BIO> reader(BIO_new_mem_buf(old.data(), static_cast<int>(old.size())), BIO_free);
    list.reset(PEM_read_bio_X509_CRL(reader.get(), nullptr, nullptr, nullptr), X509_CRL_free);
    if (list == nullptr) return absl::InvalidArgumentError(absl::StrCat(files.revocations(), " is no list in PEM"));
  }
  const std::shared_ptr<ASN1_TIME> time(ASN1_TIME_set(nullptr, absl::ToTimeT(now)), ASN1_TIME_free);
  X509_CRL_set_version(list.get(), 1);  // version 2
  X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(issuer));
  X509_CRL_set1_lastUpdate(list.get(), time.get());
  const std::shared_ptr<ASN1_TIME> next(ASN1_TIME_dup(X509_get0_notAfter(issuer)), ASN1_TIME_free);
  X509_CRL_set1_nextUpdate(list.get(), next.get());
  X509_REVOKED* const entry = X509_REVOKED_new();
  X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(revoked->x509()));
  X509_REVOKED_set_revocationDate(entry, time.get());
  X509_CRL_add0_revoked(list.get(), entry);
  X509_CRL_sort(list.get());
  if (X509_CRL_sign(list.get(), authority.key.get(), EVP_sha256()) == 0) return LibraryError("sign a list");
  ASSIGN_OR_RETURN(const std::string text,
                   ToPem("a list", [&list](BIO* out) { return PEM_write_bio_X509_CRL(out, list.get()); }));
  return WriteFileAtomically(fs, files.revocations(), text);
}

}  // namespace lockstep
