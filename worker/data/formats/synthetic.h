#ifndef LOCKSTEP_WORKER_DATA_FORMATS_SYNTHETIC_H_
#define LOCKSTEP_WORKER_DATA_FORMATS_SYNTHETIC_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/dataset.h"

namespace lockstep {

// Creates a dataset that generates its examples from the seed. Each example is a pure function of (seed, stream,
// number). The problem (cluster centers, regression weights) depends only on the seed, so splits with different streams
// pose the same problem.
//
//   CLASSIFICATION: features are the center of a class (standard normal) plus normal noise.
//   REGRESSION: standard normal features; labels [1] = features . w / sqrt(number of features) + noise, w standard
//   normal.
//   SEQUENCE: ids [length]; one class is drawn and takes about half of the positions, other ids are uniform in
//   [0, vocabulary). The label is the most frequent id below `classes`, the lowest one in a tie.
//
// Errors: InvalidArgument names the field.
absl::StatusOr<std::unique_ptr<Dataset>> CreateSyntheticDataset(const config::v1::InputConfig::Synthetic& config,
                                                                uint64_t seed);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_SYNTHETIC_H_
