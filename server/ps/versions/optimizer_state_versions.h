#ifndef LOCKSTEP_SERVER_PS_VERSIONS_OPTIMIZER_STATE_VERSIONS_H_
#define LOCKSTEP_SERVER_PS_VERSIONS_OPTIMIZER_STATE_VERSIONS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/memory/buffer_pool.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/server/optimizer/optimizer.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"

namespace lockstep {

// The state arrays of the optimizers, each as long as the trained part of the flat array: in the version at the last
// committed step and, during an update, in the next version. State k of every variable is in array k, so the number of
// arrays is the largest number of states of any variable. A snapshot of the current version copies nothing. Life cycle:
// Clear or Restore; then for every step BeginUpdate and Commit. Thread-safety: Current, Next and AddTo may run on
// several threads. All other methods are for one thread at a time, and not during those calls.
class OptimizerStateVersions {
 public:
  // Does not allocate memory yet. `states` has the states of each variable of the layout, and none for a variable that
  // is not trained. Keeps at most `spare_versions` unused versions.
  OptimizerStateVersions(std::shared_ptr<const ParameterLayout> layout,
                         std::vector<std::vector<Optimizer::State>> states, size_t spare_versions);

  size_t num_arrays() const { return arrays_; }
  const std::vector<Optimizer::State>& states_of(int variable) const { return states_[variable]; }

  // Sets every element to its state's initial value.
  void Clear();
  // A variable's state that the reader lacks.
  struct LackingState {
    int variable = 0;
    size_t state = 0;
  };
  using Lacking = std::vector<LackingState>;
  // Alternative to Clear: adds the destinations of every state of every trainable variable to `places`. If `lacking` is
  // not null, states that the reader lacks are added to it, and their elements get their initial value. Returns the
  // errors of CheckStoredVariable.
  absl::Status Restore(const BundleReader& reader, std::vector<BundleReader::Place>* places,
                       Lacking* lacking = nullptr);

  // Replaces the current version of array k with a copy, and returns the copy. Call it between updates.
  float* CopyCurrent(size_t k);

  // Allocates the next version without initializing it.
  void BeginUpdate();
  // Return the segment's part of each state array that its variable uses, as Optimizer::Apply reads it (Current) and
  // writes it (Next).
  absl::InlinedVector<const float*, 3> Current(const ParameterLayout::Segment& segment) const;
  absl::InlinedVector<float*, 3> Next(const ParameterLayout::Segment& segment) const;
  // Makes the next version the current one.
  void Commit();
  // Drops the next version.
  void DropUpdate() { next_.clear(); }

  // Allocates the spare versions in advance, and adds them to `taken`.
  void TakeSpare(BufferPool::Buffers* taken) { pool_.Fill(taken); }
  // Adds the current version to `snapshot`.
  void AddTo(VariableSnapshot* snapshot) const;

 private:
  // Allocates a current version without initializing it.
  void Renew();

  const std::shared_ptr<const ParameterLayout> layout_;
  const std::vector<std::vector<Optimizer::State>> states_;  // by variable
  const size_t arrays_;
  const std::shared_ptr<const std::vector<std::vector<std::string>>> names_;  // of states_
  BufferPool pool_;
  // `next_` is empty unless an update is in progress.
  std::vector<std::shared_ptr<AlignedBuffer>> current_;
  std::vector<std::shared_ptr<AlignedBuffer>> next_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VERSIONS_OPTIMIZER_STATE_VERSIONS_H_
