#ifndef LOCKSTEP_WORKER_DATA_FORMATS_IDX_H_
#define LOCKSTEP_WORKER_DATA_FORMATS_IDX_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/worker/data/dataset.h"
#include "lockstep/worker/data/normalization.h"
#include "lockstep/worker/data/records/array_rows.h"
#include "lockstep/worker/data/records/kept_checksum.h"

namespace lockstep {

// An array of unsigned bytes in an IDX file, the format of MNIST: two zero bytes, the type (8), the number of
// dimensions, each dimension as a big-endian 32-bit number, then the elements, row-major. Inflates a gzipped file into
// memory; reads a plain file into memory unless it is large (ArrayRows). Thread-safe.
class IdxArray {
 public:
  static constexpr uint64_t kHeldBytes = ArrayRows::kHeldBytes;

  // Errors: NotFound; DataLoss if the header does not describe an IDX array of bytes with `min_rank` to `max_rank`
  // dimensions, or if the length contradicts it.
  static absl::StatusOr<std::unique_ptr<IdxArray>> Open(FileSystem* fs, const std::string& path, int min_rank,
                                                        int max_rank, uint64_t held_bytes = kHeldBytes);

  // The array's dimensions, at least one. The first is the number of rows.
  const std::vector<int64_t>& dims() const { return dims_; }
  // Returns the number of bytes in a row.
  int64_t row_bytes() const { return static_cast<int64_t>(rows_.row_bytes()); }

  // See ArrayRows.
  absl::Status Read(int64_t row, int64_t count, uint8_t* out) const { return rows_.Read(row, count, out); }
  absl::StatusOr<uint32_t> Checksum(FileSystem* fs, const ChecksumOptions& options) {
    return rows_.Checksum(fs, options);
  }
  const uint8_t* memory() const { return rows_.memory(); }

 private:
  IdxArray() = default;

  std::vector<int64_t> dims_;
  ArrayRows rows_;
};

struct IdxOptions {
  Normalization normalization;
  ChecksumOptions checksum;
  // See IdxArray.
  uint64_t held_bytes = IdxArray::kHeldBytes;
};

// Opens a dataset of images and labels. Images have shape [rows, columns, 1], or [rows, columns, channels] if the file
// has four dimensions; their bytes are scaled to [0, 1] and normalized. Labels are classes from 0 to the greatest
// label. The digest covers all images, then all labels. Without a `labels_path`, the data has no labels
// (Dataset::has_labels).
//
// Errors: any from IdxArray; DataLoss if the two files have different numbers of examples, or none. Reading images on
// disk returns DataLoss if an image has changed since (the message names the file and the image) or if the file has
// become shorter (it names the file).
absl::StatusOr<std::unique_ptr<Dataset>> OpenIdxDataset(FileSystem* fs, const std::string& images_path,
                                                        const std::string& labels_path, const IdxOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_IDX_H_
