#include "lockstep/common/memory/aligned_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "glog/logging.h"

namespace lockstep {
namespace {

// The smallest page size. If pages are larger, Populate fails.
constexpr size_t kPage = 4096;
// MADV_POPULATE_WRITE, which headers before 5.14 lack.
constexpr int kPopulateWrite = 23;
// MADV_COLLAPSE, since 6.1.
constexpr int kCollapse = 25;

bool Advise(uintptr_t begin, uintptr_t end, int advice) {
  return begin == end || madvise(reinterpret_cast<void*>(begin), end - begin, advice) == 0;
}

// Collapses small pages into huge ones, which is the only way to get huge pages in shared memory. Before that, provides
// one small page in the place of each huge page. This is a hint: it fails if the kernel does not support it or has no
// huge page left.
void ProvideHugePages(uintptr_t begin, uintptr_t end) {
  begin = (begin + kHugePage - 1) / kHugePage * kHugePage;
  end = end / kHugePage * kHugePage;
  if (begin >= end) return;
  for (uintptr_t at = begin; at < end; at += kHugePage) Advise(at, at + kPage, kPopulateWrite);
  Advise(begin, end, kCollapse);
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) : size_(bytes) {
  const bool huge = bytes >= kHugeBuffer;
  const size_t alignment = huge ? kHugePage : kTensorAlignment;
  const size_t rounded = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  data_.reset(static_cast<char*>(std::aligned_alloc(alignment, rounded)));
  CHECK(data_ != nullptr) << "no memory for a tensor of " << bytes << " bytes";
  // This is a hint. Without huge pages everything works, but more slowly.
  if (huge) madvise(data_.get(), rounded, MADV_HUGEPAGE);
}

bool AlignedBuffer::Populate(size_t offset, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data() + offset) / kPage * kPage;
  const auto end = reinterpret_cast<uintptr_t>(data() + offset + bytes);
  if (shared_ != nullptr && size_ >= kHugeBuffer) ProvideHugePages(begin, end);
  return bytes == 0 || Advise(begin, end, kPopulateWrite);
}

AlignedBuffer AlignedBuffer::Shared(size_t bytes) {
  auto memory = SharedMemory::Create(bytes);
  if (!memory.ok()) {
    LOG_FIRST_N(WARNING, 1) << memory.status().message();
    return AlignedBuffer(bytes);
  }
  AlignedBuffer buffer;
  buffer.shared_ = *std::move(memory);
  buffer.size_ = bytes;
  return buffer;
}

}  // namespace lockstep
