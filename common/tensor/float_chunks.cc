#include "lockstep/common/tensor/float_chunks.h"

#include <algorithm>
#include <cstring>

#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/rounding.h"
#include "lockstep/kernels/rounding.h"

namespace lockstep {
FloatChunks::FloatChunks(const float* data, int64_t n) {
  Append(absl::string_view(reinterpret_cast<const char*>(data), static_cast<size_t>(n) * sizeof(float)));
}

FloatChunks::FloatChunks(v1::DataType type, const void* data, int64_t n) {
  set_type(type);
  Append(absl::string_view(static_cast<const char*>(data), static_cast<size_t>(n) * element_bytes_));
}

void FloatChunks::set_type(v1::DataType type) {
  type_ = type;
  element_bytes_ = SizeOf(type);
}

void FloatChunks::Append(absl::string_view bytes) {
  if (bytes.empty()) return;
  chunks_.push_back(bytes);
  bytes_ += bytes.size();
}

template <typename F>
void FloatChunks::ForEachRun(int64_t first, int64_t n, F f) const {
  const size_t element = element_bytes_;
  size_t skip = static_cast<size_t>(first) * element;
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
      const size_t take = std::min(element - in_split, chunk.size());
      std::memcpy(split + in_split, chunk.data(), take);
      chunk.remove_prefix(take);
      in_split += take;
      if (in_split < element) continue;
      f(done++, absl::string_view(split, element));
      in_split = 0;
    }
    const int64_t whole = std::min<int64_t>(n - done, static_cast<int64_t>(chunk.size() / element));
    if (whole > 0) f(done, chunk.substr(0, static_cast<size_t>(whole) * element));
    done += whole;
    chunk.remove_prefix(static_cast<size_t>(whole) * element);
    if (done < n) {
      std::memcpy(split, chunk.data(), chunk.size());
      in_split = chunk.size();
    }
  }
}

void FloatChunks::CopyTo(int64_t first, int64_t n, float* out) const {
  if (type_ == v1::DT_FLOAT) {
    ForEachRun(first, n, [out](int64_t at, absl::string_view run) { std::memcpy(out + at, run.data(), run.size()); });
    return;
  }
  ForEachRun(first, n, [this, out](int64_t at, absl::string_view run) {
    Decode16(type_, static_cast<int64_t>(run.size() / sizeof(uint16_t)), run.data(), out + at);
  });
}

void FloatChunks::AddTo(int64_t first, int64_t n, float* out) const {
  if (type_ == v1::DT_FLOAT) {
    ForEachRun(first, n, [out](int64_t at, absl::string_view run) {
      AddFloats(static_cast<int64_t>(run.size() / sizeof(float)), run.data(), out + at);
    });
    return;
  }
  ForEachRun(first, n, [this, out](int64_t at, absl::string_view run) {
    DecodeAndAdd16(type_, static_cast<int64_t>(run.size() / sizeof(uint16_t)), run.data(), out + at);
  });
}

const float* FloatChunks::Contiguous(int64_t first, int64_t n) const {
  if (type_ != v1::DT_FLOAT) return nullptr;
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

void FloatChunks::CopyBytes(char* out) const {
  for (const absl::string_view chunk : chunks_) {
    std::memcpy(out, chunk.data(), chunk.size());
    out += chunk.size();
  }
}

const char* FloatChunks::SingleRun() const { return chunks_.size() == 1 ? chunks_[0].data() : nullptr; }

absl::string_view FloatChunks::Bytes(std::string* storage) const {
  if (SingleRun() != nullptr) return {SingleRun(), bytes_};
  storage->resize(bytes_);
  CopyBytes(&(*storage)[0]);
  return *storage;
}

}  // namespace lockstep
