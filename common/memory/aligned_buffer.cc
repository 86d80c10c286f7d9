#include "lockstep/common/memory/aligned_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "glog/logging.h"

namespace lockstep {
namespace {

constexpr size_t kHugePage = 2 << 20;
// From this size on little is wasted by huge pages, and their first touch costs a tenth of that of small ones.
constexpr size_t kHugeBuffer = 4 * kHugePage;

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) : size_(bytes) {
  const bool huge = bytes >= kHugeBuffer;
  const size_t alignment = huge ? kHugePage : kTensorAlignment;
  const size_t rounded = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  data_.reset(static_cast<char*>(std::aligned_alloc(alignment, rounded)));
  CHECK(data_ != nullptr) << "no memory for a tensor of " << bytes << " bytes";
  // A hint: without huge pages everything works, only slower.
  if (huge) madvise(data_.get(), rounded, MADV_HUGEPAGE);
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
