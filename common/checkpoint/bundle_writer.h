#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_WRITER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_WRITER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/file_system.h"
#include "common/tensor/shape.h"
#include "proto/checkpoint.pb.h"

namespace lockstep {

// Writes one checkpoint in TensorFlow's V2 bundle format: <prefix>.data-00000-of-00001 and
// <prefix>.index (docs/checkpoint.md). Everything goes to temporary names first; Finish syncs and
// renames, data first, index last, so that a checkpoint with an index is whole. Destroying the
// writer before Finish removes the temporary files. Not thread-safe.
class BundleWriter {
 public:
  static absl::StatusOr<std::unique_ptr<BundleWriter>> Create(FileSystem* fs, std::string prefix);
  ~BundleWriter();

  // Adds a tensor; `content` is its elements, little-endian, row-major. Its memory is read before Add
  // returns and is not kept. Any order of names.
  // Errors: InvalidArgument for an empty or repeated name or a size that contradicts dtype and shape; those of the file.
  absl::Status Add(absl::string_view name, DataType dtype, const Shape& shape, absl::string_view content);

  // Makes the checkpoint visible. No Add afterwards.
  absl::Status Finish();

  uint64_t bytes_written() const { return offset_; }

 private:
  BundleWriter(FileSystem* fs, std::string prefix);

  FileSystem* const fs_;
  const std::string prefix_;
  std::unique_ptr<WritableFile> data_;
  uint64_t offset_ = 0;
  std::map<std::string, BundleEntryProto> entries_;
  bool finished_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_WRITER_H_
