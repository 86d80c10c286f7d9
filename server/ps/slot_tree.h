#ifndef LOCKSTEP_SERVER_PS_SLOT_TREE_H_
#define LOCKSTEP_SERVER_PS_SLOT_TREE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/memory/buffer_pool.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/common/tensor/float_chunks.h"

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

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_SLOT_TREE_H_
