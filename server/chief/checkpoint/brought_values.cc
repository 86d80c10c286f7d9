#include "lockstep/server/chief/checkpoint/brought_values.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/server/sync/workers/worker_identity.h"

namespace lockstep {

absl::Status BroughtValues::CheckFree(const v1::OpenSessionRequest& request, const std::string& peer, absl::Time now) {
  Expire(now);
  if (!held_) return absl::OkStatus();
  if (held_->worker != request.worker() || held_->incarnation != request.incarnation() || held_->peer != peer ||
      held_->digest != request.initial_values_digest()) {
    return absl::UnavailableError(absl::StrCat(held_->identity, " is bringing initial values for the run"));
  }
  held_->last_used = now;
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> BroughtValues::Begin(const v1::OpenSessionRequest& request, const std::string& peer,
                                              uint64_t fresh_id, absl::Time now) {
  RETURN_IF_ERROR(CheckFree(request, peer, now));
  if (held_) return held_->whole ? 0 : held_->id;
  if (request.initial_values_digest().empty()) return 0;
  held_ = NewHeld(request, peer, fresh_id);
  held_->last_used = now;
  return fresh_id;
}

BroughtValues::Held BroughtValues::NewHeld(const v1::OpenSessionRequest& request, const std::string& peer,
                                           uint64_t id) {
  Held held;
  held.id = id;
  held.worker = request.worker();
  held.incarnation = request.incarnation();
  held.peer = peer;
  held.digest = request.initial_values_digest();
  WorkerIdentity identity(request.worker());
  identity.host = request.host();
  held.identity = identity.ToString();
  const auto& variables = request.model().variables();
  std::vector<int> order(variables.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return variables[a].name() < variables[b].name(); });
  held.places.resize(order.size());
  for (size_t place = 0; place < order.size(); ++place) {
    held.places[order[place]] = place;
    held.variables.push_back(variables[order[place]]);
  }
  return held;
}

absl::Status BroughtValues::Add(const v1::SetInitialValuesRequest& request, const std::string& peer, absl::Time now) {
  Expire(now);
  if (!held_ || held_->id != request.session_id()) {
    return absl::AbortedError("these initial values are unknown, or no longer wanted");
  }
  if (held_->peer != peer) {
    return absl::PermissionDeniedError(absl::StrCat("another peer than ", peer, " is bringing these initial values"));
  }
  held_->last_used = now;
  if (held_->whole) return absl::OkStatus();
  absl::Status added = AddTo(&*held_, request);
  if (!added.ok()) held_.reset();
  return added;
}

absl::Status BroughtValues::AddTo(Held* held, const v1::SetInitialValuesRequest& request) {
  for (const v1::TensorPiece& piece : request.value()) RETURN_IF_ERROR(AddPiece(held, piece));
  if (!request.end()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckComplete(*held));
  const std::string digest = held->hash.Hex();
  if (digest != held->digest) {
    return absl::InvalidArgumentError(absl::StrCat("the initial values that ", held->identity, " sent have the digest ",
                                                   digest, ", it declared ", held->digest));
  }
  held->whole = true;
  return absl::OkStatus();
}

absl::Status BroughtValues::AddPiece(Held* held, const v1::TensorPiece& piece) {
  if (piece.variable() >= held->places.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an initial value of variable ", piece.variable(), "; the model has ", held->places.size()));
  }
  const size_t place = held->places[piece.variable()];
  const bool is_new = held->values.empty() || place > held->place;
  if (is_new) RETURN_IF_ERROR(BeginVariable(held, place));
  // Pieces come in order, so a piece of an earlier variable is a repetition. If that variable did not come before, the
  // digest differs.
  if (place < held->place) return absl::OkStatus();
  Tensor& tensor = held->values.back().value;
  if (piece.dtype() != v1::DT_INVALID && piece.dtype() != tensor.dtype()) {
    return absl::InvalidArgumentError(absl::StrCat("a piece of the initial value of ", held->values.back().key, " is ",
                                                   NameOf(piece.dtype()), ", the variable is ",
                                                   NameOf(tensor.dtype())));
  }
  const size_t bytes = tensor.bytes().size(), element_bytes = SizeOf(tensor.dtype());
  const absl::string_view content = piece.content();
  const uint64_t first = piece.offset();
  if (content.size() % element_bytes != 0 || first > bytes / element_bytes ||
      content.size() > bytes - first * element_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a piece of ", content.size(), " bytes at element ", first,
                                                   " does not fit into the initial value of ", held->values.back().key,
                                                   ", which has ", bytes, " bytes"));
  }
  const size_t begin = static_cast<size_t>(first) * element_bytes;
  if (begin + content.size() <= held->received) return absl::OkStatus();
  if (begin != held->received) {
    return absl::InvalidArgumentError(absl::StrCat("the initial value of ", held->values.back().key,
                                                   " continues at element ", first, " after ",
                                                   held->received / element_bytes));
  }
  std::memcpy(tensor.data() + begin, content.data(), content.size());
  held->hash.AddContent(content);
  held->received += content.size();
  return absl::OkStatus();
}

absl::Status BroughtValues::BeginVariable(Held* held, size_t place) {
  RETURN_IF_ERROR(CheckComplete(*held));
  const v1::VariableSpec& variable = held->variables[place];
  ASSIGN_OR_RETURN(Shape shape, Shape::Create(variable.shape()));
  held->values.push_back({variable.name(), Tensor(variable.dtype(), std::move(shape))});
  held->place = place;
  held->received = 0;
  const Tensor& tensor = held->values.back().value;
  held->hash.Begin(variable.name(), tensor.dtype(), tensor.shape().dims(), tensor.bytes().size());
  return absl::OkStatus();
}

absl::Status BroughtValues::CheckComplete(const Held& held) {
  if (held.values.empty() || held.received == held.values.back().value.bytes().size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the initial value of ", held.values.back().key, " ends after ",
                                                 held.received, " of ", held.values.back().value.bytes().size(),
                                                 " bytes"));
}

void BroughtValues::Expire(absl::Time now) {
  if (held_ && now - held_->last_used >= kExpiry) held_.reset();
}

absl::optional<BroughtValues::Whole> BroughtValues::Take() {
  if (!held_ || !held_->whole) return absl::nullopt;
  Whole whole{std::move(held_->digest), std::move(held_->identity), std::move(held_->values)};
  held_.reset();
  return whole;
}

}  // namespace lockstep
