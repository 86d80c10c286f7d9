#ifndef LOCKSTEP_SERVER_PS_CONTRIBUTION_SET_H_
#define LOCKSTEP_SERVER_PS_CONTRIBUTION_SET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/memory/buffer_pool.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/float_chunks.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// The sum of one segment's gradients over the slots of one step, formed along the fixed binary tree
// over slot numbers, ((g0+g1)+(g2+g3))+..., in whatever order and by whatever blocks they arrive: the
// bits do not depend on it. Every sum is rounded to a type (common/tensor/rounding.h), as the workers round theirs
// and the gradients themselves. Holds at most one partial sum for each complete node whose sibling is
// missing. Not thread-safe.
class SlotTree {
 public:
  // Where partial sums lie. All of it must outlive the tree.
  struct Memory {
    // One of them lies here, as many floats as the segment has; null: none does.
    float* home = nullptr;
    // The others, in buffers of at least as many floats; null: in memory of their own.
    BufferPool* pool = nullptr;
  };

  // `slots` = replicas_to_aggregate; `elements` = floats of the segment. `type` = what sums are rounded to.
  SlotTree(int64_t slots, int64_t elements, Memory memory, v1::DataType type = v1::DT_FLOAT)
      : slots_(slots), elements_(elements), memory_(memory), type_(type) {}

  // For another step: nothing is covered.
  void Restart(float* home) {
    memory_.home = home;
    nodes_.clear();
    complete_ = false;
  }

  enum class Outcome {
    kCovered,   // the block was covered already; nothing changed
    kAdded,     // taken, the sum is not complete yet
    kComplete,  // taken, and now all slots are in
  };
  struct Result {
    Outcome outcome = Outcome::kCovered;
    // kComplete: the sum over all slots. Valid until the next call, or as long as `content` when the
    // block was the whole tree.
    const float* sum = nullptr;
  };

  // Whether Add would change nothing.
  bool Covers(const SlotBlock& block) const;

  // Adds the sum over `block`, a node of the tree: elements [first, first + elements) of `content`. A larger
  // block replaces the smaller ones inside it.
  Result Add(const SlotBlock& block, const FloatChunks& content, int64_t first);

  // Partial sums that are held.
  size_t num_sums() const { return nodes_.size(); }

  // Frees the memory; the tree stays complete.
  void ReleaseMemory();

 private:
  struct Node {
    SlotBlock block;
    float* sum = nullptr;
    std::shared_ptr<AlignedBuffer> buffer;  // null: the sum lies at home
  };

  // Finds memory for the node's sum.
  void Place(Node* node) const;

  const int64_t slots_;
  const int64_t elements_;
  Memory memory_;
  const v1::DataType type_;
  // Complete nodes, none inside another, none the sibling of another.
  std::vector<Node> nodes_;
  bool complete_ = false;
};

// Everything that was contributed to one step. Gradients are summed segment by segment as their pieces
// arrive (SlotTree), and the optimizer is applied to a segment the moment its sum is complete. What is
// named by (step, slot) is taken once, from its first sender. The first partial sum of a segment lies where its
// next values will.
// Takes what a ContributionChecker has passed. Thread-safe; pieces of different segments proceed side by side. `store`
// must have begun the update and must outlive this.
class ContributionSet {
 public:
  // `skips_non_finite`: what is not finite does not keep the set from getting complete. Its update is then to be
  // skipped (VariableStore::SkipUpdate).
  ContributionSet(VariableStore* store, int64_t slots, bool skips_non_finite = false);

  // For another update, which the store has begun: nothing was contributed. Not while another thread uses the set.
  void Restart() ABSL_LOCKS_EXCLUDED(mutex_);
  // Frees the memory of partial sums.
  void ReleaseMemory() ABSL_LOCKS_EXCLUDED(mutex_);

  // Losses and update-op values of the slots of a block. A slot that reported already keeps its first report.
  // A loss or an update value that is not finite is no error: see FindNonFinite.
  void AddReports(absl::Span<const v1::SlotReport> reports) ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds a piece of the sum over `block`, whose slots have all reported; a sparse piece is its slot's alone.
  // Returns whether any of it was new. A segment whose sum is not finite is not applied: see FindNonFinite.
  bool AddPiece(const SlotBlock& block, const StepPiece& piece) ABSL_LOCKS_EXCLUDED(mutex_);

  // Every trainable segment was applied. Then every slot has reported.
  bool complete() const { return segments_left_.load(std::memory_order_acquire) == 0; }

  struct NonFinite {
    std::string what;              // "loss", "update of mean", "gradient of w"
    absl::optional<int64_t> slot;  // none for a gradient
  };
  // Something NaN or infinite that was contributed to `block`. A set with a gradient like that never gets complete,
  // unless it skips.
  absl::optional<NonFinite> FindNonFinite(const SlotBlock& block) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Segments whose new values are final, in the order in which they were finished.
  std::vector<int> finished_segments() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return finished_;
  }
  size_t num_finished_segments() const ABSL_LOCKS_EXCLUDED(mutex_);

  // For a complete set: mean loss over the slots in slot order, whether a slot asked for the run's end, the segments in
  // the order in which they were finished, the slots' summaries in slot order (serialized; slots without one are left
  // out), and the update values [slot][update op].
  double MeanLoss() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool stop() const ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeFinishedSegments(std::vector<int>* segments) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    finished_.swap(*segments);
    finished_.clear();
  }
  std::vector<std::string> TakeSummaries() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::vector<std::vector<float>>> TakeUpdates() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Segment {
    Segment(int64_t slots, int64_t elements, const SlotTree::Memory& memory, v1::DataType type)
        : tree(slots, elements, memory, type) {}
    Mutex mutex;
    SlotTree tree ABSL_GUARDED_BY(mutex);
  };
  struct Slot {
    bool reported = false;
    float loss = 0;
    bool stop = false;
    std::string summary;
    std::vector<std::vector<float>> updates;
    // The first update op with a value that is not finite.
    int non_finite_update = -1;
  };

  bool AddSparsePiece(const StepPiece& piece) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes a result of the segment's tree: applies a complete sum. Returns whether the segment is done with.
  bool Apply(int index, const SlotTree::Result& result, Segment* segment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(segment->mutex);
  // After a segment was applied, without its lock.
  void NoteApplied(int index) ABSL_LOCKS_EXCLUDED(mutex_);

  VariableStore* const store_;
  const ParameterLayout& layout_;
  const int64_t slots_;
  const bool skips_non_finite_;
  // By segment; null for those of non-trainable variables.
  std::vector<std::unique_ptr<Segment>> segments_;
  std::atomic<int> segments_left_;
  // A variable whose gradient is not finite.
  std::atomic<int> non_finite_variable_{-1};
  // After the mutex of a segment.
  mutable Mutex mutex_;
  std::vector<Slot> reports_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> finished_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_CONTRIBUTION_SET_H_
