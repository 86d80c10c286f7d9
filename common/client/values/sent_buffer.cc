#include "lockstep/common/client/values/sent_buffer.h"

#include <algorithm>
#include <limits>

namespace lockstep {

std::shared_ptr<const void> SentBuffer::Hold(int64_t offset, int64_t elements) {
  held_.push_back({offset, offset + elements, std::make_shared<Owner::element_type>(memory_)});
  return held_.back().owner;
}

bool SentBuffer::IsFree(int64_t offset, int64_t elements) {
  if (held_.empty()) return true;
  const auto is_free = [](const Part& part) {
    if (part.owner.use_count() > 1) return false;
    // Dropping a reference synchronizes with the reads of earlier owners; use_count does not.
    Owner(part.owner).reset();
    return true;
  };
  held_.erase(std::remove_if(held_.begin(), held_.end(), is_free), held_.end());
  return std::none_of(held_.begin(), held_.end(), [offset, elements](const Part& part) {
    return part.begin < offset + elements && offset < part.end;
  });
}

bool SentBuffer::IsFree() { return IsFree(0, std::numeric_limits<int64_t>::max()); }

}  // namespace lockstep
