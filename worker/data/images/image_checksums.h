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

// The checksums of the examples in a folder's image files, kept from run to run so that images are not decoded again.
// Not thread-safe.
//
// The file, little-endian: version (4 bytes), fingerprint (8); for each image the length of its name (4), the name, the
// file's DataIdentity (44) and its checksum (4); CRC32C of all the preceding (4).
class ImageChecksums {
 public:
  // Loads the checksums that `directory` keeps for this folder. Loads none if `directory` is empty, or if they are
  // damaged or have a different `fingerprint`, which identifies how images become examples.
  ImageChecksums(FileSystem* fs, const std::string& directory, const std::string& folder, uint64_t fingerprint);

  // Returns an image's checksum if its file has not changed, or nullopt if the checksum is not known.
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
