#include "lockstep/worker/session/canary.h"

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/contract/gradient_digest.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/worker/session/block/check_update.h"
#include "lockstep/worker/session/block/gradient_norm.h"
#include "lockstep/worker/session/block/gradient_transforms.h"

namespace lockstep {
namespace {

// If a model has at least this many elements, the memory used for its canary is released afterwards.
constexpr int64_t kLargeModel = 2 << 20;

// A sink that keeps only the digests of what a model computes.
class DigestSink : public GradientSink {
 public:
  DigestSink(const ParameterLayout* layout, const std::atomic<bool>* stop)
      : layout_(*layout),
        stop_(*stop),
        buffer_(static_cast<size_t>(layout->trained_elements()) * sizeof(float)),
        gradients_(layout->variables().size()),
        updates_(layout->update_ops().size()) {}

  bool OnLoss(float) override { return !stop_.load(); }
  void OnWeight(float weight) override { weight_ = weight; }
  void OnUpdate(int index, Elements value) override {
    status_.Update(CheckUpdate(layout_, index, value));
    updates_[index] = UpdateDigest(value);
  }
  float* GradientBuffer(int variable) override {
    return buffer_.as<float>() + layout_.variables()[variable].flat_offset;
  }
  void OnGradient(int variable) override {
    const auto elements = static_cast<size_t>(layout_.variables()[variable].elements);
    if (weight_ != 1) Scale(weight_, {GradientBuffer(variable), elements});
    gradients_[variable] = GradientDigest({GradientBuffer(variable), elements});
  }

  // Returns the error of a wrong update.
  const absl::Status& status() const { return status_; }
  // Returns the digests of the trainable variables, followed by those of the update ops.
  std::vector<uint64_t> digests() const {
    std::vector<uint64_t> digests;
    for (size_t i = 0; i < gradients_.size(); ++i) {
      if (layout_.variables()[i].spec.trainable()) digests.push_back(gradients_[i]);
    }
    digests.insert(digests.end(), updates_.begin(), updates_.end());
    return digests;
  }

 private:
  const ParameterLayout& layout_;
  const std::atomic<bool>& stop_;
  AlignedBuffer buffer_;
  float weight_ = 1;
  std::vector<uint64_t> gradients_;  // by variable
  std::vector<uint64_t> updates_;
  absl::Status status_;
};

absl::Status CopyPiece(const ParameterLayout& layout, int64_t index, const v1::TensorPiece& piece, float* values) {
  const ParameterLayout::Segment& segment = layout.segments()[index];
  const size_t bytes = static_cast<size_t>(segment.elements) * layout.variables()[segment.variable].element_bytes;
  if (piece.variable() != static_cast<uint32_t>(segment.variable) ||
      piece.offset() != static_cast<uint64_t>(segment.offset) || piece.content().size() != bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the canary's values have ", piece.content().size(), " bytes at ",
                                                   piece.offset(), " of variable number ", piece.variable(),
                                                   " where segment ", index, " has ", bytes, " at ", segment.offset,
                                                   " of number ", segment.variable));
  }
  std::memcpy(values + segment.flat_offset, piece.content().data(), bytes);
  return absl::OkStatus();
}

// Fetches the canary's values from the chief into `values`, a flat array.
absl::Status FetchValues(const ParameterLayout& layout, const v1::OpenSessionReply& session, ChiefClient* client,
                         float* values) {
  v1::GetCanaryValuesRequest request;
  request.set_session_id(session.session_id());
  request.set_generation(session.generation());
  const auto segments = static_cast<int64_t>(layout.segments().size());
  for (int64_t next = 0; next < segments;) {
    request.set_first_segment(next);
    ASSIGN_OR_RETURN(const v1::GetCanaryValuesReply reply, client->GetCanaryValues(request));
    if (reply.value().empty() || reply.value_size() > segments - next) {
      return absl::InvalidArgumentError(absl::StrCat("the canary's values came in ", reply.value_size(),
                                                     " pieces; from segment ", next, " on there are ",
                                                     segments - next));
    }
    for (const v1::TensorPiece& piece : reply.value()) RETURN_IF_ERROR(CopyPiece(layout, next++, piece, values));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> Compute(const ParameterLayout& layout, const config::v1::RunSpec& config,
                                              const Workload& workload, const v1::OpenSessionReply& session,
                                              const std::atomic<bool>& stop, ChiefClient* client) {
  AlignedBuffer values(static_cast<size_t>(layout.flat_elements()) * sizeof(float));
  RETURN_IF_ERROR(FetchValues(layout, session, client, values.as<float>()));
  std::vector<const float*> variables;
  for (const auto& variable : layout.variables()) variables.push_back(values.as<float>() + variable.flat_offset);
  DigestSink sink(&layout, &stop);
  ASSIGN_OR_RETURN(const auto transforms,
                   GradientTransforms::Create(config.optimizer(), workload.model->spec(), &sink));
  const absl::StatusOr<Batch> batch = BatchOf(workload, /*step=*/0, /*slot=*/0);
  // A worker whose input is empty joins with digests that are 0, so that its first block can end the run.
  if (absl::IsOutOfRange(batch.status())) return sink.digests();
  RETURN_IF_ERROR(batch.status());
  SlotKey key;
  key.seed = config.training().seed();
  const absl::Status computed = workload.model->ComputeGradients(variables, *batch, key, transforms.get());
  if (!absl::IsOutOfRange(computed)) RETURN_IF_ERROR(computed);
  RETURN_IF_ERROR(sink.status());
  return sink.digests();
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> ComputeCanary(const config::v1::RunSpec& config, const Workload& workload,
                                                    const v1::OpenSessionReply& session, const std::atomic<bool>& stop,
                                                    ChiefClient* client) {
  ASSIGN_OR_RETURN(const ParameterLayout layout, ParameterLayout::Create(workload.model->spec()));
  auto digests = Compute(layout, config, workload, session, stop, client);
  // Later steps may find their values in memory shared by the chief and then do not need this memory.
  if (layout.flat_elements() >= kLargeModel) ReleaseFreedMemory();
  return digests;
}

}  // namespace lockstep
