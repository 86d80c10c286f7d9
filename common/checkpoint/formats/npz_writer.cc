#include "lockstep/common/checkpoint/formats/npz_writer.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/formats/npy.h"
#include "lockstep/common/checkpoint/formats/zip_format.h"
#include "lockstep/common/io/little_endian.h"

namespace lockstep {
namespace {

constexpr size_t kMostNameBytes = 0xffff;

void Append16(std::string* out, uint64_t value) { AppendLittleEndian<uint16_t>(out, static_cast<uint16_t>(value)); }
// Appends a 32-bit number. One that does not fit is replaced by a placeholder and stored in the zip64 field instead.
void Append32(std::string* out, uint64_t value) {
  AppendLittleEndian<uint32_t>(out, static_cast<uint32_t>(std::min(value, zip::kElsewhere32)));
}

// Returns the zip64 field with those `values` that do not fit into 32 bits, or an empty string if all fit.
std::string Zip64Field(absl::Span<const uint64_t> values) {
  std::string numbers;
  for (const uint64_t value : values) {
    if (value >= zip::kElsewhere32) AppendLittleEndian<uint64_t>(&numbers, value);
  }
  if (numbers.empty()) return numbers;
  std::string field;
  Append16(&field, zip::kZip64Field);
  Append16(&field, numbers.size());
  return field + numbers;
}

// Appends the fields that local headers and directory entries have in common, from the version to the lengths.
void AppendCommon(std::string* out, uint64_t bytes, uint32_t crc32, size_t name_bytes, const std::string& field) {
  Append16(out, field.empty() ? zip::kVersion : zip::kVersion64);
  Append16(out, zip::kUtf8Flag);
  Append16(out, zip::kStored);
  Append16(out, 0);  // midnight
  Append16(out, zip::kFirstDay);
  AppendLittleEndian<uint32_t>(out, crc32);
  Append32(out, bytes);  // stored
  Append32(out, bytes);
  Append16(out, name_bytes);
  Append16(out, field.size());
}

}  // namespace

absl::Status NpzWriter::Append(absl::string_view bytes) {
  RETURN_IF_ERROR(file_->Append(bytes));
  size_ += bytes.size();
  return absl::OkStatus();
}

absl::Status NpzWriter::Add(absl::string_view name, v1::DataType dtype, const Shape& shape, absl::string_view content) {
  const auto header = EncodeNpyHeader(dtype, shape);
  if (!header.ok()) return absl::InvalidArgumentError(absl::StrCat(name, ": ", header.status().message()));
  Member member = {absl::StrCat(name, ".npy"), size_, header->size() + content.size(), 0};
  const bool is_taken = !names_.insert(member.name).second;
  if (is_taken || member.name.size() > kMostNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("npz cannot hold ", name, is_taken ? " twice" : ": its name is too long"));
  }
  uLong crc = crc32(0, nullptr, 0);
  crc = crc32_z(crc, reinterpret_cast<const Bytef*>(header->data()), header->size());
  member.crc32 = static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(content.data()), content.size()));
  const std::string field = Zip64Field({member.bytes, member.bytes});
  std::string local;
  AppendLittleEndian<uint32_t>(&local, zip::kLocalSignature);
  AppendCommon(&local, member.bytes, member.crc32, member.name.size(), field);
  RETURN_IF_ERROR(Append(absl::StrCat(local, member.name, field, *header)));
  RETURN_IF_ERROR(Append(content));
  members_.push_back(std::move(member));
  return absl::OkStatus();
}

absl::Status NpzWriter::Finish() {
  const uint64_t offset = size_;
  for (const Member& member : members_) {
    const std::string field = Zip64Field({member.bytes, member.bytes, member.offset});
    std::string entry;
    AppendLittleEndian<uint32_t>(&entry, zip::kEntrySignature);
    Append16(&entry, zip::kVersion64);  // made by
    AppendCommon(&entry, member.bytes, member.crc32, member.name.size(), field);
    Append16(&entry, 0);  // comment
    Append16(&entry, 0);  // part
    Append16(&entry, 0);  // attributes
    Append32(&entry, 0);
    Append32(&entry, member.offset);
    RETURN_IF_ERROR(Append(absl::StrCat(entry, member.name, field)));
  }
  const uint64_t bytes = size_ - offset, end64 = size_, count = members_.size();
  std::string end;
  if (count >= 0xffff || bytes >= zip::kElsewhere32 || offset >= zip::kElsewhere32) {
    AppendLittleEndian<uint32_t>(&end, zip::kEnd64Signature);
    AppendLittleEndian<uint64_t>(&end, zip::kEnd64Bytes - 12);  // the number of bytes that follow
    Append16(&end, zip::kVersion64);
    Append16(&end, zip::kVersion64);
    Append32(&end, 0);
    Append32(&end, 0);
    for (const uint64_t value : {count, count, bytes, offset}) AppendLittleEndian<uint64_t>(&end, value);
    AppendLittleEndian<uint32_t>(&end, zip::kLocatorSignature);
    Append32(&end, 0);
    AppendLittleEndian<uint64_t>(&end, end64);
    Append32(&end, 1);
  }
  AppendLittleEndian<uint32_t>(&end, zip::kEndSignature);
  Append16(&end, 0);
  Append16(&end, 0);
  Append16(&end, std::min<uint64_t>(count, 0xffff));
  Append16(&end, std::min<uint64_t>(count, 0xffff));
  Append32(&end, bytes);
  Append32(&end, offset);
  Append16(&end, 0);
  return Append(end);
}

}  // namespace lockstep
