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
#include "lockstep/server/ps/non_finite_value.h"
#include "lockstep/server/ps/slot_metrics.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// The sum of one segment's gradients over the slots of one step, along the fixed binary tree over slot numbers,
// ((g0+g1)+(g2+g3))+... Its bits do not depend on the order or the blocks in which gradients arrive. Every sum is
// rounded to a type (common/tensor/rounding.h), as workers round their sums and gradients. Holds at most one partial
// sum for each complete node whose sibling is missing. Not thread-safe.
class SlotTree {
 public:
  // The memory for partial sums. It must outlive the tree.
  struct Memory {
    // Room for one partial sum of all the segment's floats. May be null.
    float* home = nullptr;
    // Buffers of at least as many floats for the other partial sums. If null, they are allocated individually.
    BufferPool* pool = nullptr;
  };

  // `slots` = replicas_to_aggregate; `elements` = floats of the segment; `type` = the type that sums are rounded to.
  SlotTree(int64_t slots, int64_t elements, Memory memory, v1::DataType type = v1::DT_FLOAT)
      : slots_(slots), elements_(elements), memory_(memory), type_(type) {}

  // Starts an empty tree for another step, with new memory for one partial sum.
  void Restart(float* home) {
    memory_.home = home;
    nodes_.clear();
    complete_ = false;
  }

  enum class Outcome {
    kCovered,   // the block was already covered; nothing changed
    kAdded,     // added; the sum is not complete yet
    kComplete,  // added; the sum is now complete
  };
  struct Result {
    Outcome outcome = Outcome::kCovered;
    // For kComplete, the sum over all slots. Valid until the next call or, if the block was the whole tree, as long as
    // `content` is valid.
    const float* sum = nullptr;
  };

  // Returns true if Add would not change anything.
  bool Covers(const SlotBlock& block) const;

  // Adds the sum over `block`, a node of the tree: elements [first, first + elements) of `content`. A larger block
  // replaces smaller ones inside it.
  Result Add(const SlotBlock& block, const FloatChunks& content, int64_t first);

  // The number of partial sums in memory.
  size_t num_sums() const { return nodes_.size(); }

  // Frees the memory. The tree stays complete.
  void ReleaseMemory();

 private:
  struct Node {
    SlotBlock block;
    float* sum = nullptr;
    std::shared_ptr<AlignedBuffer> buffer;  // null if the sum is in memory_.home
  };

  // Allocates memory for the node's sum.
  void Place(Node* node) const;

  const int64_t slots_;
  const int64_t elements_;
  Memory memory_;
  const v1::DataType type_;
  // Complete nodes. None is inside another one, and no two are siblings.
  std::vector<Node> nodes_;
  bool complete_ = false;
};

// All contributions to one step. Sums gradients segment by segment as their pieces arrive (SlotTree), and applies the
// optimizer to a segment as soon as its sum is complete, or to all segments after the last sum if the store holds them.
// Accepts each (step, slot) once, from its first sender. The first partial sum of a segment is stored in the memory for
// the segment's next values. Contributions must have passed a ContributionChecker. Thread-safe; pieces of different
// segments are processed in parallel. `store` must have begun the update and must outlive this object.
class ContributionSet {
 public:
  struct Options {
    // If true, a set with values that are not finite can still become complete. Its update must then be skipped
    // (VariableStore::SkipUpdate).
    bool skips_non_finite = false;
    // If true, the optimizer gets the sum of the slots' gradients instead of their mean.
    bool applies_sum = false;
  };
  ContributionSet(VariableStore* store, int64_t slots, const Options& options);
  ContributionSet(VariableStore* store, int64_t slots) : ContributionSet(store, slots, Options()) {}

