#ifndef LOCKSTEP_WORKER_DATA_CONCATENATED_H_
#define LOCKSTEP_WORKER_DATA_CONCATENATED_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/worker/data/dataset.h"

namespace lockstep {

// Returns a dataset with the examples of all parts, in order, and the largest number of classes of any part. Each part
// must have one example per row. The digest covers the parts' digests in order. A single part is returned unchanged.
// Returns InvalidArgument with the name (from `names`) of the first part whose features, labels or weights differ in
// form from those of the first part.
absl::StatusOr<std::unique_ptr<Dataset>> Concatenate(std::vector<std::unique_ptr<Dataset>> parts,
                                                     const std::vector<std::string>& names);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CONCATENATED_H_
