#include "lockstep/tests/fuzz/input_files.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/match.h"
#include "glog/logging.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/worker/data/formats/open_dataset.h"

namespace lockstep {
namespace {

// The number of examples per read.
constexpr int64_t kBatch = 64;

void CheckTensor(const Tensor& tensor) {
  if (tensor.dtype() != v1::DT_FLOAT) return;
  for (const float value : tensor.flat<float>()) CHECK(std::isfinite(value)) << value;
}

void CheckBatch(const ExampleSpec& spec, const Batch& batch) {
  CheckTensor(batch.features);
  CheckTensor(batch.labels);
  CheckTensor(batch.weights);
  if (spec.labels_dtype != v1::DT_INT32) return;
  for (const int32_t label : batch.labels.flat<int32_t>()) {
    CHECK_GE(label, 0);
    CHECK_LT(label, spec.classes);
  }
}

void PutChecksum(absl::string_view data, std::string* file, uint64_t at) {
  std::string checksum;
  AppendLittleEndian<uint32_t>(&checksum, MaskCrc32c(Crc32c(data)));
  file->replace(at, checksum.size(), checksum);
}

}  // namespace

void PutFile(FileSystem* fs, const std::string& path, absl::string_view contents) {
  auto file = fs->NewWritableFile(path);
  CHECK(file.ok()) << file.status();
  CHECK((*file)->Append(contents).ok());
  CHECK((*file)->Close().ok());
}

bool ReadWholeDataset(FileSystem* fs, const config::v1::InputConfig& config) {
  DatasetOptions options;
  options.fs = fs;
  const auto dataset = OpenDataset(config, "train", /*seed=*/1, options);
  if (!dataset.ok()) return false;
  CHECK_GE((*dataset)->size(), 1);
  std::vector<int64_t> indices;
  for (int64_t first = 0; first < (*dataset)->size(); first += kBatch) {
    indices.resize(static_cast<size_t>(std::min(kBatch, (*dataset)->size() - first)));
    std::iota(indices.begin(), indices.end(), first);
    Batch batch;
    const absl::Status status = (*dataset)->Read(indices, &batch);
    CHECK(status.ok()) << status;
    CheckBatch((*dataset)->spec(), batch);
  }
  return true;
}

std::string WithRecordChecksums(absl::string_view file) {
  constexpr uint64_t kHeader = 12, kChecksum = 4;
  std::string fixed(file);
  for (uint64_t at = 0; fixed.size() - at >= kHeader;) {
    const uint64_t length = LoadLittleEndian<uint64_t>(fixed.data() + at);
    PutChecksum(absl::string_view(fixed).substr(at, 8), &fixed, at + 8);
    const uint64_t room = fixed.size() - at - kHeader;
    if (room < kChecksum || length > room - kChecksum) break;
    PutChecksum(absl::string_view(fixed).substr(at + kHeader, length), &fixed, at + kHeader + length);
    at += kHeader + length + kChecksum;
  }
  return fixed;
}

bool IsCompressed(absl::string_view file) {
  return absl::StartsWith(file, "\x1f\x8b") || absl::StartsWith(file, "\x28\xb5\x2f\xfd");
}

std::string Gzipped(const std::string& data, int level) {
  std::string out(data.size() + 100, '\0');
  z_stream stream = {};
  CHECK_EQ(deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(&out[0]);
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace lockstep
