#ifndef LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_GRADIENTS_H_
#define LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_GRADIENTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/contract/gradient_digest.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/common/step/sparse_differences.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

// A sink that collects the gradients that a model computes for the slots of one block, one slot at a time. It
// multiplies a slot's gradients by the slot's weight and sums them along the tree over slot numbers, and rounds each
// gradient and each sum to the run's gradient type. Each variable's sum is sent to the chief as soon as the last slot's
// gradient is final. With top-k compression, each slot's differences from its estimate are sent at that time instead,
// without summing. If the token asks for digests, they are computed from the slot's weighted gradients before any
// rounding. May be reused for later blocks. Use it from one thread.
class BlockGradients : public GradientSink {
 public:
  // `layout` and `wanted` must outlive this object. OnLoss returns false if *wanted is false. `nans` applies to
  // digests.
  BlockGradients(const ParameterLayout* layout, const std::atomic<bool>* wanted, const Compression& compression = {},
                 NaNs nans = NaNs::kAlike);

  // Begins a block whose contribution is sent to `channel`, which must outlive the block. See StepChannel::Assignment
  // for `estimates`.
  void BeginBlock(StepChannel* channel, const v1::Token& token, absl::Span<float* const> estimates = {});
  void BeginSlot(int64_t slot);

  bool OnLoss(float loss) override;
  void OnWeight(float weight) override;
  void OnUpdate(int index, Elements value) override;
  absl::Status OnSummary(const v1::Summary& summary) override;
  absl::Status OnMetric(const std::string& name, float value) override;
  void RequestStop() override { reports_.back().set_stop(true); }
  float* GradientBuffer(int variable) override;
  void OnGradient(int variable) override;

  // Sends the digests if the token asks for them. Call it after the last slot.
  void EndBlock();

  // Returns the channel's first error since BeginBlock.
  const absl::Status& status() const { return status_; }
  // Returns the reports of the block's slots so far.
  const std::vector<v1::SlotReport>& reports() const { return reports_; }

 private:
  // Appends a summary to a field of the slot's report. Errors: see OnSummary.
  absl::Status Append(const v1::Summary& summary, std::string* field);

  // The differences for one segment of one slot's gradient, which are sent together with the last slot's.
  struct Differences {
    int64_t slot = 0;
    int64_t offset = 0;
    std::string bytes;
  };

  // Returns the slot's index in its block.
  int64_t index() const { return static_cast<int64_t>(reports_.size()) - 1; }
  float* Partial(size_t depth, int variable);
  void SumAndSend(int variable, bool last);
  void CompressAndSend(int variable, bool last);

  const ParameterLayout& layout_;
  const std::atomic<bool>* const wanted_;
  const int64_t max_summary_bytes_;  // of a slot
  const v1::DataType type_;
  const NaNs nans_;
  // Null unless gradients are compressed by top-k.
  const std::unique_ptr<DifferenceEncoder> encoder_;
  absl::Span<float* const> estimates_;
  std::vector<std::vector<Differences>> differences_;  // by variable
  StepChannel* channel_ = nullptr;
  v1::Token token_;
  std::vector<v1::SlotReport> reports_;
  bool reports_sent_ = false;
  std::vector<uint64_t> digests_;  // by variable, when the token asks for them
  absl::Status status_;
  // Partial sums that are waiting for their right sibling, one for each one-bit in index(). The last one is in the
  // channel's buffer, and the others are here, as flat arrays.
  std::vector<AlignedBuffer> partial_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_GRADIENTS_H_
