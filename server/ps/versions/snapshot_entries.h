#ifndef LOCKSTEP_SERVER_PS_VERSIONS_SNAPSHOT_ENTRIES_H_
#define LOCKSTEP_SERVER_PS_VERSIONS_SNAPSHOT_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// A tensor of a snapshot, as stored in a checkpoint and returned to readers. A value type.
struct SnapshotEntry {
  enum class Source { kValues, kConstants, kOptimizerState, kEstimates, kScalar, kGlobalStep };

  // The key in a checkpoint (checkpoint_keys.h).
  std::string key;
  v1::DataType dtype = v1::DT_FLOAT;
  Shape shape;
  size_t bytes = 0;
  Source source = Source::kValues;
  // Index of the array within the source, or of the scalar.
  size_t index = 0;
  // Offset in the source's array, in floats.
  int64_t flat_offset = 0;
};

// Returns all entries in the order in which they are written: each variable with its optimizer state
// ("<variable>/<state>") and estimates ("<variable>/GradientEstimate_<slot>"), then the state of update ops
// ("<variable>/biased"), the optimizer's scalars and global_step (int64). Every snapshot of a VariableStore has the
// same entries.
std::vector<SnapshotEntry> EntriesOf(const VariableSnapshot& snapshot);

// Returns the entry's elements, little-endian, in the snapshot's memory.
absl::string_view BytesOf(const VariableSnapshot& snapshot, const SnapshotEntry& entry);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VERSIONS_SNAPSHOT_ENTRIES_H_
