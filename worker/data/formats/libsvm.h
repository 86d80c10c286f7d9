#ifndef LOCKSTEP_WORKER_DATA_FORMATS_LIBSVM_H_
#define LOCKSTEP_WORKER_DATA_FORMATS_LIBSVM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/records/record_format.h"

namespace lockstep {

// Creates a format for lines "label index:value index:value ... # comment". Indices start at 1, and features that a
// line omits are 0. Examples are dense, DT_FLOAT [features]. Labels are classes, -1 and +1 with binary_labels, or
// numbers with regression.
//
// Errors: InvalidArgument if `features` is not positive, or if both flags are set.
absl::StatusOr<std::unique_ptr<RecordFormat>> CreateLibsvmFormat(const config::v1::InputConfig::Libsvm& config);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_LIBSVM_H_
