#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_READER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/io/file_system.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"
#include "proto/checkpoint.pb.h"

namespace lockstep {

// Reads one checkpoint in TensorFlow's V2 bundle format, TensorFlow's own (any number of data
// shards, partitioned variables by their slices) or ours. Damage, also deliberate, is DataLoss that
// names the file and the variable. Thread-safe after Open.
class BundleReader {
 public:
  // Opens and checks the index. Errors: NotFound without an index file; DataLoss for a damaged one or when
  // a data file is missing or too short; Unimplemented for a compressed index or a big-endian machine's.
  static absl::StatusOr<std::unique_ptr<BundleReader>> Open(FileSystem* fs, const std::string& prefix);

  const std::string& prefix() const { return prefix_; }
  // Sorted; partitioned variables once, under their full name.
  std::vector<std::string> names() const;
  bool Contains(absl::string_view name) const;

  struct Entry {
    DataType dtype;
    Shape shape;
    // What ReadInto needs: elements x element size; for strings the size of their encoding in the file.
    uint64_t bytes;
  };
  // NotFound names the key and the checkpoint.
  absl::StatusOr<Entry> Describe(absl::string_view name) const;

  // Reads a tensor and verifies its checksum. NotFound, DataLoss, Unimplemented for strings and other types
  // without a fixed size, or the file's error.
  absl::StatusOr<Tensor> Read(absl::string_view name) const;
  // The same into memory of the caller's; `out` must have Entry.bytes bytes.
  absl::Status ReadInto(absl::string_view name, absl::Span<char> out) const;

  // Reads everything and verifies every checksum.
  absl::Status Verify() const;

 private:
  BundleReader(FileSystem* fs, std::string prefix);
  absl::Status ReadIndex();
  // Keys must come in their order.
  absl::Status AddEntry(absl::string_view key, absl::string_view value);
  absl::Status OpenShards(const BundleHeaderProto& header);
  absl::Status CheckStored(const std::string& key, const BundleEntryProto& entry) const;
  absl::Status CheckPartitioned(const std::string& key, const BundleEntryProto& entry) const;
  // Entries that share bytes of a file could make a small checkpoint claim any amount of memory and time.
  absl::Status CheckSizes() const;
  absl::StatusOr<const BundleEntryProto*> Find(absl::string_view name) const;
  // `out` may be null, to verify only.
  absl::Status ReadStored(absl::string_view name, const BundleEntryProto& entry, char* out) const;
  absl::Status ReadPartitioned(absl::string_view name, const BundleEntryProto& entry, char* out) const;
  absl::Status Damaged(absl::string_view key, absl::string_view what) const;

  FileSystem* const fs_;
  const std::string prefix_;
  // By key: the variables, and under SliceKey the slices of partitioned ones.
  std::map<std::string, BundleEntryProto> entries_;
  // By shard id; null where no entry needs it.
  std::vector<std::unique_ptr<RandomAccessFile>> shards_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_READER_H_
