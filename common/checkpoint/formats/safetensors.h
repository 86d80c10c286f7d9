#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMATS_SAFETENSORS_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMATS_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The format of github.com/huggingface/safetensors: the length of a header as a little-endian 64-bit number, the
// header, a JSON object of each tensor's type, shape and place, and the tensors' bytes, without a gap.

// A longer header is refused, as the original does.
constexpr uint64_t kMostSafetensorsHeaderBytes = 100'000'000;

// Reads such a file. A tensor of a type that v1::DataType lacks (F8_E4M3) is an error when it is described or read.
class SafetensorsReader : public TensorReader {
 public:
  // Errors: NotFound; DataLoss for what is no such file, or a damaged one.
  static absl::StatusOr<std::unique_ptr<SafetensorsReader>> Open(FileSystem* fs, const std::string& path);

  const std::string& prefix() const override { return path_; }
  std::vector<std::string> names() const override;
  bool Contains(absl::string_view name) const override;
  absl::StatusOr<Entry> Describe(absl::string_view name) const override;
  absl::Status ReadInto(absl::string_view name, absl::Span<char> out) const override;

  // Free text of whoever wrote the file.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  struct Place {
    std::string type;  // as in the file, "F32"
    Shape shape;
    // In the file.
    uint64_t begin = 0, end = 0;
  };

  explicit SafetensorsReader(std::string path) : path_(std::move(path)) {}
  // As the header has it.
  struct TensorInfo {
    std::string type;
    std::vector<int64_t> shape, offsets;
  };
  absl::Status ReadHeader();
  // `begin`: of the tensors' bytes in the file.
  absl::Status AddTensor(const std::string& name, const TensorInfo& info, uint64_t begin);
  absl::Status CheckPlaces(uint64_t begin) const;
  absl::Status Damaged(absl::string_view what) const;

  const std::string path_;
  std::unique_ptr<RandomAccessFile> file_;
  std::map<std::string, Place> places_;
  std::map<std::string, std::string> metadata_;
};

// What a file says of a tensor.
struct SafetensorsEntry {
  std::string name;
  v1::DataType dtype = v1::DT_INVALID;
  Shape shape;
};

// The start of a file with these tensors, whose bytes follow in this order. It is padded so that they begin at a
// multiple of 8; the original aligns the tensors by having those of greater elements first. InvalidArgument for a
// repeated name, one that is not UTF-8, "__metadata__", and for a type without a fixed size.
absl::StatusOr<std::string> EncodeSafetensorsHeader(absl::Span<const SafetensorsEntry> entries,
                                                    const std::map<std::string, std::string>& metadata);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_SAFETENSORS_H_
