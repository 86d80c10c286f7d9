#ifndef LOCKSTEP_WORKER_DATA_IMAGES_IMAGE_CHECKSUMS_H_
#define LOCKSTEP_WORKER_DATA_IMAGES_IMAGE_CHECKSUMS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The checksums of the examples in a folder's image files, kept between runs so that images need not be decoded again.
// Not thread-safe.
//
// File format, little-endian: version (4 bytes), fingerprint (8); for each image, the length of its name (4), the name,
// the file's DataIdentity (44) and the example's checksum (4); finally, the CRC32C of everything before it (4).
class ImageChecksums {
 public:
  // Loads the checksums that are kept for this folder in `directory`. Loads none if `directory` is empty, or if they
  // are damaged or have a different `fingerprint`, which identifies how images are converted to examples.
  ImageChecksums(FileSystem* fs, const std::string& directory, const std::string& folder, uint64_t fingerprint);

  // Returns an image's checksum if it is known and the file has not changed since, otherwise nullopt.
  absl::optional<uint32_t> Find(absl::string_view name, const RandomAccessFile& file) const;
  void Set(const std::string& name, const RandomAccessFile& file, uint32_t checksum);
  // Writes the checksums that were found or set. Returns errors from the file system.
  absl::Status Keep();

 private:
  struct Entry {
    std::string identity;
    uint32_t checksum = 0;
    mutable bool is_used = false;
  };

  void Load(absl::string_view text);

  FileSystem* const fs_;
  const std::string directory_;
  const std::string path_;
  const uint64_t fingerprint_;
  absl::flat_hash_map<std::string, Entry> entries_;
  bool changed_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_IMAGES_IMAGE_CHECKSUMS_H_
