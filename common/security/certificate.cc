#include "lockstep/common/security/certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTimeT(timegm(&parts));
}

std::shared_ptr<BIO> Reader(absl::string_view pem) {
  return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free};
}

std::string SubjectOf(X509* certificate) {
  const std::shared_ptr<BIO> text(BIO_new(BIO_s_mem()), BIO_free);
  X509_NAME_print_ex(text.get(), X509_get_subject_name(certificate), 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

// Returns the certificate's subject alternative names that are URIs.
std::vector<std::string> UrisOf(X509* certificate) {
  std::vector<std::string> uris;
  auto* const names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  if (names == nullptr) return uris;
  const auto free_names = absl::MakeCleanup([names] { GENERAL_NAMES_free(names); });
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  return uris;
}

// Reads consecutive objects of one kind from a text in PEM.
template <typename Object>
std::vector<std::shared_ptr<Object>> ReadAll(absl::string_view pem,
                                             Object* (*read)(BIO*, Object**, pem_password_cb*, void*),
                                             void (*free_object)(Object*)) {
  std::vector<std::shared_ptr<Object>> objects;
  const std::shared_ptr<BIO> reader = Reader(pem);
  while (Object* const object = read(reader.get(), nullptr, nullptr, nullptr)) {
    objects.emplace_back(object, free_object);
  }
  ERR_clear_error();  // OpenSSL counts the end of the text as an error.
  return objects;
}

bool IsListed(X509* certificate, const std::vector<std::shared_ptr<X509_CRL>>& lists) {
  for (const auto& list : lists) {
    X509_REVOKED* revoked = nullptr;
    if (X509_NAME_cmp(X509_CRL_get_issuer(list.get()), X509_get_issuer_name(certificate)) != 0) continue;
    if (X509_CRL_get0_by_cert(list.get(), &revoked, certificate) == 1) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<Certificate> Certificate::FromPem(absl::string_view pem) {
  Certificate certificate;
  certificate.chain_ = ReadAll<X509>(pem, PEM_read_bio_X509, X509_free);
  if (certificate.chain_.empty()) return absl::InvalidArgumentError("it has no certificate in PEM format");
  X509* const x509 = certificate.x509();
  for (const std::string& uri : UrisOf(x509)) {
    certificate.identity_ = ParsePeerUri(uri);
    if (certificate.identity_) break;
  }
  certificate.name_ = certificate.identity_ ? certificate.identity_->uri : SubjectOf(x509);
  certificate.not_before_ = TimeOf(X509_get0_notBefore(x509));
  // The certificate is valid no longer than its intermediates.
  certificate.not_after_ = absl::InfiniteFuture();
  for (const auto& each : certificate.chain_) {
    certificate.not_after_ = std::min(certificate.not_after_, TimeOf(X509_get0_notAfter(each.get())));
  }
  return certificate;
}

bool Certificate::IsForHost(const std::string& host) const {
  if (host.empty()) return false;
  return X509_check_ip_asc(x509(), host.c_str(), 0) == 1 ||
         X509_check_host(x509(), host.data(), host.size(), 0, nullptr) == 1;
}

absl::StatusOr<TrustedAuthorities> TrustedAuthorities::FromPem(absl::string_view authorities,
                                                               absl::string_view revocations) {
  TrustedAuthorities trusted;
  trusted.store_ = {X509_STORE_new(), X509_STORE_free};
  const auto certificates = ReadAll<X509>(authorities, PEM_read_bio_X509, X509_free);
  if (certificates.empty()) return absl::InvalidArgumentError("it has no certificate in PEM format");
  for (const auto& each : certificates) X509_STORE_add_cert(trusted.store_.get(), each.get());
  trusted.revocations_ = ReadAll<X509_CRL>(revocations, PEM_read_bio_X509_CRL, X509_CRL_free);
  if (trusted.revocations_.empty() && !revocations.empty()) {
    return absl::InvalidArgumentError("the list of revoked certificates is not in PEM format");
  }
  return trusted;
}

absl::Status TrustedAuthorities::Verify(const Certificate& certificate, absl::Time now) const {
  const std::shared_ptr<STACK_OF(X509)> between(sk_X509_new_null(), [](STACK_OF(X509) * all) { sk_X509_free(all); });
  for (size_t i = 1; i < certificate.chain().size(); ++i) sk_X509_push(between.get(), certificate.chain()[i].get());
  const std::shared_ptr<X509_STORE_CTX> context(X509_STORE_CTX_new(), X509_STORE_CTX_free);
  X509_STORE_CTX_init(context.get(), store_.get(), certificate.x509(), between.get());
  X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context.get()), absl::ToTimeT(now));
  const bool verified = X509_verify_cert(context.get()) == 1;
  const int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  if (!verified) {
    return absl::UnauthenticatedError(absl::StrCat(
        "the certificate of ", certificate.name(), " is refused: ", X509_verify_cert_error_string(error),
        error == X509_V_ERR_CERT_HAS_EXPIRED
            ? absl::StrCat(" (", absl::FormatTime(absl::RFC3339_sec, certificate.not_after(), absl::UTCTimeZone()), ")")
            : ""));
  }
  // The path consists of the certificate itself, its intermediates, and the authority.
  const STACK_OF(X509)* const path = X509_STORE_CTX_get0_chain(context.get());
  for (int i = 0; i < sk_X509_num(path); ++i) {
    if (!IsListed(sk_X509_value(path, i), revocations_)) continue;
    return absl::UnauthenticatedError(absl::StrCat("the certificate of ", certificate.name(), " is revoked",
                                                   i == 0 ? "" : ", as one of its issuers is"));
  }
  return absl::OkStatus();
}

absl::Status CheckIsChief(const Certificate& certificate, const std::string& host,
                          const absl::optional<PeerIdentity>& own) {
  const absl::optional<PeerIdentity>& identity = certificate.identity();
  if (!identity) {
    if (certificate.IsForHost(host)) return absl::OkStatus();
    return absl::UnauthenticatedError(absl::StrCat("the certificate of ", certificate.name(),
                                                   " is neither a chief's nor one for the host \"", host, "\""));
  }
  if (identity->role != PeerRole::kChief) {
    return absl::UnauthenticatedError(
        absl::StrCat("the peer at ", host, " has the certificate of ", identity->uri, ", which is not a chief's"));
  }
  if (own && own->run != identity->run) {
    return absl::UnauthenticatedError(
        absl::StrCat("the chief at ", host, " is ", identity->uri, ", and this certificate is for ", own->run));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
