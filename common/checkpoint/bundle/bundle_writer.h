#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_WRITER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_WRITER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/v1/checkpoint.pb.h"

namespace lockstep {

struct BundleWriterOptions {
  // Add calls this before it writes each chunk of at most 1 MiB, with the chunk's offset among all bytes added. If it
  // fails, Add returns its error. May block, and may be null.
  using BeforePiece = std::function<absl::Status(uint64_t offset)>;
  BeforePiece before_piece;
  // Number of data files, 1 to 9999. Add writes each tensor to the data file that has the fewest bytes.
  int num_data_files = 1;
  // Marks the checkpoint as written by a user's Saver.
  bool written_by_saver = false;
};

// Writes one checkpoint in TensorFlow's V2 bundle format: <prefix>.data-00000-of-00001, or several data files, and
// <prefix>.index (docs/checkpoint.md). Writes to temporary names first. Finish syncs the files and renames them, the
// index last, so that a checkpoint with an index is complete. An existing checkpoint with the same prefix stays intact
// until the new index replaces its index, because the names of data files alternate between -of-00001 and -of-00002
// (with N files, between N and N + 1). Destroying the writer before Finish removes the temporary files. Not
// thread-safe.
class BundleWriter {
 public:
  // The directory must exist.
  static absl::StatusOr<std::unique_ptr<BundleWriter>> Create(FileSystem* fs, std::string prefix,
                                                              BundleWriterOptions options = {});
  ~BundleWriter();

  // Adds a tensor. `content` holds its elements, little-endian and row-major; it is not used after Add returns. Names
  // may be added in any order. Errors: InvalidArgument for an empty or repeated name, or for a size that contradicts
  // dtype and shape; file errors.
  absl::Status Add(absl::string_view name, v1::DataType dtype, const Shape& shape, absl::string_view content);

  // Makes the checkpoint visible and durable. If an earlier Add failed, returns its error. Add must not be called
  // afterwards.
  absl::Status Finish();

 private:
  struct DataFile {
    std::string path;  // its final path
    std::unique_ptr<WritableFile> file;
    uint64_t size = 0;
  };

  BundleWriter(FileSystem* fs, std::string prefix, BundleWriterOptions options, int num_shards, bool replaces);
  absl::Status AppendContent(absl::string_view content, v1::BundleEntryProto* entry);
  absl::Status WriteIndex();
  void RemoveReplacedData();
  std::string index_path() const;

  FileSystem* const fs_;
  const std::string prefix_;
  const BundleWriterOptions options_;
  // The total in the data files' names: the number of data files, or one more.
  const int num_shards_;
  const bool replaces_;
  std::vector<DataFile> data_;
  absl::Status status_;
  // Bytes added so far.
  uint64_t offset_ = 0;
  std::map<std::string, v1::BundleEntryProto> entries_;
  // True while data files may have their final names although no index refers to them.
  bool data_is_orphan_ = false;
  bool finished_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_WRITER_H_
