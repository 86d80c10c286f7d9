#include "lockstep/server/rpc/admission/session_opener.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

// Memory that a call takes in addition to its request.
constexpr size_t kCallBytes = 16 << 10;

}  // namespace

SessionOpener::SessionOpener(const Options& options, Open open)
    : options_(options), open_(std::move(open)), pool_(options.threads, options.executor) {}

void SessionOpener::Answer(std::string request, const std::string& peer, UnaryCall::Done done) {
  const size_t bytes = request.size() + kCallBytes;
  if (!Reserve(bytes)) {
    done(absl::UnavailableError("too many sessions are being opened at once"));
    return;
  }
  pool_.Schedule([this, bytes, request = std::move(request), peer, done = std::move(done)]() mutable {
    const absl::StatusOr<std::string> reply = ReplyTo(std::move(request), peer);
    Release(bytes);
    done(reply);
  });
}

bool SessionOpener::Reserve(size_t bytes) {
  MutexLock lock(&mutex_);
  if (bytes > options_.max_bytes - bytes_) return false;
  bytes_ += bytes;
  return true;
}

void SessionOpener::Release(size_t bytes) {
  MutexLock lock(&mutex_);
  bytes_ -= bytes;
}

absl::StatusOr<std::string> SessionOpener::ReplyTo(std::string bytes, const std::string& peer) const {
  v1::OpenSessionRequest request;
  RETURN_IF_ERROR(ParseRequest(bytes, uint64_t{8} * options_.max_request_bytes, &request));
  bytes = std::string();  // not needed while the session is opened
  ASSIGN_OR_RETURN(const v1::OpenSessionReply reply, open_(request, peer));
  return reply.SerializeAsString();
}

}  // namespace lockstep
