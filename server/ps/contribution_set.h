#ifndef LOCKSTEP_SERVER_PS_CONTRIBUTION_SET_H_
#define LOCKSTEP_SERVER_PS_CONTRIBUTION_SET_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/client/step_frame.h"
#include "common/sync/slot_block.h"
#include "proto/chief.pb.h"
#include "server/ps/slot_tree.h"
#include "server/ps/variable_store.h"

namespace lockstep {

// Everything that was contributed to one step. Gradients are summed segment by segment as their pieces
// arrive (SlotTree), and the optimizer is applied to a segment the moment its sum is complete. What is
// named by (step, slot) is taken once, from whoever sends it first. The first partial sum of a segment lies where its
// next values will.
// Thread-safe; pieces of different segments proceed side by side. `store` must have begun the update
// and must outlive this.
class ContributionSet {
 public:
  ContributionSet(VariableStore* store, int64_t slots);

  // Losses and update-op values of every slot of `block`. A slot that reported already keeps its first report.
  // Errors: InvalidArgument when a slot is missing, foreign or repeated, or an update's size is wrong.
  // A loss or an update value that is not finite is no error: see FindNonFinite.
  absl::Status AddReports(const SlotBlock& block, absl::Span<const SlotReport> reports) ABSL_LOCKS_EXCLUDED(mutex_);

  // Checks that a piece consists of whole segments of a trainable variable; InvalidArgument names what disagrees.
  absl::Status CheckPiece(const StepPiece& piece) const;
  // The same for a sparse piece of a slot of `block`: one segment.
  absl::Status CheckSparsePiece(const SlotBlock& block, const StepPiece& piece) const;

  // Adds a checked piece of the sum over `block`, whose slots have all reported; a sparse piece is its slot's alone.
  // Returns whether any of it was new. A segment whose sum is not finite is not applied: see FindNonFinite.
  bool AddPiece(const SlotBlock& block, const StepPiece& piece) ABSL_LOCKS_EXCLUDED(mutex_);

  // Every trainable segment was applied. Then every slot has reported.
  bool complete() const { return segments_left_.load(std::memory_order_acquire) == 0; }

  struct NonFinite {
    std::string what;              // "loss", "update of mean", "gradient of w"
    absl::optional<int64_t> slot;  // none for a gradient
  };
  // Something NaN or infinite that was contributed to `block`. A set with a gradient like that never gets complete.
  absl::optional<NonFinite> FindNonFinite(const SlotBlock& block) const ABSL_LOCKS_EXCLUDED(mutex_);
  bool has_applied_segments() const { return segments_begun_.load(std::memory_order_acquire) > 0; }

  // Segments whose new values are final, in the order in which they were finished.
  std::vector<int> finished_segments() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t num_finished_segments() const ABSL_LOCKS_EXCLUDED(mutex_);

  // For a complete set: mean loss over the slots in slot order, and the update values [slot][update op].
  double MeanLoss() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::vector<std::vector<float>>> TakeUpdates() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Segment {
    Segment(int64_t slots, int64_t elements, const SlotTree::Memory& memory, DataType type)
        : tree(slots, elements, memory, type) {}
    Mutex mutex;
    SlotTree tree ABSL_GUARDED_BY(mutex);
  };
  struct Slot {
    bool reported = false;
    float loss = 0;
    std::vector<std::vector<float>> updates;
    // The first update op with a value that is not finite.
    int non_finite_update = -1;
  };

  bool AddSparsePiece(const StepPiece& piece) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes a result of the segment's tree: applies a complete sum. Returns whether it was complete.
  bool Apply(int index, const SlotTree::Result& result, Segment* segment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(segment->mutex);
  // After a segment was applied, without its lock.
  void NoteApplied(int index) ABSL_LOCKS_EXCLUDED(mutex_);
  // The piece names a variable of the model.
  absl::Status CheckVariable(const StepPiece& piece) const;
  absl::Status CheckReport(const SlotBlock& block, const SlotReport& report) const;

  VariableStore* const store_;
  const ParameterLayout& layout_;
  const int64_t slots_;
  // By segment; null for those of non-trainable variables.
  std::vector<std::unique_ptr<Segment>> segments_;
  std::atomic<int> segments_left_;
  std::atomic<int> segments_begun_{0};
  // A variable whose gradient is not finite.
  std::atomic<int> non_finite_variable_{-1};
  // After the mutex of a segment.
  mutable Mutex mutex_;
  std::vector<Slot> reports_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> finished_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_CONTRIBUTION_SET_H_
