#include "lockstep/common/checkpoint/formats/npz.h"

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<NpzReader>> NpzReader::Open(FileSystem* fs, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<ZipReader> zip, ZipReader::Open(fs, path));
  std::unique_ptr<NpzReader> reader(new NpzReader(std::move(zip)));
  for (const ZipReader::Member& member : reader->zip_->members()) {
    absl::string_view name = member.name;
    if (!absl::ConsumeSuffix(&name, ".npy")) {
      return absl::DataLossError(
          absl::StrCat(path, ": the member ", absl::CHexEscape(member.name), " is no .npy file"));
    }
    ASSIGN_OR_RETURN(const std::string start, reader->zip_->ReadStart(member, kMostNpyHeaderBytes));
    absl::StatusOr<NpyHeader> header = ParseNpyHeader(start, absl::StrCat(path, ": ", name));
    if (!header.ok() && !absl::IsUnimplemented(header.status())) return header.status();
    if (header.ok() && header->content_bytes() != member.bytes - header->header_bytes) {
      return absl::DataLossError(absl::StrCat(path, ": ", name, " is ", NameOf(header->dtype), header->shape.ToString(),
                                              ", ", header->content_bytes(), " bytes; ",
                                              member.bytes - header->header_bytes, " bytes follow"));
    }
    reader->arrays_.emplace(std::string(name), Array{&member, std::move(header)});
  }
  return reader;
}

std::vector<std::string> NpzReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays_) names.push_back(name);
  return names;
}

bool NpzReader::Contains(absl::string_view name) const { return arrays_.count(std::string(name)) > 0; }

absl::StatusOr<const NpzReader::Array*> NpzReader::Find(absl::string_view name) const {
  const auto found = arrays_.find(std::string(name));
  if (found == arrays_.end()) return absl::NotFoundError(absl::StrCat(prefix(), " has no array ", name));
  RETURN_IF_ERROR(found->second.header.status());
  return &found->second;
}

absl::StatusOr<TensorReader::Entry> NpzReader::Describe(absl::string_view name) const {
  ASSIGN_OR_RETURN(const Array* const array, Find(name));
  return Entry{array->header->dtype, array->header->shape, array->header->content_bytes()};
}

absl::Status NpzReader::ReadInto(absl::string_view name, absl::Span<char> out) const {
  ASSIGN_OR_RETURN(const Array* const array, Find(name));
  return zip_->ReadFrom(*array->member, array->header->header_bytes, out);
}

}  // namespace lockstep
