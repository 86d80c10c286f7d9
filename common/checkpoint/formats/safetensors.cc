#include "lockstep/common/checkpoint/formats/safetensors.h"

#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/common/checkpoint/formats/json_scanner.h"
#include "lockstep/common/io/foreign_file.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/report/json_text.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

constexpr char kMetadata[] = "__metadata__";
constexpr size_t kLengthBytes = sizeof(uint64_t);
constexpr size_t kAlignment = 8;
// Maximum number of bytes of invalid input that an error message quotes.
constexpr size_t kShownBytes = 60;

struct NamedType {
  absl::string_view name;
  v1::DataType dtype;
};
constexpr NamedType kTypes[] = {{"F32", v1::DT_FLOAT},  {"F64", v1::DT_DOUBLE},    {"I32", v1::DT_INT32},
                                {"U8", v1::DT_UINT8},   {"I16", v1::DT_INT16},     {"I8", v1::DT_INT8},
                                {"I64", v1::DT_INT64},  {"BOOL", v1::DT_BOOL},     {"F16", v1::DT_HALF},
                                {"U16", v1::DT_UINT16}, {"BF16", v1::DT_BFLOAT16}, {"U32", v1::DT_UINT32},
                                {"U64", v1::DT_UINT64}};

// Returns the type with this name, or DT_INVALID for an unknown name.
v1::DataType TypeNamed(absl::string_view name) {
  const auto found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NamedType& t) { return t.name == name; });
  return found == std::end(kTypes) ? v1::DT_INVALID : found->dtype;
}

// Parses the entry of one tensor, {"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}, with the members in any order.
// Returns false if it is malformed.
template <typename TensorInfo>
bool TakeInfo(JsonScanner* scanner, TensorInfo* info) {
  if (!scanner->TakeChar('{')) return false;
  std::set<std::string> seen;
  do {
    std::string key;
    if (!scanner->TakeString(&key) || !scanner->TakeChar(':') || !seen.insert(key).second) return false;
    const bool taken = key == "dtype"          ? scanner->TakeString(&info->type)
                       : key == "shape"        ? scanner->TakeNumbers(&info->shape)
                       : key == "data_offsets" ? scanner->TakeNumbers(&info->offsets)
                                               : false;
    if (!taken) return false;
  } while (scanner->TakeChar(','));
  return scanner->TakeChar('}') && seen.size() == 3 && info->offsets.size() == 2;
}

// Takes {"key":"value"}.
bool TakeMetadata(JsonScanner* scanner, std::map<std::string, std::string>* metadata) {
  if (!scanner->TakeChar('{')) return false;
  if (scanner->TakeChar('}')) return true;
  do {
    std::string key, value;
    if (!scanner->TakeString(&key) || !scanner->TakeChar(':') || !scanner->TakeString(&value)) return false;
    if (!metadata->emplace(std::move(key), std::move(value)).second) return false;
  } while (scanner->TakeChar(','));
  return scanner->TakeChar('}');
}

}  // namespace

absl::Status SafetensorsReader::Damaged(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(path_, ": no safetensors file, or a damaged one: ", what,
                                          file_ == nullptr ? "" : ForeignFormatOf(*file_)));
}

absl::StatusOr<std::unique_ptr<SafetensorsReader>> SafetensorsReader::Open(FileSystem* fs, const std::string& path) {
  std::unique_ptr<SafetensorsReader> reader(new SafetensorsReader(path));
  ASSIGN_OR_RETURN(reader->file_, fs->NewRandomAccessFile(path));
  RETURN_IF_ERROR(reader->ReadHeader());
  return reader;
}

absl::Status SafetensorsReader::ReadHeader() {
  if (file_->size() < kLengthBytes) return Damaged(absl::StrCat("it has ", file_->size(), " bytes"));
  char length[kLengthBytes];
  RETURN_IF_ERROR(file_->Read(0, kLengthBytes, length));
  const auto size = LoadLittleEndian<uint64_t>(length);
  if (size > kMostSafetensorsHeaderBytes || size > file_->size() - kLengthBytes) {
    return Damaged(absl::StrCat("a header of ", size, " bytes; the file has ", file_->size(), ", and at most ",
                                kMostSafetensorsHeaderBytes, " are read"));
  }
  std::string header(static_cast<size_t>(size), '\0');
  RETURN_IF_ERROR(file_->Read(kLengthBytes, header.size(), &header[0]));
  const uint64_t begin = kLengthBytes + size;
  JsonScanner scanner(header);
  const auto unexpected = [&] {
    const absl::string_view rest = scanner.rest();
    return Damaged(absl::StrCat("the header at byte ", kLengthBytes + header.size() - rest.size(),
                                rest.empty() ? " ends" : " has ", Printable(rest.substr(0, kShownBytes))));
  };
  // The reference implementation rejects white space before the brace.
  if (header.empty() || header[0] != '{' || !scanner.TakeChar('{')) return unexpected();
  bool more = !scanner.TakeChar('}'), has_metadata = false;
  while (more) {
    std::string name;
    if (!scanner.TakeString(&name) || !scanner.TakeChar(':')) return unexpected();
    if (name == kMetadata) {
      if (has_metadata || !TakeMetadata(&scanner, &metadata_)) return unexpected();
      has_metadata = true;
    } else {
      TensorInfo info;
      if (!TakeInfo(&scanner, &info)) return unexpected();
      RETURN_IF_ERROR(AddTensor(name, info, begin));
    }
    more = scanner.TakeChar(',');
    if (!more && !scanner.TakeChar('}')) return unexpected();
  }
  if (!scanner.at_end()) return unexpected();
  return CheckPlaces(begin);
}

