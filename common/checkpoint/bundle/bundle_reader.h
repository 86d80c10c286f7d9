#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_READER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/base/threads/thread_pool.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/io/checksummed_reads.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/v1/checkpoint.pb.h"

namespace lockstep {

// Reads one checkpoint in TensorFlow's V2 bundle format, written by TensorFlow (with any number of data shards and with
// the slices of partitioned variables) or by Lockstep. Damage, even deliberate, is a DataLoss error that names the file
// and the variable. Thread-safe after Open.
class BundleReader : public TensorReader {
 public:
  // Opens and checks the index. Errors: NotFound if there is no index file; DataLoss if it is damaged or a data file is
  // missing or too short; Unimplemented for a compressed index or one from a big-endian machine.
  static absl::StatusOr<std::unique_ptr<BundleReader>> Open(FileSystem* fs, const std::string& prefix);

  const std::string& prefix() const override { return prefix_; }
  // True if a user's Saver wrote the checkpoint rather than the chief of a run.
  bool written_by_saver() const { return written_by_saver_; }
  // Returns sorted names. A partitioned variable appears once, under its full name.
  std::vector<std::string> names() const override;
  bool Contains(absl::string_view name) const override;
  absl::StatusOr<Entry> Describe(absl::string_view name) const override;
  absl::Status ReadInto(absl::string_view name, absl::Span<char> out) const override;

  absl::Status Verify() const override;

  // A variable and its destination, as in ReadInto.
  struct Place {
    std::string name;
    absl::Span<char> out;
  };
  // Verifies everything and reads the given variables. Touches each byte of unpartitioned variables once. `pool`, which
  // may be null, shares the work. After an error the contents of the destinations are undefined.
  absl::Status VerifyInto(absl::Span<const Place> places, ThreadPool* pool) const;

 private:
  BundleReader(FileSystem* fs, std::string prefix);
  absl::Status ReadIndex();
  // Keys must be added in order.
  absl::Status AddEntry(absl::string_view key, absl::string_view value);
  absl::Status OpenShards(const v1::BundleHeaderProto& header);
  absl::Status CheckStored(const std::string& key, const v1::BundleEntryProto& entry) const;
  absl::Status CheckPartitioned(const std::string& key, const v1::BundleEntryProto& entry) const;
  // Rejects entries that share bytes of a file, because they would let a small checkpoint claim any amount of memory
  // and time.
  absl::Status CheckSizes() const;
  absl::StatusOr<const v1::BundleEntryProto*> Find(absl::string_view name) const;
  absl::Status CheckPlace(const Place& place) const;
  FileRange RangeOf(const v1::BundleEntryProto& entry, char* out) const;
  absl::Status CheckCrc(absl::string_view key, const v1::BundleEntryProto& entry, uint32_t crc) const;
  // If `out` is null, only verifies the entry.
  absl::Status ReadStored(absl::string_view name, const v1::BundleEntryProto& entry, char* out) const;
  absl::Status ReadPartitioned(absl::string_view name, const v1::BundleEntryProto& entry, char* out) const;
  absl::Status Damaged(absl::string_view key, absl::string_view what) const;

  FileSystem* const fs_;
  const std::string prefix_;
  bool written_by_saver_ = false;
  // Variables by name; slices of partitioned variables by SliceKey.
  std::map<std::string, v1::BundleEntryProto> entries_;
  // Data files by shard id; null for shards without entries.
  std::vector<std::unique_ptr<RandomAccessFile>> shards_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_READER_H_
