#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMATS_V1_CHECKPOINT_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMATS_V1_CHECKPOINT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/v1/saved_tensor_slices.pb.h"

namespace lockstep {

// Returns true if the path names a checkpoint of TensorFlow's format V1, which tf.train.Saver wrote until 2016, and in
// which the weights of tf-slim's nets are published. It is one file, which ends like a LevelDB table, or several such
// shards, PREFIX-00000-of-00002 and so on. PREFIX, the path of any shard, and PREFIX-?????-of-00002, as in TensorFlow's
// state file, all name them.
bool IsV1Checkpoint(FileSystem* fs, const std::string& path);

// Reads such a checkpoint, whose files it holds in memory: tensors of float32, float64, int32 and int64, whole or in
// slices. Other types are listed and not read. Thread-safe.
class V1CheckpointReader : public TensorReader {
 public:
  // Errors: those of ReadFile (a shard that is missing, a file above 1 GiB) and ReadIndexTable; InvalidArgument if
  // PREFIX has shards of several checkpoints; DataLoss names the contradiction.
  static absl::StatusOr<std::unique_ptr<V1CheckpointReader>> Open(FileSystem* fs, const std::string& path);

  const std::string& prefix() const override { return path_; }
  std::vector<std::string> names() const override;
  bool Contains(absl::string_view name) const override { return tensors_.count(std::string(name)) > 0; }
  absl::StatusOr<Entry> Describe(absl::string_view name) const override;
  absl::StatusOr<Listing> List(absl::string_view name) const override;
  absl::Status ReadInto(absl::string_view name, absl::Span<char> out) const override;

 private:
  struct SavedValue {
    v1::SavedSliceMeta meta;
    // The values of the tables that hold its slices; they lie in contents_.
    std::vector<absl::string_view> slices;
  };

  explicit V1CheckpointReader(std::string path) : path_(std::move(path)) {}
  absl::Status Damaged(absl::string_view what) const;
  // Adds the tensors of one file.
  absl::Status Load(const std::string& file, absl::string_view contents);
  // Adds a tensor, or to a tensor the slices of another shard.
  absl::Status AddTensor(v1::SavedSliceMeta meta);
  absl::StatusOr<const SavedValue*> Find(absl::string_view name) const;
  // Decodes the numbers of a slice as the tensor's type.
  absl::StatusOr<std::string> Decode(const v1::SavedSlice& slice, v1::DataType dtype, uint64_t elements) const;

  const std::string path_;
  // The bytes of each file.
  std::vector<std::string> contents_;
  std::map<std::string, SavedValue> tensors_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_V1_CHECKPOINT_H_
