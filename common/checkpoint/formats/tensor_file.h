#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMATS_TENSOR_FILE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMATS_TENSOR_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// File formats in which other programs store weights.
enum class TensorFileFormat { kSafetensors, kNpz };

// Returns "safetensors" or "npz", which is also the extension of the file name.
absl::string_view NameOf(TensorFileFormat format);
// Parses a name. InvalidArgument lists the known names.
absl::StatusOr<TensorFileFormat> ParseTensorFileFormat(absl::string_view name);
// Returns the format that the path's extension names, or nullopt for other paths, such as a checkpoint's prefix.
absl::optional<TensorFileFormat> FormatOfPath(absl::string_view path);

// Opens the weight file if the path names one. Otherwise opens the checkpoint to which the prefix or file belongs, or
// the file itself if it is a checkpoint in TensorFlow's format V1. Returns the errors of the format's reader, including
// NotFound.
absl::StatusOr<std::unique_ptr<TensorReader>> OpenTensors(FileSystem* fs, const std::string& path);
// Returns true if there is something at the path for OpenTensors to open, and false only if there is certainly nothing.
absl::StatusOr<bool> TensorsExist(FileSystem* fs, const std::string& path);

// Returns a NotFound error for a path that is neither a checkpoint nor a file of weights. The error says what is there
// instead, and lists the checkpoints in the path if it is a directory, or else in the path's directory. If the path has
// no directory, the error lists the checkpoints in `logdir`.
absl::Status NoSuchCheckpoint(FileSystem* fs, const std::string& path, const std::string& logdir);

struct TensorFileContents {
  // Names of the source's tensors to write, in any order.
  std::vector<std::string> names;
  // Free-form text to store in a safetensors file. Ignored for npz, which cannot hold it.
  std::map<std::string, std::string> metadata;
};

// Writes the tensors of `source` that `contents` names to `path`, with their names, types and shapes. A reader sees
// either the old file or the complete, synced new file. The file's bytes depend only on the tensors and the metadata.
// Holds one tensor in memory at a time. Errors: InvalidArgument, naming a tensor that the format cannot hold; errors of
// the source and of the file system. If writing fails, there is no new file.
absl::Status WriteTensorFile(FileSystem* fs, const std::string& path, TensorFileFormat format,
                             const TensorReader& source, const TensorFileContents& contents);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_TENSOR_FILE_H_
