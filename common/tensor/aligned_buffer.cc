#include "common/tensor/aligned_buffer.h"

#include "glog/logging.h"

namespace lockstep {

AlignedBuffer::AlignedBuffer(size_t bytes) : size_(bytes) {
  const size_t rounded = (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  data_.reset(static_cast<char*>(std::aligned_alloc(kTensorAlignment, rounded > 0 ? rounded : kTensorAlignment)));
  CHECK(data_ != nullptr) << "no memory for a tensor of " << bytes << " bytes";
}

}  // namespace lockstep
