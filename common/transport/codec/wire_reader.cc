#include "lockstep/common/transport/codec/wire_reader.h"

#include <algorithm>

namespace lockstep {
namespace {

// Wire types of the protobuf encoding.
enum : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

}  // namespace

WireReader::WireReader(absl::Span<const absl::string_view> runs) : runs_(runs) {
  for (const absl::string_view run : runs_) left_ += run.size();
}

template <typename F>
bool WireReader::Consume(uint64_t n, F f) {
  if (n > left_) return false;
  left_ -= n;
  while (n > 0) {
    const absl::string_view rest = runs_[run_].substr(at_);
    const size_t take = static_cast<size_t>(std::min<uint64_t>(n, rest.size()));
    if (take > 0) f(rest.substr(0, take));
    n -= take;
    at_ += take;
    if (at_ == runs_[run_].size()) {
      ++run_;
      at_ = 0;
    }
  }
  return true;
}

inline bool WireReader::ReadByte(uint8_t* byte) {
  if (left_ == 0) return false;
  while (at_ == runs_[run_].size()) {
    ++run_;
    at_ = 0;
  }
  *byte = static_cast<uint8_t>(runs_[run_][at_++]);
  --left_;
  return true;
}

template <typename NextByte>
bool WireReader::AssembleVarint(uint64_t* value, NextByte next_byte) {
  uint64_t assembled = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    uint8_t byte;
    if (!next_byte(&byte)) return false;
    if (shift == 63 && byte > 1) return false;
    assembled |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) {
      *value = assembled;
      return true;
    }
  }
  return false;
}

bool WireReader::ReadLongVarint(uint64_t* value) {
  constexpr size_t kMaxBytes = 10;
  if (run_ == runs_.size() || runs_[run_].size() - at_ < kMaxBytes) {
    return AssembleVarint(value, [this](uint8_t* byte) { return ReadByte(byte); });
  }
  // It cannot reach into the next run.
  const char* const begin = runs_[run_].data() + at_;
  const char* end = begin;
  const bool ok = AssembleVarint(value, [&end](uint8_t* byte) {
    *byte = static_cast<uint8_t>(*end++);
    return true;
  });
  at_ += static_cast<size_t>(end - begin);
  left_ -= static_cast<uint64_t>(end - begin);
  return ok;
}

bool WireReader::ReadTag(uint32_t* field, uint32_t* wire_type) {
  uint64_t tag;
  if (!ReadVarint(&tag) || tag > UINT32_MAX || (tag >> 3) == 0) return false;
  *field = static_cast<uint32_t>(tag >> 3);
  *wire_type = static_cast<uint32_t>(tag & 7);
  return true;
}

bool WireReader::ReadString(uint64_t n, std::string* out) {
  out->clear();
  return Consume(n, [out](absl::string_view run) { out->append(run.data(), run.size()); });
}

bool WireReader::ReadChunks(uint64_t n, FloatChunks* out) {
  return Consume(n, [out](absl::string_view run) { out->Append(run); });
}

bool WireReader::ReadRuns(uint64_t n, Runs* out) {
  return Consume(n, [out](absl::string_view run) { out->push_back(run); });
}

bool WireReader::Skip(uint64_t n) {
  return Consume(n, [](absl::string_view) {});
}

bool WireReader::SkipField(uint32_t wire_type) {
  uint64_t value;
  switch (wire_type) {
    case kVarint:
      return ReadVarint(&value);
    case kFixed64:
      return Skip(8);
    case kLengthDelimited:
      return ReadVarint(&value) && Skip(value);
    case kFixed32:
      return Skip(4);
    default:
      return false;
  }
}

}  // namespace lockstep
