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

// Returns true if the path names a checkpoint in TensorFlow's format V1, which tf.train.Saver wrote until 2016 and in
// which the weights of tf-slim's nets are published. The checkpoint is one file that ends like a LevelDB table, or
// several such shards named PREFIX-00000-of-00002 and so on. Any of these names it: PREFIX, the path of any shard, or
// PREFIX-?????-of-00002, as in TensorFlow's state file.
bool IsV1Checkpoint(FileSystem* fs, const std::string& path);

// Reader of a checkpoint in TensorFlow's format V1, whose files it holds in memory. Reads tensors of float32, float64,
// int32 and int64, whole or in slices. Lists tensors of other types, but cannot read them. Thread-safe.
class V1CheckpointReader : public TensorReader {
 public:
  // Errors: those of ReadFile (a missing shard, a file above 1 GiB) and of ReadIndexTable; InvalidArgument if PREFIX
  // has shards of several checkpoints; DataLoss if the contents are inconsistent, with the reason.
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
    // The table values that hold the tensor's slices. They point into contents_.
    std::vector<absl::string_view> slices;
  };

  explicit V1CheckpointReader(std::string path) : path_(std::move(path)) {}
  absl::Status Damaged(absl::string_view what) const;
  // Adds the tensors of one file.
  absl::Status Load(const std::string& file, absl::string_view contents);
  // Adds a tensor, or adds the slices of another shard to a tensor.
  absl::Status AddTensor(v1::SavedSliceMeta meta);
  absl::StatusOr<const SavedValue*> Find(absl::string_view name) const;
  // Decodes the numbers of a slice into the tensor's type.
  absl::StatusOr<std::string> Decode(const v1::SavedSlice& slice, v1::DataType dtype, uint64_t elements) const;

  const std::string path_;
  // The bytes of each file.
  std::vector<std::string> contents_;
  std::map<std::string, SavedValue> tensors_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_V1_CHECKPOINT_H_
