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

// The format of github.com/huggingface/safetensors: the length of the header as a little-endian 64-bit number, the
// header, and the tensors' bytes, without gaps. The header is a JSON object with the type, shape and position of each
// tensor.

// Longer headers are rejected, as in the reference implementation.
constexpr uint64_t kMostSafetensorsHeaderBytes = 100'000'000;

// Reader of a safetensors file. A tensor of a type that v1::DataType lacks (F8_E4M3) can be neither described nor read.
class SafetensorsReader : public TensorReader {
 public:
  // Errors: NotFound; DataLoss for a damaged file or one in another format.
  static absl::StatusOr<std::unique_ptr<SafetensorsReader>> Open(FileSystem* fs, const std::string& path);

  const std::string& prefix() const override { return path_; }
  std::vector<std::string> names() const override;
  bool Contains(absl::string_view name) const override;
  absl::StatusOr<Entry> Describe(absl::string_view name) const override;
  absl::StatusOr<Listing> List(absl::string_view name) const override;
  absl::Status ReadInto(absl::string_view name, absl::Span<char> out) const override;

  // Free text from the file's author.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  struct Place {
    std::string type;  // as in the file: "F32"
    Shape shape;
    // Offsets in the file.
    uint64_t begin = 0, end = 0;
  };

  explicit SafetensorsReader(std::string path) : path_(std::move(path)) {}
  // The entry of a tensor in the header. `type` is the name of the type as written there.
  struct TensorInfo {
    std::string type;
    std::vector<int64_t> shape, offsets;
  };
  absl::Status ReadHeader();
  // `begin` is the offset in the file at which the tensors' bytes start.
  absl::Status AddTensor(const std::string& name, const TensorInfo& info, uint64_t begin);
  absl::Status CheckPlaces(uint64_t begin) const;
  absl::Status Damaged(absl::string_view what) const;

  const std::string path_;
  std::unique_ptr<RandomAccessFile> file_;
  std::map<std::string, Place> places_;
  std::map<std::string, std::string> metadata_;
};

// A tensor to declare in a header.
struct SafetensorsEntry {
  std::string name;
  v1::DataType dtype = v1::DT_INVALID;
  Shape shape;
};

// Returns the header of a file in which the tensors' bytes follow in the order of `entries`. Pads the header so that
// these bytes begin at a multiple of 8. To align every tensor, place tensors with larger elements first, as the
// reference implementation does. InvalidArgument for a repeated name, a name that is not UTF-8, "__metadata__", a type
// without a fixed size, or a header that would be too long.
absl::StatusOr<std::string> EncodeSafetensorsHeader(absl::Span<const SafetensorsEntry> entries,
                                                    const std::map<std::string, std::string>& metadata);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_SAFETENSORS_H_
