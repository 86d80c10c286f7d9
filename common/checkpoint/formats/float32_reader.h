#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMATS_FLOAT32_READER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMATS_FLOAT32_READER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// `reader` with its float64, float16 and bfloat16 tensors as float32, each number rounded to the nearest. All else as
// it is.
std::unique_ptr<TensorReader> AsFloat32(std::unique_ptr<TensorReader> reader);

// OpenTensors for those who load weights: a file of another program is read AsFloat32. A checkpoint is not: as in
// TensorFlow a variable takes values of its own type.
absl::StatusOr<std::unique_ptr<TensorReader>> OpenWeights(FileSystem* fs, const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_FLOAT32_READER_H_
