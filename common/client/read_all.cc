#include "lockstep/common/client/read_all.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<VariablesAtStep> ReadOnce(ChiefClient* client, const v1::ReadVariablesRequest& first) {
  VariableParts parts(first.names_only());
  v1::ReadVariablesRequest request = first;
  while (true) {
    ASSIGN_OR_RETURN(const v1::ReadVariablesReply reply, client->ReadVariables(request));
    RETURN_IF_ERROR(parts.Add(reply));
    if (reply.next_position() == 0) return parts.Take();
    if (reply.next_position() <= request.position()) {
      return absl::InternalError(absl::StrCat("the chief's reply to ReadVariables: position ", reply.next_position(),
                                              " after ", request.position()));
    }
    if (!request.names_only()) {
      request.clear_name();
      request.set_read_id(reply.read_id());
    }
    request.set_position(reply.next_position());
  }
}

}  // namespace

absl::StatusOr<VariablesAtStep> ReadAll(ChiefClient* client, const ReadAllOptions& options) {
  v1::ReadVariablesRequest first;
  for (const std::string& name : options.names) first.add_name(name);
  first.set_names_only(options.names_only);
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<VariablesAtStep> read = ReadOnce(client, first);
    const bool ended = absl::IsAborted(read.status()) || absl::IsResourceExhausted(read.status());
    if (!ended || attempt >= options.attempts) return read;
  }
}

}  // namespace lockstep
