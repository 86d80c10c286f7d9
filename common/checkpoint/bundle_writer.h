#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_WRITER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_WRITER_H_

#include <cstdint>
#include <functional>
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
// renames, data first, index last, so that a checkpoint with an index is whole. A checkpoint of the
// same prefix stays whole until the new index replaces its own: the data files take turns under the
// names -of-00001 and -of-00002. Destroying the writer before Finish removes the temporary files.
// Not thread-safe.
class BundleWriter {
 public:
  // Called in Add before each piece of at most 1 MiB is written, with its offset among all bytes that are added. Its
  // error is that of Add.
  using BeforePiece = std::function<absl::Status(uint64_t offset)>;

  // The directory must exist. `before_piece` may block, and may be null.
  static absl::StatusOr<std::unique_ptr<BundleWriter>> Create(FileSystem* fs, std::string prefix,
                                                              BeforePiece before_piece = nullptr);
  ~BundleWriter();

  // Adds a tensor; `content` is its elements, little-endian, row-major. Its memory is read before Add
  // returns and is not kept. Any order of names.
  // Errors: InvalidArgument for an empty or repeated name or a size that contradicts dtype and shape; those of the
  // file.
  absl::Status Add(absl::string_view name, DataType dtype, const Shape& shape, absl::string_view content);

  // Makes the checkpoint visible and durable. No Add afterwards. Also returns the first error of Add.
  absl::Status Finish();

  uint64_t bytes_written() const { return offset_; }

 private:
  BundleWriter(FileSystem* fs, std::string prefix, BeforePiece before_piece, int num_shards, bool replaces);
  absl::Status AppendContent(absl::string_view content, BundleEntryProto* entry);
  absl::Status WriteIndex();
  void RemoveReplacedData();
  std::string index_path() const;
  std::string data_path() const;

  FileSystem* const fs_;
  const std::string prefix_;
  const BeforePiece before_piece_;
  // 1, or 2 with the second one absent.
  const int num_shards_;
  const bool replaces_;
  std::unique_ptr<WritableFile> data_;
  absl::Status status_;
  uint64_t offset_ = 0;
  std::map<std::string, BundleEntryProto> entries_;
  // The data file has its name, and no index was given its own.
  bool data_is_orphan_ = false;
  bool finished_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_WRITER_H_