  // Empties the set for another update, which the store must have begun. No other thread may use the set during the
  // call.
  void Restart() ABSL_LOCKS_EXCLUDED(mutex_);
  // Frees the memory of partial sums.
  void ReleaseMemory() ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds losses and update-op values of the slots of a block. A slot keeps its first report. A loss or an update value
  // that is not finite is not an error; see FindNonFinite.
  void AddReports(absl::Span<const v1::SlotReport> reports) ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds a piece of the sum over `block`, whose slots must all have reported. A sparse piece belongs to one slot.
  // Returns true if any of it was new. A segment whose sum is not finite is not applied; see FindNonFinite.
  bool AddPiece(const SlotBlock& block, const StepPiece& piece) ABSL_LOCKS_EXCLUDED(mutex_);

  // True if every trainable segment was applied. By then, every slot has reported.
  bool complete() const { return segments_left_.load(std::memory_order_acquire) == 0; }

  // Finds a NaN or an infinity in the gradient sums or in the reports of `block`'s slots, or slot weights that allow no
  // mean. With such a gradient or such weights, a set never becomes complete unless skips_non_finite is set.
  absl::optional<NonFiniteValue> FindNonFinite(const SlotBlock& block) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The segments whose new values are final, in the order in which they became final.
  std::vector<int> finished_segments() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return finished_;
  }
  size_t num_finished_segments() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The results of a complete set, with the slots in order.
  struct Results {
    double mean_loss = 0;  // weighted by the slots' weights
    bool stop = false;     // a slot requested the end of the run
    // Summaries and metrics of the slots that have any.
    std::vector<std::string> summaries;  // serialized
    std::vector<SlotMetrics> metrics;
    std::vector<std::vector<std::vector<float>>> updates;  // [slot][update op], for VariableStore::CommitUpdate
  };
  Results TakeResults() ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves finished_segments() of a complete set to `*segments`.
  void TakeFinishedSegments(std::vector<int>* segments) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    finished_.swap(*segments);
    finished_.clear();
  }

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
    float weight = 1;
    bool stop = false;
    std::string summary;
    std::string metrics;
    std::vector<std::vector<float>> updates;
    // The first update op with a value that is not finite; -1 if there is none.
    int non_finite_update = -1;
  };

  bool AddSparsePiece(const StepPiece& piece) ABSL_LOCKS_EXCLUDED(mutex_);
  // If the segment's tree is complete (`result`), applies its sum, or keeps it if the store holds segments. Returns
  // true if the sum was applied, kept or skipped.
  bool Apply(int index, const SlotTree::Result& result, Segment* segment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(segment->mutex);
  // Returns the sum of the slots' weights in slot order, in double.
  double TotalWeight() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called without locks after a segment was applied or, if the store holds segments, after the segment's sum was
  // completed. In the latter case, the last call to NoteHeld applies all segments.
  void NoteApplied(int index) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteHeld() ABSL_LOCKS_EXCLUDED(mutex_);

  VariableStore* const store_;
  const ParameterLayout& layout_;
  const int64_t slots_;
  const bool skips_non_finite_;
  const bool applies_sum_;
  // By segment. Null for segments of untrained variables.
  std::vector<std::unique_ptr<Segment>> segments_;
  std::atomic<int> segments_left_;
  // If the store holds segments, the number of segments without a complete sum.
  std::atomic<int> sums_left_;
  // The number of slots until every slot has reported, which happens before the gradients arrive, and TotalWeight from
  // then on. Always 1 with Options::applies_sum.
  std::atomic<float> divisor_;
  // True if every slot has reported and TotalWeight is 0 or too large, so that at least the loss has no mean.
  std::atomic<bool> has_no_mean_{false};
  // A variable whose gradient is not finite; -1 if there is none.
  std::atomic<int> non_finite_variable_{-1};
  // True if a report has a loss or an update value that is not finite.
  std::atomic<bool> has_non_finite_report_{false};
  // May be locked while a segment's mutex is held, but not the other way around.
  mutable Mutex mutex_;
  std::vector<Slot> reports_ ABSL_GUARDED_BY(mutex_);
  int64_t reports_left_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> finished_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_CONTRIBUTION_SET_H_
