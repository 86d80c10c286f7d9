#include "lockstep/worker/data/records/index_file.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lockstep/common/io/little_endian.h"

namespace lockstep {

std::string IndexFilePath(absl::string_view directory, absl::string_view data_path, uint64_t fingerprint,
                          absl::string_view extension) {
  return JoinPath(directory,
                  absl::StrCat(Basename(data_path), "-", absl::Hex(fingerprint, absl::kZeroPad16), extension));
}

std::string DataIdentity(uint32_t version, const RandomAccessFile& contents, uint64_t fingerprint) {
  std::string identity;
  AppendLittleEndian<uint32_t>(&identity, version);
  AppendLittleEndian<uint64_t>(&identity, contents.size());
  AppendLittleEndian<uint64_t>(&identity, absl::ToUnixNanos(contents.modification_time()));
  AppendLittleEndian<uint64_t>(&identity, contents.inode());
  AppendLittleEndian<uint64_t>(&identity, absl::ToUnixNanos(contents.change_time()));
  AppendLittleEndian<uint64_t>(&identity, fingerprint);
  return identity;
}

std::string TemporaryIndexPath(absl::string_view path) {
  std::random_device random;
  return absl::StrCat(path, ".tmp-", absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

}  // namespace lockstep
