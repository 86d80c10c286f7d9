#include "common/tensor/float_chunks.h"

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

// a[i] += b[i] for b at any alignment. Element by element, so neither alignment nor length changes a bit.
void AddUnaligned(int64_t n, const char* bytes, float* out) {
  for (int64_t i = 0; i < n; ++i) {
    float value;
    std::memcpy(&value, bytes + i * sizeof(float), sizeof(float));
    out[i] += value;
  }
}

}  // namespace

FloatChunks::FloatChunks(const float* data, int64_t n) {
  Append(absl::string_view(reinterpret_cast<const char*>(data), static_cast<size_t>(n) * sizeof(float)));
}

void FloatChunks::Append(absl::string_view bytes) {
  if (bytes.empty()) return;
  chunks_.push_back(bytes);
  bytes_ += bytes.size();
}

template <typename F>
void FloatChunks::ForEachRun(int64_t first, int64_t n, F f) const {
  size_t skip = static_cast<size_t>(first) * sizeof(float);
  int64_t done = 0;
  char split[sizeof(float)];
  size_t in_split = 0;
  for (absl::string_view chunk : chunks_) {
    if (done == n) return;
    if (skip >= chunk.size()) {
      skip -= chunk.size();
      continue;
    }
    chunk.remove_prefix(skip);
    skip = 0;
    if (in_split > 0) {
      const size_t take = std::min(sizeof(float) - in_split, chunk.size());
      std::memcpy(split + in_split, chunk.data(), take);
      chunk.remove_prefix(take);
      in_split += take;
      if (in_split < sizeof(float)) continue;
      f(done++, absl::string_view(split, sizeof(float)));
      in_split = 0;
    }
    const int64_t whole = std::min<int64_t>(n - done, static_cast<int64_t>(chunk.size() / sizeof(float)));
    if (whole > 0) f(done, chunk.substr(0, static_cast<size_t>(whole) * sizeof(float)));
    done += whole;
    chunk.remove_prefix(static_cast<size_t>(whole) * sizeof(float));
    if (done < n) {
      std::memcpy(split, chunk.data(), chunk.size());
      in_split = chunk.size();
    }
  }
}

void FloatChunks::CopyTo(int64_t first, int64_t n, float* out) const {
  ForEachRun(first, n, [out](int64_t at, absl::string_view run) { std::memcpy(out + at, run.data(), run.size()); });
}

void FloatChunks::AddTo(int64_t first, int64_t n, float* out) const {
  ForEachRun(first, n, [out](int64_t at, absl::string_view run) {
    AddUnaligned(static_cast<int64_t>(run.size() / sizeof(float)), run.data(), out + at);
  });
}

const float* FloatChunks::Contiguous(int64_t first, int64_t n) const {
  size_t skip = static_cast<size_t>(first) * sizeof(float);
  for (const absl::string_view chunk : chunks_) {
    if (skip >= chunk.size()) {
      skip -= chunk.size();
      continue;
    }
    if (chunk.size() - skip < static_cast<size_t>(n) * sizeof(float)) return nullptr;
    const char* address = chunk.data() + skip;
    if (reinterpret_cast<uintptr_t>(address) % alignof(float) != 0) return nullptr;
    return reinterpret_cast<const float*>(address);
  }
  return nullptr;
}

}  // namespace lockstep