absl::Status SafetensorsReader::AddTensor(const std::string& name, const TensorInfo& info, uint64_t begin) {
  const auto damaged = [&](absl::string_view what) {
    return Damaged(absl::StrCat("tensor ", absl::CHexEscape(name.substr(0, kShownBytes)), ": ", what));
  };
  auto shape = Shape::Create(info.shape);
  if (!shape.ok()) return damaged(shape.status().message());
  const auto first = static_cast<uint64_t>(info.offsets[0]), end = static_cast<uint64_t>(info.offsets[1]);
  const uint64_t room = file_->size() - begin;
  if (first > end || end > room) return damaged(absl::StrCat("in bytes ", first, " to ", end, " of ", room));
  const uint64_t element = SizeOf(TypeNamed(info.type));
  const uint64_t bytes = end - first;
  if (element > 0 && (bytes % element != 0 || bytes / element != static_cast<uint64_t>(shape->num_elements()))) {
    return damaged(absl::StrCat(bytes, " bytes for type ", info.type, " and shape ", shape->ToString()));
  }
  if (places_.emplace(name, Place{info.type, *std::move(shape), begin + first, begin + end}).second) {
    return absl::OkStatus();
  }
  return damaged("it is named twice");
}

absl::Status SafetensorsReader::CheckPlaces(uint64_t begin) const {
  std::vector<const Place*> order;
  for (const auto& [name, place] : places_) order.push_back(&place);
  std::sort(order.begin(), order.end(), [](const Place* a, const Place* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  uint64_t at = begin;
  for (const Place* const place : order) {
    if (place->begin != at) {
      return Damaged(absl::StrCat("a tensor begins at byte ", place->begin, ", the one before ends at ", at));
    }
    at = place->end;
  }
  if (at == file_->size()) return absl::OkStatus();
  return Damaged(absl::StrCat("its tensors end at byte ", at, " of ", file_->size()));
}

std::vector<std::string> SafetensorsReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : places_) names.push_back(name);
  return names;
}

bool SafetensorsReader::Contains(absl::string_view name) const { return places_.count(std::string(name)) > 0; }

absl::StatusOr<TensorReader::Entry> SafetensorsReader::Describe(absl::string_view name) const {
  const auto found = places_.find(std::string(name));
  if (found == places_.end()) return absl::NotFoundError(absl::StrCat(path_, " has no tensor ", name));
  const Place& place = found->second;
  const v1::DataType dtype = TypeNamed(place.type);
  if (dtype == v1::DT_INVALID) {
    return absl::UnimplementedError(absl::StrCat(path_, ": ", name, " has elements of the type ",
                                                 absl::CHexEscape(place.type.substr(0, kShownBytes)),
                                                 ", which is not read; convert it to F32, F16 or BF16"));
  }
  return Entry{dtype, place.shape, place.end - place.begin};
}

absl::StatusOr<TensorReader::Listing> SafetensorsReader::List(absl::string_view name) const {
  const absl::StatusOr<Entry> entry = Describe(name);
  if (!absl::IsUnimplemented(entry.status())) return TensorReader::List(name);
  const Place& place = places_.find(std::string(name))->second;
  return Listing{absl::CHexEscape(place.type.substr(0, kShownBytes)), place.shape, place.end - place.begin};
}

absl::Status SafetensorsReader::ReadInto(absl::string_view name, absl::Span<char> out) const {
  ASSIGN_OR_RETURN(const Entry entry, Describe(name));
  if (out.size() != entry.bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": ", name, " has ", entry.bytes, " bytes and is read into ", out.size()));
  }
  return file_->Read(places_.find(std::string(name))->second.begin, out.size(), out.data());
}

absl::StatusOr<std::string> EncodeSafetensorsHeader(absl::Span<const SafetensorsEntry> entries,
                                                    const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> members;
  if (!metadata.empty()) {
    members.push_back(absl::StrCat("\"", kMetadata, "\":{",
                                   absl::StrJoin(metadata, ",",
                                                 [](std::string* out, const auto& key_value) {
                                                   absl::StrAppend(out, JsonString(key_value.first), ":",
                                                                   JsonString(key_value.second));
                                                 }),
                                   "}"));
  }
  std::set<std::string> names = {kMetadata};
  uint64_t offset = 0;
  for (const SafetensorsEntry& entry : entries) {
    const auto type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NamedType& t) { return t.dtype == entry.dtype; });
    const bool has_type = type != std::end(kTypes);
    if (!has_type || !IsUtf8(entry.name) || !names.insert(entry.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("safetensors cannot hold ", absl::CHexEscape(entry.name), ": ",
                                                     !has_type ? absl::StrCat("there is no type ", NameOf(entry.dtype))
                                                     : !IsUtf8(entry.name) ? "the name is not UTF-8"
                                                                           : "the name is taken"));
    }
    const uint64_t end = offset + static_cast<uint64_t>(entry.shape.num_elements()) * SizeOf(entry.dtype);
    members.push_back(absl::StrCat(JsonString(entry.name), ":{\"dtype\":\"", type->name, "\",\"shape\":",
                                   entry.shape.ToString(), ",\"data_offsets\":[", offset, ",", end, "]}"));
    offset = end;
  }
  std::string json = absl::StrCat("{", absl::StrJoin(members, ","), "}");
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
  if (json.size() > kMostSafetensorsHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("safetensors cannot hold ", entries.size(),
                                                   " tensors: the header of ", json.size(), " bytes is longer than ",
                                                   kMostSafetensorsHeaderBytes));
  }
  std::string header;
  AppendLittleEndian<uint64_t>(&header, json.size());
  return header + json;
}

}  // namespace lockstep
