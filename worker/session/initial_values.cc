#include "lockstep/worker/session/initial_values.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

// Maximum content of a request, and the bytes of it that a piece may take in addition to its elements. A request may
// have 1 MiB.
constexpr size_t kMaxContent = (1 << 20) - 4096;
constexpr size_t kPieceBytes = 32;
// A multiple of the size of an element of any type.
constexpr size_t kElementBytes = 8;

std::string DigestOf(const std::map<std::string, Tensor>& values) {
  VariablesDigest digest;
  for (const auto& [name, value] : values) {
    digest.Begin(name, value.dtype(), value.shape().dims(), value.bytes().size());
    digest.AddContent(value.bytes());
  }
  return digest.Hex();
}

// Sends pieces in as few requests as possible.
class Sender {
 public:
  // The pointers must outlive this object.
  Sender(const v1::OpenSessionReply& session, const std::atomic<bool>* stop, ChiefClient* client)
      : stop_(*stop), client_(client) {
    request_.set_session_id(session.session_id());
    request_.set_generation(session.generation());
  }

  absl::Status Send(uint32_t variable, const Tensor& value) {
    const absl::string_view content = value.bytes();
    const size_t element_bytes = SizeOf(value.dtype());
    for (size_t at = 0; at < content.size();) {
      if (bytes_ + kPieceBytes + kElementBytes > kMaxContent) RETURN_IF_ERROR(Flush());
      const size_t room = kMaxContent - bytes_ - kPieceBytes;
      const absl::string_view part = content.substr(at, room - room % kElementBytes);
      v1::TensorPiece* const piece = request_.add_value();
      piece->set_variable(variable);
      piece->set_offset(at / element_bytes);
      if (value.dtype() != v1::DT_FLOAT) piece->set_dtype(value.dtype());
      piece->set_content(part.data(), part.size());
      bytes_ += kPieceBytes + part.size();
      at += part.size();
    }
    return absl::OkStatus();
  }
  absl::Status End() {
    request_.set_end(true);
    return Flush();
  }

 private:
  absl::Status Flush() {
    if (stop_.load()) return absl::CancelledError("a stop was requested");
    RETURN_IF_ERROR(client_->SetInitialValues(request_).status());
    request_.clear_value();
    bytes_ = 0;
    return absl::OkStatus();
  }

  const std::atomic<bool>& stop_;
  ChiefClient* const client_;
  v1::SetInitialValuesRequest request_;
  size_t bytes_ = 0;
};

}  // namespace

InitialValues::InitialValues(std::map<std::string, Tensor> values)
    : values_(std::move(values)), digest_(DigestOf(values_)) {}

absl::Status InitialValues::Send(const v1::ModelSpec& model, const v1::OpenSessionReply& session,
                                 const std::atomic<bool>& stop, ChiefClient* client) const {
  std::map<std::string, uint32_t> variables;
  for (int i = 0; i < model.variables_size(); ++i) variables[model.variables(i).name()] = static_cast<uint32_t>(i);
  Sender sender(session, &stop, client);
  for (const auto& [name, value] : values_) {
    const auto variable = variables.find(name);
    if (variable == variables.end()) {
      return absl::InvalidArgumentError(absl::StrCat("there is an initial value for ", name, ", which is no variable"));
    }
    RETURN_IF_ERROR(sender.Send(variable->second, value));
  }
  return sender.End();
}

}  // namespace lockstep
