#include "lockstep/train/replay/contribution.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/client/streamed_step_channel.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/common/step/sparse_differences.h"
#include "lockstep/common/step/step_frame.h"

namespace lockstep {
namespace {

using google::protobuf::util::MessageDifferencer;

// A Step stream with one token. Adds the contribution that is sent on it to `sums`.
class OneTokenStream : public StepStream {
 public:
  OneTokenStream(StepReplyFrame reply, StepSums* sums, bool* reported)
      : reply_(std::move(reply)), sums_(*sums), reported_(*reported) {}

  FrameSizes sizes() const override { return FrameSizes(); }  // each piece is a frame, which is sent immediately
  absl::Status Send(const StepFrame& frame) override {
    if (!frame.reports.empty()) {
      reported_ = true;
      sums_.AddReports(frame.reports);
    }
    for (const StepPiece& piece : frame.gradients) sums_.AddPiece(frame.block, piece);
    return absl::OkStatus();
  }
  absl::Status Poll(Receiver*) override { return absl::OkStatus(); }
  absl::StatusOr<bool> Receive(Receiver* receiver) override {
    RETURN_IF_ERROR(receiver->OnReply(reply_).status());
    return true;
  }
  void Drain() override {}
  absl::Status Close() override { return absl::UnavailableError("the stream was closed"); }
  void CancelWait() override {}
  void Cancel() override {}

 private:
  const StepReplyFrame reply_;
  StepSums& sums_;
  bool& reported_;
};

// Returns the part of the configuration that workers receive in GradientSettings.
config::v1::RunSpec WorkersPart(const config::v1::RunSpec& config) {
  config::v1::RunSpec part;
  *part.mutable_optimizer()->mutable_multipliers() = config.optimizer().multipliers();
  if (config.optimizer().has_clip()) *part.mutable_optimizer()->mutable_clip() = config.optimizer().clip();
  part.mutable_input()->set_batch_size(config.input().batch_size());
  return part;
}

}  // namespace

absl::Status ContributionComputer::SetConfig(const config::v1::RunSpec& config) {
  if (config_ && MessageDifferencer::Equals(WorkersPart(*config_), WorkersPart(config))) return absl::OkStatus();
  ASSIGN_OR_RETURN(Workload workload, make_workload_(config));
  if (config_) RETURN_IF_ERROR(CheckModel(workload.model->spec()));
  ASSIGN_OR_RETURN(computer_, BlockComputer::Create(config, std::move(workload), &wanted_, &slots_computed_));
  config_ = config;
  return absl::OkStatus();
}

absl::Status ContributionComputer::CheckModel(const v1::ModelSpec& model) const {
  bool is_same = model.variables_size() == static_cast<int>(layout_.variables().size());
  for (int i = 0; is_same && i < model.variables_size(); ++i) {
    is_same = MessageDifferencer::Equals(model.variables(i), layout_.variables()[i].spec);
  }
  if (!is_same) return absl::FailedPreconditionError("the model has other variables than the run's");
  const std::vector<ParameterLayout::UpdateOp>& ops = layout_.update_ops();
  const bool has_same_ops = std::equal(
      ops.begin(), ops.end(), model.update_ops().begin(), model.update_ops().end(),
      [](const auto& op, const v1::UpdateOpSpec& other) { return MessageDifferencer::Equals(op.spec, other); });
  if (!has_same_ops) return absl::FailedPreconditionError("the model has other update ops than the run's");
  return absl::OkStatus();
}

absl::Status ContributionComputer::Compute(const v1::Token& token, std::shared_ptr<const PublishedValues> values,
                                           std::shared_ptr<const GradientEstimates> estimates, StepSums* sums) {
  StepReplyFrame reply;
  reply.token = token;
  HandedOverValues& handed_over = reply.handed_over.emplace();
  // `flat` keeps the whole version alive.
  handed_over.flat = std::shared_ptr<const AlignedBuffer>(values, values->flat.get());
  handed_over.constants = values->constants->flat;
  handed_over.type = values->type;
  if (values->encoded != nullptr) handed_over.encoded = values->encoded->as<uint16_t>();
  ChiefClient::StepOptions options;
  options.compression.top_k = CompressionOf(config_->compression()).top_k;
  if (options.compression.top_k > 0) {
    options.slots = static_cast<int64_t>(estimates->size());
    handed_over.estimates = {estimates->at(token.first_slot()).get()};
    reply.estimates_owner = std::move(estimates);
  }
  bool reported = false;
  StreamedStepChannel channel(std::make_unique<OneTokenStream>(std::move(reply), sums, &reported), options, layout_);
  ASSIGN_OR_RETURN(const StepChannel::Assignment assignment, channel.AwaitToken());
  RETURN_IF_ERROR(computer_->Compute(assignment, &channel).status);
  return reported ? absl::OkStatus() : absl::OutOfRangeError("the input has no such batch");
}

KeptContribution::KeptContribution(const ParameterLayout* layout, const AlignedBuffer* estimate)
    : layout_(*layout), gradients_(static_cast<size_t>(layout->trained_elements())) {
  if (estimate != nullptr) std::copy_n(estimate->as<float>(), gradients_.size(), gradients_.begin());
}

bool KeptContribution::AddPiece(const SlotBlock&, const StepPiece& piece) {
  float* const place = gradients_.data() + layout_.variables()[piece.variable].flat_offset + piece.offset;
  if (piece.sparse) {
    std::string storage;
    AddDifferences(piece.content.Bytes(&storage), place);
  } else {
    piece.content.CopyTo(0, piece.content.size(), place);
  }
  return true;
}

absl::Span<const float> KeptContribution::gradient(int variable) const {
  const ParameterLayout::Variable& place = layout_.variables()[variable];
  return absl::MakeConstSpan(gradients_)
      .subspan(static_cast<size_t>(place.flat_offset), static_cast<size_t>(place.elements));
}

}  // namespace lockstep
