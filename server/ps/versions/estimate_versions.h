#ifndef LOCKSTEP_SERVER_PS_VERSIONS_ESTIMATE_VERSIONS_H_
#define LOCKSTEP_SERVER_PS_VERSIONS_ESTIMATE_VERSIONS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/memory/buffer_pool.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"

namespace lockstep {

// The estimates of the slots' gradients, to which top-k compression adds differences: the version at the last committed
// step, shared by all readers, and, during an update, the next one. Call Clear or Restore first; then, for every step,
// BeginUpdate, AddToEstimate for every trainable segment and slot, and Commit. AddToEstimate may run on several threads
// for different segments or slots, in parallel with current(). All other methods are for one thread at a time, and not
// during those calls.
class EstimateVersions {
 public:
  // Does not allocate memory yet. `num_slots` is 0 without top-k compression.
  EstimateVersions(std::shared_ptr<const ParameterLayout> layout, int64_t num_slots);

  // Sets all estimates to zero.
  void Clear();
  // Alternative to Clear: adds the destinations of the estimates of every slot and trainable variable to `places`. If
  // `may_lack`, estimates that the reader lacks are zero. Errors: as for CheckStoredVariable.
  absl::Status Restore(const BundleReader& reader, std::vector<BundleReader::Place>* places, bool may_lack = false);

  // Allocates the next version without initializing it.
  void BeginUpdate();
  // Writes a segment of the next estimate of a slot's gradient, the current one plus `differences`, and returns it.
  const float* AddToEstimate(const ParameterLayout::Segment& segment, int64_t slot, absl::string_view differences);
  // Makes the next version the current one.
  void Commit();
  // Drops the next version.
  void DropUpdate() { next_.clear(); }

  // Allocates a spare version in advance, and adds it to `taken`.
  void TakeSpare(BufferPool::Buffers* taken) { pool_.Fill(taken); }

  std::shared_ptr<const GradientEstimates> current() const { return current_; }
  int64_t num_slots() const { return num_slots_; }

 private:
  const std::shared_ptr<const ParameterLayout> layout_;
  const int64_t num_slots_;
  BufferPool pool_;
  std::shared_ptr<const GradientEstimates> current_;
  // The next version, during an update.
  std::vector<std::shared_ptr<AlignedBuffer>> next_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VERSIONS_ESTIMATE_VERSIONS_H_
