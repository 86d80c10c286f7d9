#ifndef LOCKSTEP_WORKER_DATA_CONCATENATED_H_
#define LOCKSTEP_WORKER_DATA_CONCATENATED_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/worker/data/dataset.h"

namespace lockstep {

// Returns the examples of all parts, in order, with as many classes as the part that has most. Each part has one
// example for each of its rows. The digest covers the parts' digests in their order; a single part is returned
// unchanged. `names` has a name of each part for errors: InvalidArgument names the first part whose features, labels or
// weights have another form than those of the first part.
absl::StatusOr<std::unique_ptr<Dataset>> Concatenate(std::vector<std::unique_ptr<Dataset>> parts,
                                                     const std::vector<std::string>& names);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CONCATENATED_H_
