#ifndef LOCKSTEP_WORKER_DATA_FORMATS_SYNTHETIC_H_
#define LOCKSTEP_WORKER_DATA_FORMATS_SYNTHETIC_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/dataset.h"

namespace lockstep {

// Examples made from the seed: each a pure function of (seed, stream, number). The problem (cluster centres,
// regression weights) depends on the seed alone, so splits with different streams belong together.
// CLASSIFICATION: a class, its centre (standard normal) plus normal noise.
// REGRESSION: standard normal features; labels [1] = features . w / sqrt(number of features) + noise, w standard
// normal. SEQUENCE: ids [length]; one class is drawn and stands at about half of the places, other ids are uniform in
// [0, vocabulary); the label is the id below `classes` that occurs most often, the least of them when several do.
// Errors: InvalidArgument names the field.
absl::StatusOr<std::unique_ptr<Dataset>> CreateSyntheticDataset(const config::v1::InputConfig::Synthetic& config,
                                                                uint64_t seed);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_SYNTHETIC_H_
