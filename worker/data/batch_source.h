#ifndef LOCKSTEP_WORKER_DATA_BATCH_SOURCE_H_
#define LOCKSTEP_WORKER_DATA_BATCH_SOURCE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/worker/data/batch.h"

namespace lockstep {

// The dtypes and shapes of every example of a split; models are built against it.
struct ExampleSpec {
  // DT_FLOAT or DT_INT32, and the shape without the batch dimension.
  v1::DataType features_dtype = v1::DT_FLOAT;
  Shape features_shape;
  // DT_INT32 with shape [] and `classes` > 0, or DT_FLOAT with shape [outputs] and `classes` 0.
  v1::DataType labels_dtype = v1::DT_INT32;
  Shape labels_shape;
  int64_t classes = 0;
};

// Training batches by address: the batch of (step, slot) is a pure function of the data, the configuration and the
// seed. In a run whose workers read input streams, `step` is the position in a stream and `slot` the number of the
// stream. Thread-safe.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  virtual const ExampleSpec& spec() const = 0;

  // Errors: OutOfRange if a bounded input has ended; DataLoss naming the damaged file and record.
  virtual absl::StatusOr<Batch> Get(int64_t step, int64_t slot) = 0;

  // A hint that Get(step, slot) will come soon. Never blocks.
  virtual void Prefetch(int64_t step, int64_t slot) {}

  // If batches are quick to prepare, prepares a hinted one in the calling thread, which would otherwise be idle
  // briefly. Returns false if there is no hint or if batches take too long. An unexpectedly slow batch delays the
  // caller.
  virtual bool PrepareIfBrief() { return false; }
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_BATCH_SOURCE_H_
