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

// Files of weights in the formats of others.
enum class TensorFileFormat { kSafetensors, kNpz };

// "safetensors", "npz", which is also how such a file's name ends, behind a dot.
absl::string_view NameOf(TensorFileFormat format);
// By name; InvalidArgument lists the names.
absl::StatusOr<TensorFileFormat> ParseTensorFileFormat(absl::string_view name);
// By how the path ends; nullopt for others, such as a checkpoint's prefix.
absl::optional<TensorFileFormat> FormatOfPath(absl::string_view path);

// Opens a file of weights, or else the checkpoint with this prefix. Errors: those of the format's reader, NotFound
// among them.
absl::StatusOr<std::unique_ptr<TensorReader>> OpenTensors(FileSystem* fs, const std::string& path);
// Whether there is something to open. False only when it is certain that there is not.
absl::StatusOr<bool> TensorsExist(FileSystem* fs, const std::string& path);

struct TensorFileContents {
  // In any order; each is in the source.
  std::vector<std::string> names;
  // Free text that safetensors keeps; npz has no place for it.
  std::map<std::string, std::string> metadata;
};

// Writes tensors of `source` to `path`, with their names, types and shapes. A reader finds the old file or the new one,
// whole and synced. The bytes of the file depend on nothing but the tensors and the metadata. Holds one tensor in
// memory at a time. Errors: InvalidArgument for a tensor that the format cannot hold, which it names; those of the
// source and of the file system, and then there is no new file.
absl::Status WriteTensorFile(FileSystem* fs, const std::string& path, TensorFileFormat format,
                             const TensorReader& source, const TensorFileContents& contents);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_TENSOR_FILE_H_
