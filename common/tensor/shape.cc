#include "lockstep/common/tensor/shape.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep {
namespace {
constexpr int64_t kMaxElements = int64_t{1} << 62;
}  // namespace

absl::StatusOr<Shape> Shape::Create(absl::Span<const int64_t> dims) {
  Shape shape;
  shape.dims_.assign(dims.begin(), dims.end());
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim < 0)
      return absl::InvalidArgumentError(absl::StrCat("shape ", shape.ToString(), " has a negative dimension"));
    if (dim != 0 && elements > kMaxElements / dim) {
      return absl::InvalidArgumentError(absl::StrCat("shape ", shape.ToString(), " has more than 2^62 elements"));
    }
    elements *= dim;
  }
  return shape;
}

absl::StatusOr<Shape> Shape::FromProto(const v1::TensorShapeProto& proto) {
  if (proto.unknown_rank()) return absl::InvalidArgumentError("a shape of unknown rank");
  absl::InlinedVector<int64_t, 4> dims;
  for (const auto& dim : proto.dim()) dims.push_back(dim.size());
  return Create(dims);
}

v1::TensorShapeProto Shape::ToProto() const {
  v1::TensorShapeProto proto;
  for (const int64_t dim : dims_) proto.add_dim()->set_size(dim);
  return proto;
}

int64_t Shape::num_elements() const {
  int64_t elements = 1;
  for (const int64_t dim : dims_) elements *= dim;
  return elements;
}

std::string Shape::ToString() const { return absl::StrCat("[", absl::StrJoin(dims_, ","), "]"); }

}  // namespace lockstep
