#include "lockstep/common/checkpoint/formats/float32_reader.h"

#include <cstring>
#include <utility>
#include <vector>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/tensor/rounding.h"

namespace lockstep {
namespace {

bool IsOtherFloat(v1::DataType dtype) {
  return dtype == v1::DT_DOUBLE || dtype == v1::DT_HALF || dtype == v1::DT_BFLOAT16;
}

class Float32Reader : public TensorReader {
 public:
  explicit Float32Reader(std::unique_ptr<TensorReader> reader) : reader_(std::move(reader)) {}

  const std::string& prefix() const override { return reader_->prefix(); }
  std::vector<std::string> names() const override { return reader_->names(); }
  bool Contains(absl::string_view name) const override { return reader_->Contains(name); }

  absl::StatusOr<Entry> Describe(absl::string_view name) const override {
    ASSIGN_OR_RETURN(Entry entry, reader_->Describe(name));
    if (IsOtherFloat(entry.dtype)) {
      entry.dtype = v1::DT_FLOAT;
      entry.bytes = static_cast<uint64_t>(entry.shape.num_elements()) * sizeof(float);
    }
    return entry;
  }

  absl::Status ReadInto(absl::string_view name, absl::Span<char> out) const override {
    ASSIGN_OR_RETURN(const Entry entry, reader_->Describe(name));
    if (!IsOtherFloat(entry.dtype)) return reader_->ReadInto(name, out);
    std::string bytes(entry.bytes, '\0');
    RETURN_IF_ERROR(reader_->ReadInto(name, absl::MakeSpan(&bytes[0], bytes.size())));
    const int64_t n = entry.shape.num_elements();
    std::vector<float> values(n);
    if (entry.dtype == v1::DT_DOUBLE) {
      for (int64_t i = 0; i < n; ++i) {
        double value;
        std::memcpy(&value, bytes.data() + i * sizeof(value), sizeof(value));
        values[i] = static_cast<float>(value);
      }
    } else {
      Decode16(entry.dtype, n, bytes.data(), values.data());
    }
    std::memcpy(out.data(), values.data(), n * sizeof(float));
    return absl::OkStatus();
  }

  absl::Status Verify() const override { return reader_->Verify(); }

 private:
  const std::unique_ptr<TensorReader> reader_;
};

}  // namespace

std::unique_ptr<TensorReader> AsFloat32(std::unique_ptr<TensorReader> reader) {
  return std::make_unique<Float32Reader>(std::move(reader));
}

absl::StatusOr<std::unique_ptr<TensorReader>> OpenWeights(FileSystem* fs, const std::string& path) {
  ASSIGN_OR_RETURN(auto reader, OpenTensors(fs, path));
  return FormatOfPath(path).has_value() ? AsFloat32(std::move(reader)) : std::move(reader);
}

}  // namespace lockstep
