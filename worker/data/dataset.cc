#include "lockstep/worker/data/dataset.h"

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/v1/data.pb.h"

namespace lockstep {

Dataset::Dataset(const ExampleSpec& spec, int64_t size, bool has_weights, uint32_t crc32c, bool has_labels)
    : spec_(spec), size_(size), has_weights_(has_weights), has_labels_(has_labels), crc32c_(crc32c) {}

v1::DataDigest Dataset::digest() const {
  v1::DataDigest digest;
  digest.set_examples(size_);
  digest.set_crc32c(crc32c_);
  AddPreparation(&digest);
  return digest;
}

absl::Status Dataset::Read(absl::Span<const int64_t> indices, Batch* out) const {
  for (const int64_t index : indices) {
    if (index < 0 || index >= size_) {
      return absl::InvalidArgumentError(absl::StrCat("example ", index, " of a split with ", size_, " examples"));
    }
  }
  const int64_t size = static_cast<int64_t>(indices.size());
  out->size = size;
  out->features = Tensor(spec_.features_dtype, WithBatchDimension(size, spec_.features_shape));
  out->labels = Tensor(spec_.labels_dtype, WithBatchDimension(size, spec_.labels_shape));
  out->weights = has_weights_ ? Tensor(v1::DT_FLOAT, Shape({size})) : Tensor();
  return ReadExamples(indices, out);
}

uint32_t StartOfDigest(const ExampleSpec& spec, bool has_weights) {
  return Crc32c(absl::StrCat(NameOf(spec.features_dtype), spec.features_shape.ToString(), " ",
                             NameOf(spec.labels_dtype), spec.labels_shape.ToString(), has_weights ? " weights" : ""));
}

Shape WithBatchDimension(int64_t size, const Shape& shape) {
  absl::InlinedVector<int64_t, 5> dims = {size};
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  // The shape of an example was checked when its split was opened.
  return *Shape::Create(dims);
}

}  // namespace lockstep
