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
  // Called in Add before each chunk of at most 1 MiB is written, with its offset among all bytes that are added. Add
  // returns its error. May block, and may be null.
  using BeforePiece = std::function<absl::Status(uint64_t offset)>;
  BeforePiece before_piece;
  // 1 to 9999. Each tensor goes to the data file that has the fewest bytes when it is added.
  int num_data_files = 1;
  // Marks the checkpoint as that of a user's Saver.
  bool written_by_saver = false;
};

// Writes one checkpoint in TensorFlow's V2 bundle format: <prefix>.data-00000-of-00001, or several data files, and
// <prefix>.index (docs/checkpoint.md). Everything goes to temporary names first; Finish syncs and
// renames, data first, index last, so that a checkpoint with an index is whole. A checkpoint of the
// same prefix stays whole until the new index replaces its own: the data files take turns under the
// names -of-00001 and -of-00002 (of N: N and N + 1). Destroying the writer before Finish removes the temporary files.
// Not thread-safe.
class BundleWriter {
 public:
  // The directory must exist.
  static absl::StatusOr<std::unique_ptr<BundleWriter>> Create(FileSystem* fs, std::string prefix,
                                                              BundleWriterOptions options = {});
  ~BundleWriter();

  // Adds a tensor; `content` is its elements, little-endian, row-major. Its memory is read before Add
  // returns and is not kept. Names may come in any order.
  // Errors: InvalidArgument for an empty or repeated name or a size that contradicts dtype and shape; those of the
  // file.
  absl::Status Add(absl::string_view name, v1::DataType dtype, const Shape& shape, absl::string_view content);

  // Makes the checkpoint visible and durable. No Add afterwards. Also returns the first error of Add.
  absl::Status Finish();

 private:
  struct DataFile {
    std::string path;  // in the end
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
  // The number of data files, or one more, which is then absent.
  const int num_shards_;
  const bool replaces_;
  std::vector<DataFile> data_;
  absl::Status status_;
  // Bytes added so far.
  uint64_t offset_ = 0;
  std::map<std::string, v1::BundleEntryProto> entries_;
  // The data files may have their names, and no index was given its own.
  bool data_is_orphan_ = false;
  bool finished_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_WRITER_H_
