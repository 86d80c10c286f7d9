#ifndef LOCKSTEP_WORKER_DATA_FORMATS_TESTING_IDX_ENCODER_H_
#define LOCKSTEP_WORKER_DATA_FORMATS_TESTING_IDX_ENCODER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lockstep {

// Returns the bytes of an IDX file of unsigned bytes, for tests.
std::string EncodeIdx(absl::Span<const uint32_t> dims, absl::string_view elements);

// Returns the contents compressed as one gzip member, for tests.
std::string Gzip(absl::string_view contents);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_TESTING_IDX_ENCODER_H_
