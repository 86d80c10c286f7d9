#ifndef LOCKSTEP_SERVER_PS_VERSIONS_OPTIMIZER_STATE_VERSIONS_H_
#define LOCKSTEP_SERVER_PS_VERSIONS_OPTIMIZER_STATE_VERSIONS_H_

#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/memory/buffer_pool.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/server/optimizer/optimizer.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"

namespace lockstep {

// The state arrays of an optimizer, each as long as the flat array of values: the version at the last committed step
// and, during an update, the next one. A snapshot of the former copies nothing. Life: Clear or Restore, then
// for every step BeginUpdate and Commit. Thread-safety: Current, Next and AddTo may run on several threads; everything
// else is for one thread at a time, and not during those.
class OptimizerStateVersions {
 public:
  // Takes no memory yet. At most `spare_versions` unused versions are kept.
  OptimizerStateVersions(std::shared_ptr<const ParameterLayout> layout, absl::Span<const Optimizer::State> states,
                         size_t spare_versions);

  // Every element gets its state's initial value.
  void Clear();
  // In place of Clear: adds to `places` where every state of every trainable variable is to be read. Errors: those of
  // CheckStoredVariable.
  absl::Status Restore(const BundleReader& reader, std::vector<BundleReader::Place>* places);

  // Between updates: the current version of the state that is called `name` is a copy of itself from now on; returns
  // its array, or null when there is no such state.
  float* CopyCurrent(absl::string_view name);

  // Gets memory for the next version, not initialized.
  void BeginUpdate();
  // A segment of each state: as Optimizer::Apply reads and writes it.
  absl::InlinedVector<const float*, 3> Current(const ParameterLayout::Segment& segment) const;
  absl::InlinedVector<float*, 3> Next(const ParameterLayout::Segment& segment) const;
  // The next version becomes the current one.
  void Commit();
  // In place of Commit: there is no next version any more.
  void DropUpdate() { next_.clear(); }

  // Takes memory for the spare versions in advance, and adds it to `taken`.
  void TakeSpare(BufferPool::Buffers* taken) { pool_.Fill(taken); }
  // Adds the current version to `snapshot`.
  void AddTo(VariableSnapshot* snapshot) const;

 private:
  // A current version that is not initialized.
  void Renew();

  const std::shared_ptr<const ParameterLayout> layout_;
  const std::vector<Optimizer::State> states_;
  BufferPool pool_;
  // One array for each state; `next_` is empty when no update is in progress.
  std::vector<std::shared_ptr<AlignedBuffer>> current_;
  std::vector<std::shared_ptr<AlignedBuffer>> next_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VERSIONS_OPTIMIZER_STATE_VERSIONS_H_
