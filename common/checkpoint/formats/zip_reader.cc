#include "lockstep/common/checkpoint/formats/zip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/formats/zip_format.h"
#include "lockstep/common/io/foreign_file.h"
#include "lockstep/common/io/little_endian.h"

namespace lockstep {
namespace {

constexpr size_t kPieceBytes = 256 << 10;
// Deflate cannot compress by more than this factor.
constexpr uint64_t kGreatestRatio = 1032;
// The size of the end record with the longest comment.
constexpr uint64_t kMostEndBytes = zip::kEndBytes + 0xffff;
// Larger directories are rejected.
constexpr uint64_t kMostDirectoryBytes = 256 << 20;
constexpr uint16_t kEncrypted = 1;

uint16_t Load16(absl::string_view bytes, size_t at) { return LoadLittleEndian<uint16_t>(bytes.data() + at); }
uint32_t Load32(absl::string_view bytes, size_t at) { return LoadLittleEndian<uint32_t>(bytes.data() + at); }
uint64_t Load64(absl::string_view bytes, size_t at) { return LoadLittleEndian<uint64_t>(bytes.data() + at); }

absl::StatusOr<std::string> ReadBytes(const RandomAccessFile& file, uint64_t offset, size_t n) {
  std::string bytes(n, '\0');
  RETURN_IF_ERROR(file.Read(offset, n, &bytes[0]));
  return bytes;
}

// Replaces each of the `values` that is the 32-bit placeholder (all ones) by its value in the zip64 field. The field
// contains only these values, in this order. Returns false if the field is missing or too short.
bool TakeZip64(absl::string_view extra, absl::Span<uint64_t* const> values) {
  const auto is_elsewhere = [](const uint64_t* value) { return *value == zip::kElsewhere32; };
  if (std::none_of(values.begin(), values.end(), is_elsewhere)) return true;
  while (extra.size() >= 4) {
    const uint16_t id = Load16(extra, 0), size = Load16(extra, 2);
    extra.remove_prefix(4);
    if (size > extra.size()) return false;
    absl::string_view field = extra.substr(0, size);
    extra.remove_prefix(size);
    if (id != zip::kZip64Field) continue;
    for (uint64_t* const value : values) {
      if (!is_elsewhere(value)) continue;
      if (field.size() < 8) return false;
      *value = Load64(field, 0);
      field.remove_prefix(8);
    }
    return true;
  }
  return false;
}

}  // namespace

absl::Status ZipReader::Damaged(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(path_, ": no ZIP archive, or a damaged one: ", what));
}

std::string ZipReader::ForeignStart() const {
  char start[2] = {};
  const bool is_zip = file_->size() >= 2 && file_->Read(0, 2, start).ok() && start[0] == 'P' && start[1] == 'K';
  return is_zip ? ": it is cut off" : ForeignFormatOf(*file_);
}

absl::StatusOr<std::unique_ptr<ZipReader>> ZipReader::Open(FileSystem* fs, const std::string& path) {
  std::unique_ptr<ZipReader> reader(new ZipReader(path));
  ASSIGN_OR_RETURN(reader->file_, fs->NewRandomAccessFile(path));
  ASSIGN_OR_RETURN(const Directory directory, reader->FindDirectory());
  RETURN_IF_ERROR(reader->ReadDirectory(directory));
  RETURN_IF_ERROR(reader->CheckMembers());
  return reader;
}

