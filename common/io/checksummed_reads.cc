#include "lockstep/common/io/checksummed_reads.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/io/crc32c.h"

namespace lockstep {
namespace {

// Number of bytes that a thread takes at a time. A longer range is split at addresses in `out` that are multiples of
// this number, and therefore of the size of a huge page, so that no two threads make the kernel clear the same page. A
// shorter range is not split, so its reads do not depend on where small variables are in memory.
constexpr uint64_t kTaken = 4 << 20;
// Number of bytes to read at a time and then checksum from the cache.
constexpr uint64_t kRead = 256 << 10;

struct Piece {
  size_t range = 0;
  uint64_t begin = 0;
  uint64_t size = 0;
  uint32_t crc = 0;
  absl::Status status;
};

std::vector<Piece> Cut(absl::Span<const FileRange> ranges) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < ranges.size(); ++i) {
    for (uint64_t begin = 0; begin < ranges[i].size;) {
      const uint64_t at = reinterpret_cast<uintptr_t>(ranges[i].out) + begin;
      Piece piece;
      piece.range = i;
      piece.begin = begin;
      piece.size = ranges[i].size <= kTaken ? ranges[i].size : std::min(ranges[i].size - begin, kTaken - at % kTaken);
      begin += piece.size;
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

void Read(const FileRange& range, Piece* piece) {
  std::unique_ptr<char[]> scratch;
  if (range.out == nullptr) scratch.reset(new char[std::min(piece->size, kRead)]);
  for (uint64_t done = 0; done < piece->size;) {
    const uint64_t n = std::min(piece->size - done, kRead);
    const uint64_t at = piece->begin + done;
    char* const out = range.out == nullptr ? scratch.get() : range.out + at;
    piece->status = range.file->Read(range.offset + at, n, out);
    if (!piece->status.ok()) return;
    piece->crc = ExtendCrc32c(piece->crc, absl::string_view(out, n));
    done += n;
  }
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> ReadChecksummed(absl::Span<const FileRange> ranges, ThreadPool* pool) {
  std::vector<Piece> pieces = Cut(ranges);
  std::atomic<bool> failed{false};
  const auto read = [&](int64_t i) {
    if (failed.load(std::memory_order_relaxed)) return;
    Read(ranges[pieces[i].range], &pieces[i]);
    if (!pieces[i].status.ok()) failed.store(true, std::memory_order_relaxed);
  };
  const auto count = static_cast<int64_t>(pieces.size());
  if (pool != nullptr) {
    pool->ParallelFor(count, read);
  } else {
    for (int64_t i = 0; i < count; ++i) read(i);
  }
  std::vector<uint32_t> crcs(ranges.size(), 0);
  for (const Piece& piece : pieces) {
    if (!piece.status.ok()) return piece.status;
    crcs[piece.range] = CombineCrc32c(crcs[piece.range], piece.crc, piece.size);
  }
  return crcs;
}

}  // namespace lockstep
