#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMATS_FLOAT32_READER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMATS_FLOAT32_READER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Wraps `reader` to return float64, float16 and bfloat16 tensors as float32. Rounds each number to the nearest. Does
// not change other tensors.
std::unique_ptr<TensorReader> AsFloat32(std::unique_ptr<TensorReader> reader);

// Opens tensors to load weights from. Uses AsFloat32 for another program's file, but not for a checkpoint, because a
// variable accepts only its own type, as in TensorFlow.
absl::StatusOr<std::unique_ptr<TensorReader>> OpenWeights(FileSystem* fs, const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_FLOAT32_READER_H_