absl::StatusOr<ZipReader::Directory> ZipReader::FindDirectory() const {
  const uint64_t size = file_->size();
  const uint64_t tail_bytes = std::min(size, kMostEndBytes);
  ASSIGN_OR_RETURN(const std::string tail, ReadBytes(*file_, size - tail_bytes, static_cast<size_t>(tail_bytes)));
  size_t at = std::string::npos;
  for (size_t i = tail.size() < zip::kEndBytes ? 0 : tail.size() - zip::kEndBytes + 1; i-- > 0;) {
    // The comment must extend to the end of the file.
    if (Load32(tail, i) != zip::kEndSignature || i + zip::kEndBytes + Load16(tail, i + 20) != tail.size()) continue;
    at = i;
    break;
  }
  if (at == std::string::npos) return Damaged(absl::StrCat("there is no record at its end", ForeignStart()));
  const absl::string_view end = absl::string_view(tail).substr(at);
  Directory directory;
  directory.entries = Load16(end, 10);
  directory.bytes = Load32(end, 12);
  directory.offset = Load32(end, 16);
  bool one_part = Load16(end, 4) == 0 && Load16(end, 6) == 0 && Load16(end, 8) == Load16(end, 10);
  uint64_t directory_end = size - tail_bytes + at;
  const bool elsewhere =
      directory.entries == 0xffff || directory.bytes == zip::kElsewhere32 || directory.offset == zip::kElsewhere32;
  if (elsewhere && directory_end >= zip::kLocatorBytes) {
    ASSIGN_OR_RETURN(const std::string locator,
                     ReadBytes(*file_, directory_end - zip::kLocatorBytes, zip::kLocatorBytes));
    if (Load32(locator, 0) == zip::kLocatorSignature) {
      const uint64_t place = Load64(locator, 8);
      const uint64_t room = directory_end - zip::kLocatorBytes;
      if (place > room || room - place < zip::kEnd64Bytes) return Damaged("its zip64 record is beyond its end");
      ASSIGN_OR_RETURN(const std::string end64, ReadBytes(*file_, place, zip::kEnd64Bytes));
      if (Load32(end64, 0) != zip::kEnd64Signature) return Damaged("its zip64 record is missing");
      one_part = Load32(end64, 16) == 0 && Load32(end64, 20) == 0 && Load64(end64, 24) == Load64(end64, 32);
      directory.entries = Load64(end64, 32);
      directory.bytes = Load64(end64, 40);
      directory.offset = Load64(end64, 48);
      directory_end = place;
    }
  }
  if (!one_part) return absl::UnimplementedError(absl::StrCat(path_, ": a ZIP archive of several parts"));
  if (directory.offset > directory_end || directory.bytes > directory_end - directory.offset) {
    return Damaged(absl::StrCat("a directory of ", directory.bytes, " bytes at ", directory.offset, " of ", size));
  }
  if (directory.bytes > kMostDirectoryBytes) {
    return Damaged(
        absl::StrCat("a directory of ", directory.bytes, " bytes, at most ", kMostDirectoryBytes, " are read"));
  }
  return directory;
}

absl::Status ZipReader::ReadDirectory(const Directory& directory) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(*file_, directory.offset, static_cast<size_t>(directory.bytes)));
  absl::string_view rest = bytes;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    ASSIGN_OR_RETURN(Member member, TakeEntry(&rest));
    members_.push_back(std::move(member));
  }
  if (!rest.empty()) return Damaged(absl::StrCat("its directory has more than the ", directory.entries, " members"));
  return absl::OkStatus();
}

absl::StatusOr<ZipReader::Member> ZipReader::TakeEntry(absl::string_view* rest) const {
  if (rest->size() < zip::kEntryBytes || Load32(*rest, 0) != zip::kEntrySignature) {
    return Damaged("its directory ends early");
  }
  const absl::string_view entry = *rest;
  const size_t name_bytes = Load16(entry, 28), extra_bytes = Load16(entry, 30), comment_bytes = Load16(entry, 32);
  if (entry.size() - zip::kEntryBytes < name_bytes + extra_bytes + comment_bytes) {
    return Damaged("its directory ends early");
  }
  rest->remove_prefix(zip::kEntryBytes + name_bytes + extra_bytes + comment_bytes);
  Member member;
  member.name = std::string(entry.substr(zip::kEntryBytes, name_bytes));
  const uint16_t flags = Load16(entry, 8), method = Load16(entry, 10);
  if ((flags & kEncrypted) != 0 || (method != zip::kStored && method != zip::kDeflated)) {
    return absl::UnimplementedError(
        absl::StrCat(path_, ": the member ", absl::CHexEscape(member.name), " is ",
                     (flags & kEncrypted) != 0
                         ? "encrypted"
                         : absl::StrCat("compressed with method ", method, ", known are 0 (stored) and 8 (deflated)")));
  }
  member.deflated = method == zip::kDeflated;
  member.crc32 = Load32(entry, 16);
  member.stored_bytes = Load32(entry, 20);
  member.bytes = Load32(entry, 24);
  uint64_t offset = Load32(entry, 42);
  if (!TakeZip64(entry.substr(zip::kEntryBytes + name_bytes, extra_bytes),
                 {&member.bytes, &member.stored_bytes, &offset})) {
    return Damaged(absl::StrCat("the size of ", absl::CHexEscape(member.name), " is missing"));
  }
  RETURN_IF_ERROR(Locate(offset, &member));
  return member;
}

absl::Status ZipReader::Locate(uint64_t offset, Member* member) const {
  const auto damaged = [&](absl::string_view what) {
    return Damaged(absl::StrCat("the member ", absl::CHexEscape(member->name), " ", what));
  };
  if (offset > file_->size() || file_->size() - offset < zip::kLocalBytes) {
    return damaged(absl::StrCat("at ", offset, " is beyond the end at ", file_->size()));
  }
  ASSIGN_OR_RETURN(const std::string local, ReadBytes(*file_, offset, zip::kLocalBytes));
  if (Load32(local, 0) != zip::kLocalSignature) return damaged(absl::StrCat("is not at ", offset));
  const uint64_t header = zip::kLocalBytes + Load16(local, 26) + Load16(local, 28);
  if (file_->size() - offset < header || file_->size() - offset - header < member->stored_bytes) {
    return damaged(
        absl::StrCat("has ", member->stored_bytes, " bytes at ", offset, ", the file ends at ", file_->size()));
  }
  member->offset = offset + header;
  const bool fits =
      member->deflated ? member->bytes / kGreatestRatio <= member->stored_bytes : member->bytes == member->stored_bytes;
  if (!fits) return damaged(absl::StrCat("of ", member->bytes, " bytes cannot be in ", member->stored_bytes));
  return absl::OkStatus();
}

