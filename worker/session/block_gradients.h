#ifndef LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENTS_H_
#define LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/client/chief_client.h"
#include "common/config/compression.h"
#include "common/tensor/aligned_buffer.h"
#include "common/tensor/parameter_layout.h"
#include "common/tensor/sparse_differences.h"
#include "proto/chief.pb.h"
#include "worker/nn/model.h"

namespace lockstep {

// Collects what a model computes for the slots of one block, one slot after the other, sums the gradients
// along the tree over slot numbers, each gradient and each sum rounded to the run's type for gradients, and sends each
// variable's sum to the chief as soon as the last slot's gradient of it is final. With top-k compression nothing is
// summed: each slot's differences from its estimate are sent then. Reused for block after block. For one thread.
class BlockGradients : public GradientSink {
 public:
  // `layout` and `wanted` must outlive this; OnLoss returns false when *wanted is false.
  BlockGradients(const ParameterLayout* layout, const std::atomic<bool>* wanted, const Compression& compression = {});

  // The next block goes to `channel`, which must outlive it. `estimates` as in StepChannel::Assignment.
  void BeginBlock(StepChannel* channel, const Token& token, absl::Span<float* const> estimates = {});
  void BeginSlot(int64_t slot);

  bool OnLoss(float loss) override;
  void OnUpdate(int index, absl::Span<const float> value) override;
  float* GradientBuffer(int variable) override;
  void OnGradient(int variable) override;

  // The first error of the channel since BeginBlock.
  const absl::Status& status() const { return status_; }
  // Of the slots of the block so far.
  const std::vector<SlotReport>& reports() const { return reports_; }

 private:
  // Differences of one segment of one slot's gradient, to be sent with the last slot's.
  struct Differences {
    int64_t slot = 0;
    int64_t offset = 0;
    std::string bytes;
  };

  float* Partial(size_t depth, int variable);
  void SumAndSend(int variable, bool last);
  void CompressAndSend(int variable, bool last);

  const ParameterLayout& layout_;
  const std::atomic<bool>* const wanted_;
  const DataType type_;
  // Of top-k compression; null without.
  const std::unique_ptr<DifferenceEncoder> encoder_;
  absl::Span<float* const> estimates_;
  std::vector<std::vector<Differences>> differences_;  // by variable
  StepChannel* channel_ = nullptr;
  Token token_;
  int64_t index_ = 0;  // of the slot in its block
  std::vector<SlotReport> reports_;
  bool reports_sent_ = false;
  absl::Status status_;
  // Partial sums that wait for their right sibling: one for each one-bit of index_. The lowest lies in the
  // channel's buffer, the others here (flat arrays).
  std::vector<AlignedBuffer> partial_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENTS_H_
