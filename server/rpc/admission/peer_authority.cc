#include "lockstep/server/rpc/admission/peer_authority.h"

#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/security/access_table.h"
#include "lockstep/common/security/token_file.h"

namespace lockstep {
namespace {

// Maximum number of cached verdicts. A chief has fewer connections than this.
constexpr size_t kMostVerdicts = 8192;
// Peers can cause any number of refusals, so they are logged at most this often.
constexpr absl::Duration kLogPeriod = absl::Seconds(1);
// Precedes the token in the header "authorization". No PEM certificate begins with it.
constexpr absl::string_view kBearer = "Bearer ";

// Returns the contents of a file, or an empty string if there is none.
std::string ContentsOf(FileSystem* fs, const std::string& path) { return ReadFile(fs, path).value_or(std::string()); }

}  // namespace

absl::StatusOr<std::unique_ptr<PeerAuthority>> PeerAuthority::Create(const Options& options) {
  std::unique_ptr<PeerAuthority> authority(new PeerAuthority(options));
  if (options.directory.empty()) {
    if (options.token_file.empty()) return authority;
    return absl::InvalidArgumentError("--token_file needs --tls_dir: without TLS every peer is trusted anyway");
  }
  ASSIGN_OR_RETURN(auto trust, authority->ReadTrust());
  MutexLock lock(&authority->mutex_);
  authority->trust_ = std::move(trust);
  return authority;
}

absl::StatusOr<std::shared_ptr<const PeerAuthority::Trust>> PeerAuthority::ReadTrust() const {
  ASSIGN_OR_RETURN(TrustedAuthorities authorities, options_.directory.ReadAuthorities(options_.fs));
  ASSIGN_OR_RETURN(const Certificate own, options_.directory.ReadCertificate(options_.fs));
  std::vector<std::string> tokens;
  if (!options_.token_file.empty()) {
    ASSIGN_OR_RETURN(tokens, ReadTokens(options_.fs, options_.token_file));
  }
  const std::string run = own.identity() ? own.identity()->run : "";
  return std::make_shared<const Trust>(Trust{std::move(authorities), run, own.not_after(), std::move(tokens)});
}

PeerAuthority::Verdict PeerAuthority::Judge(const Trust& trust, absl::string_view pem) const {
  Verdict verdict;
  const absl::StatusOr<Certificate> certificate = Certificate::FromPem(pem);
  if (!certificate.ok()) {
    verdict.status = absl::UnauthenticatedError(certificate.status().message());
    return verdict;
  }
  verdict.name = certificate->name();
  verdict.not_after = certificate->not_after();
  verdict.status = trust.authorities.Verify(*certificate, options_.clock->WallTime());
  if (!verdict.status.ok() || !certificate->identity()) return verdict;
  if (!trust.run.empty() && certificate->identity()->run != trust.run) {
    verdict.status = absl::UnauthenticatedError(
        absl::StrCat("the certificate of ", verdict.name, " is for another run; this chief is ", trust.run));
    return verdict;
  }
  verdict.role = certificate->identity()->role;
  return verdict;
}

PeerAuthority::Verdict PeerAuthority::VerdictOn(absl::string_view certificate) {
  const std::string key(certificate);
  std::shared_ptr<const Trust> trust;
  {
    MutexLock lock(&mutex_);
    trust = trust_;
    const auto known = verdicts_.find(key);
    if (known != verdicts_.end() && options_.clock->WallTime() < known->second.not_after) return known->second;
  }
  Verdict verdict = Judge(*trust, certificate);
  MutexLock lock(&mutex_);
  if (trust != trust_) return verdict;  // the files have changed in the meantime
  if (verdicts_.size() >= kMostVerdicts) verdicts_.clear();
  verdicts_[key] = verdict;
  return verdict;
}

absl::Status PeerAuthority::CheckProof(const std::string& proof) {
  absl::string_view token = proof;
  if (!absl::ConsumePrefix(&token, kBearer)) return VerdictOn(proof).status;
  MutexLock lock(&mutex_);
  return IsAmong(token, trust_->tokens) ? absl::OkStatus() : absl::UnauthenticatedError("its token no longer counts");
}

CallPeer PeerAuthority::PeerOf(const Evidence& evidence, Verdict* verdict) {
  CallPeer peer;
  if (!evidence.over_tls) {
    peer.name = "local";
    return peer;
  }
  peer.role = PeerRole::kAnonymous;
  peer.name = "anonymous";
  if (!evidence.certificate.empty()) {
    *verdict = VerdictOn(evidence.certificate);
    peer.role = verdict->role;
    peer.name = verdict->name;
    peer.certificate = std::string(evidence.certificate);
    return peer;
  }
  absl::string_view token = evidence.authorization;
  if (!absl::ConsumePrefix(&token, kBearer)) return peer;
  MutexLock lock(&mutex_);
  if (IsAmong(token, trust_->tokens)) {
    peer.role = PeerRole::kViewer;
    peer.name = "token";
    peer.certificate = std::string(evidence.authorization);
  }
  return peer;
}

absl::StatusOr<CallPeer> PeerAuthority::Admit(const Evidence& evidence, absl::string_view method) {
  if (trusts_all()) return CallPeer();
  Verdict verdict;
  CallPeer peer = PeerOf(evidence, &verdict);
  absl::Status status = verdict.status;
  if (status.ok()) status = CheckAccess(peer.role, peer.name, method);
  if (status.ok()) return peer;
  CountRefusal(status);
  return status;
}

void PeerAuthority::CountRefusal(const absl::Status& why) {
  int64_t refusals = 0;
  {
    MutexLock lock(&mutex_);
    ++refusals_;
    const absl::Time now = options_.clock->Now();
    if (now - logged_ < kLogPeriod) return;
    logged_ = now;
    refusals = refusals_ - std::exchange(logged_refusals_, refusals_);
  }
  LOG(WARNING) << "chief: refused a call: " << why.message()
               << (refusals > 1 ? absl::StrCat("; ", refusals, " refusals since the last such line") : "");
}

void PeerAuthority::FillCounters(v1::RunCounters* counters) const {
  MutexLock lock(&mutex_);
  counters->set_denied_calls(refusals_);
  if (trust_ != nullptr) counters->set_certificate_expires_ms(absl::ToUnixMillis(trust_->not_after));
}

void PeerAuthority::Watch(const CallPeer& peer, std::weak_ptr<RevocableCall> call) {
  if (peer.certificate.empty()) return;
  MutexLock lock(&mutex_);
  watched_.emplace(peer.certificate, std::move(call));
}

void PeerAuthority::Sweep() {
  if (trusts_all()) return;
  {
    MutexLock lock(&mutex_);
    const absl::Time now = options_.clock->Now();
    if (now - looked_ < options_.period) return;
    looked_ = now;
  }
  FollowFiles();
  EndUntrustedCalls();
}

void PeerAuthority::FollowFiles() {
  const TlsDirectory& directory = options_.directory;
  std::vector<std::string> paths = {directory.authorities(), directory.revocations(), directory.certificate()};
  if (!options_.token_file.empty()) paths.push_back(options_.token_file);
  std::string files;
  for (const std::string& path : paths) absl::StrAppend(&files, ContentsOf(options_.fs, path), "\n");
  {
    MutexLock lock(&mutex_);
    if (files == files_) return;
    files_ = files;
  }
  const auto trust = ReadTrust();
  // While the files are being replaced, their previous contents stay in effect.
  if (!trust.ok()) {
    LOG_EVERY_N(WARNING, 60) << "chief: keeps the certificates that it has: " << trust.status().message();
    // A file system error may go away without a change to the files, so the next check reads them again.
    MutexLock lock(&mutex_);
    files_.clear();
    return;
  }
  MutexLock lock(&mutex_);
  trust_ = *trust;
  verdicts_.clear();
}

void PeerAuthority::EndUntrustedCalls() {
  std::multimap<std::string, std::weak_ptr<RevocableCall>> watched;
  {
    MutexLock lock(&mutex_);
    watched.swap(watched_);
  }
  // Calls with the same certificate are adjacent, so that each certificate is checked once.
  std::string certificate;
  absl::Status status;
  for (auto entry = watched.begin(); entry != watched.end();) {
    const std::shared_ptr<RevocableCall> call = entry->second.lock();
    if (call != nullptr && entry->first != certificate) {
      certificate = entry->first;
      status = CheckProof(certificate);
    }
    if (call != nullptr && !status.ok()) {
      LOG(WARNING) << "chief: ends a stream: " << status.message();
      call->OnRevoked(absl::AbortedError(status.message()));
    }
    entry = call == nullptr || !status.ok() ? watched.erase(entry) : std::next(entry);
  }
  MutexLock lock(&mutex_);
  watched_.merge(watched);
}

}  // namespace lockstep