absl::Status ZipReader::CheckMembers() const {
  std::set<absl::string_view> names;
  uint64_t used = 0;
  for (const Member& member : members_) {
    if (!names.insert(member.name).second) {
      return Damaged(absl::StrCat("there are two members ", absl::CHexEscape(member.name)));
    }
    // Members that share bytes could let a small archive claim any amount of memory and time.
    if (member.stored_bytes > file_->size() - used) {
      return Damaged(absl::StrCat("its members have more bytes than the ", file_->size(), " of the file"));
    }
    used += member.stored_bytes;
  }
  return absl::OkStatus();
}

absl::Status ZipReader::Stream(const Member& member, absl::FunctionRef<bool(absl::string_view piece)> take) const {
  std::string in(static_cast<size_t>(std::min<uint64_t>(kPieceBytes, member.stored_bytes)), '\0');
  std::string out(member.deflated ? kPieceBytes : 0, '\0');
  z_stream stream = {};
  // Use raw deflate, because the archive has its own headers.
  if (member.deflated) CHECK_EQ(inflateInit2(&stream, -MAX_WBITS), Z_OK);
  const auto end = absl::MakeCleanup([&] {
    if (member.deflated) inflateEnd(&stream);
  });
  uint64_t produced = 0;
  int result = Z_OK;
  for (uint64_t done = 0; done < member.stored_bytes;) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(in.size(), member.stored_bytes - done));
    RETURN_IF_ERROR(file_->Read(member.offset + done, n, &in[0]));
    done += n;
    if (!member.deflated) {
      if (!take(absl::string_view(in).substr(0, n))) return absl::OkStatus();
      continue;
    }
    stream.next_in = reinterpret_cast<Bytef*>(&in[0]);
    stream.avail_in = static_cast<uInt>(n);
    do {
      stream.next_out = reinterpret_cast<Bytef*>(&out[0]);
      stream.avail_out = static_cast<uInt>(out.size());
      result = inflate(&stream, Z_NO_FLUSH);
      const absl::string_view piece = absl::string_view(out).substr(0, out.size() - stream.avail_out);
      produced += piece.size();
      const bool is_bad = result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR;
      if (is_bad || produced > member.bytes) {
        return Damaged(absl::StrCat("the member ", absl::CHexEscape(member.name), " does not inflate to its ",
                                    member.bytes, " bytes"));
      }
      if (!take(piece)) return absl::OkStatus();
    } while (stream.avail_out == 0 && result != Z_STREAM_END);
    if (result == Z_STREAM_END) break;
  }
  if (member.deflated && (result != Z_STREAM_END || produced != member.bytes)) {
    return Damaged(absl::StrCat("the member ", absl::CHexEscape(member.name), " inflates to ", produced, " of ",
                                member.bytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ZipReader::ReadStart(const Member& member, size_t n) const {
  const size_t wanted = static_cast<size_t>(std::min<uint64_t>(n, member.bytes));
  if (!member.deflated) return ReadBytes(*file_, member.offset, wanted);
  std::string start;
  if (wanted == 0) return start;
  RETURN_IF_ERROR(Stream(member, [&](absl::string_view piece) {
    start.append(piece.data(), std::min(piece.size(), wanted - start.size()));
    return start.size() < wanted;
  }));
  return start;
}

absl::Status ZipReader::ReadFrom(const Member& member, uint64_t skip, absl::Span<char> out) const {
  if (skip > member.bytes || out.size() != member.bytes - skip) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": the member ", absl::CHexEscape(member.name), " has ",
                                                   member.bytes, " bytes, read are ", out.size(), " from ", skip));
  }
  uint64_t at = 0;
  uLong crc = crc32(0, nullptr, 0);
  RETURN_IF_ERROR(Stream(member, [&](absl::string_view piece) {
    crc = crc32(crc, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(piece.size()));
    const size_t before = static_cast<size_t>(std::min<uint64_t>(piece.size(), skip - std::min(skip, at)));
    if (piece.size() > before) {
      std::memcpy(out.data() + (at + before - skip), piece.data() + before, piece.size() - before);
    }
    at += piece.size();
    return true;
  }));
  if (crc == member.crc32) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path_, ": the member ", absl::CHexEscape(member.name), " has checksum ", crc,
                                          " where ", member.crc32, " is stored"));
}

}  // namespace lockstep
