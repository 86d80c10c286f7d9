#include "lockstep/common/step/sent_buffer.h"

#include <algorithm>
#include <limits>

namespace lockstep {
namespace {

// The last reference: those who had the others read the memory before what follows.
template <typename T>
bool IsLast(const std::shared_ptr<T>& owner) {
  if (owner.use_count() > 1) return false;
  // Dropping a reference orders what follows after the reads of earlier owners; use_count does not.
  std::shared_ptr<T>(owner).reset();
  return true;
}

}  // namespace

std::shared_ptr<const void> SentBuffer::Hold(int64_t offset, int64_t elements) {
  held_.push_back({offset, offset + elements, std::make_shared<const std::shared_ptr<AlignedBuffer>>(memory_)});
  return held_.back().owner;
}

bool SentBuffer::IsFree(int64_t offset, int64_t elements) {
  if (held_.empty()) return true;
  held_.erase(std::remove_if(held_.begin(), held_.end(), [](const Part& part) { return IsLast(part.owner); }),
              held_.end());
  return std::none_of(held_.begin(), held_.end(), [offset, elements](const Part& part) {
    return part.begin < offset + elements && offset < part.end;
  });
}

bool SentBuffer::IsFree() { return IsFree(0, std::numeric_limits<int64_t>::max()); }

}  // namespace lockstep
