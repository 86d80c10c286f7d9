#include "lockstep/common/tensor/tensor.h"

#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {

Tensor::Tensor(v1::DataType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  buffer_ = std::make_shared<AlignedBuffer>(static_cast<size_t>(shape_.num_elements()) * SizeOf(dtype));
}

absl::StatusOr<Tensor> Tensor::FromProto(const v1::TensorProto& proto) {
  const size_t element_size = SizeOf(proto.dtype());
  if (element_size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of type ", NameOf(proto.dtype()), " (", proto.dtype(), ")"));
  }
  ASSIGN_OR_RETURN(Shape shape, Shape::FromProto(proto.shape()));
  if (proto.content().size() / element_size != static_cast<uint64_t>(shape.num_elements()) ||
      proto.content().size() % element_size != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a ", NameOf(proto.dtype()), " tensor of shape ", shape.ToString(),
                                                   " with ", proto.content().size(), " bytes"));
  }
  Tensor tensor(proto.dtype(), std::move(shape));
  std::memcpy(tensor.data(), proto.content().data(), proto.content().size());
  return tensor;
}

v1::TensorProto Tensor::ToProto() const {
  v1::TensorProto proto;
  proto.set_dtype(dtype_);
  *proto.mutable_shape() = shape_.ToProto();
  proto.set_content(bytes().data(), bytes().size());
  return proto;
}

absl::string_view Tensor::bytes() const {
  if (!buffer_) return {};
  return {buffer_->data(), buffer_->size()};
}

}  // namespace lockstep
