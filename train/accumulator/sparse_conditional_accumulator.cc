#include "lockstep/train/accumulator/sparse_conditional_accumulator.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/train/accumulator/gradient_elements.h"

namespace lockstep::train {
namespace {

template <typename... Parts>
absl::Status Mismatch(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("Shape mismatch: ", parts...));
}

// Returns InvalidArgument unless dimension `i` of the values is `expected`.
absl::Status CheckDimension(const Tensor& values, int i, int64_t expected) {
  if (values.shape().dim(i) == expected) return absl::OkStatus();
  return Mismatch("expected values dim ", i, " to be ", expected, ", got ", values.shape().dim(i));
}

class SparseSum : public GradientSum<IndexedSlices> {
 public:
  explicit SparseSum(AccumulatorOptions options) : options_(std::move(options)) {}

  absl::Status Add(const IndexedSlices& gradient) override {
    RETURN_IF_ERROR(CheckParts(gradient));
    RETURN_IF_ERROR(CheckDenseShape(gradient.dense_shape));
    const absl::Span<const int64_t> indices = gradient.indices.flat<int64_t>();
    RETURN_IF_ERROR(CheckIndices(indices));
    RETURN_IF_ERROR(CheckValues(gradient.values));
    if (!values_shape_) {
      values_shape_ = gradient.values.shape();
      row_elements_ = 1;
      for (const int64_t size : values_shape_->dims().subspan(1)) row_elements_ *= size;
    }
    ++gradients_;
    const char* row = gradient.values.bytes().data();
    for (const int64_t index : indices) {
      AddRow(index, row);
      row += row_bytes();
    }
    return absl::OkStatus();
  }

  IndexedSlices Take(int64_t /*count*/) override {
    std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.index < b.index; });
    const int64_t num_rows = static_cast<int64_t>(rows_.size());
    std::vector<int64_t> dims(values_shape_->dims().begin(), values_shape_->dims().end());
    dims[0] = num_rows;
    IndexedSlices result;
    result.indices = Tensor(v1::DT_INT64, {num_rows});
    result.values = Tensor(options_.dtype, Shape::Create(dims).value());
    char* out = result.values.data();
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      result.indices.flat<int64_t>()[i] = row.index;
      std::copy_n(values_.data() + row.offset, row_bytes(), out);
      if (options_.reduction == config::v1::TrainingConfig::MEAN) {
        DivideElements(options_.dtype, row_elements_, row.gradients, out);
      }
      out += row_bytes();
    }
    result.dense_shape = std::move(dims);
    result.dense_shape[0] = options_.shape.rank() > 0 ? options_.shape.dim(0) : PartialShape::kUnknown;
    Clear();
    return result;
  }

 private:
  struct Row {
    int64_t index = 0;
    size_t offset = 0;          // of the row's elements in values_
    int64_t gradients = 0;      // the number of gradients that contain the row
    int64_t last_gradient = 0;  // the last one that contains the row
  };

  size_t row_bytes() const { return static_cast<size_t>(row_elements_) * SizeOf(options_.dtype); }

  void AddRow(int64_t index, const char* elements) {
    const auto inserted = places_.try_emplace(index, rows_.size());
    if (inserted.second) {
      rows_.push_back({index, values_.size(), /*gradients=*/0, /*last_gradient=*/0});
      values_.insert(values_.end(), elements, elements + row_bytes());
    } else {
      AddElements(options_.dtype, row_elements_, elements, values_.data() + rows_[inserted.first->second].offset);
    }
    Row& row = rows_[inserted.first->second];
    if (row.last_gradient == gradients_) return;
    row.last_gradient = gradients_;
    ++row.gradients;
  }

  void Clear() {
    gradients_ = 0;
    values_shape_.reset();
    places_.clear();
    rows_.clear();
    values_.clear();
  }

  // Checks everything that does not depend on the accumulator's shape.
  absl::Status CheckParts(const IndexedSlices& gradient) const {
    const Tensor& indices = gradient.indices;
    const Tensor& values = gradient.values;
    if (indices.dtype() != v1::DT_INT64) {
      return absl::InvalidArgumentError(
          absl::StrCat("the indices are ", NameOf(indices.dtype()), ", and must be int64"));
    }
    if (values.dtype() != options_.dtype) {
      return absl::InvalidArgumentError(absl::StrCat("the gradient has elements of ", NameOf(values.dtype()),
                                                     ", and the accumulator of ", NameOf(options_.dtype)));
    }
    if (indices.shape().rank() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("Input indices should be vector but received shape: ", indices.shape().ToString()));
    }
    if (values.shape().rank() == 0) return absl::InvalidArgumentError("Values cannot be 0-dimensional.");
    if (values.shape().dim(0) != indices.shape().dim(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("Expected ", indices.shape().dim(0), " non-empty input values, got ", values.shape().dim(0)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckDenseShape(const std::vector<int64_t>& dense_shape) const {
    if (dense_shape.empty()) return absl::OkStatus();
    const int rank = options_.shape.rank();
    if (dense_shape.size() < static_cast<size_t>(rank)) {
      return Mismatch("expected shape rank at least ", rank, ", got ", dense_shape.size());
    }
    for (int i = 0; i < rank; ++i) {
      const int64_t size = dense_shape[static_cast<size_t>(i)];
      if (!options_.shape.Allows(i, size)) {
        return Mismatch("expected shape dim ", i, " to be ", options_.shape.dim(i), ", got ", size);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckIndices(absl::Span<const int64_t> indices) const {
    const int64_t limit = options_.shape.rank() > 0 ? options_.shape.dim(0) : PartialShape::kUnknown;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] < 0) return Mismatch("index of slice ", i, " is negative; index is ", indices[i]);
      if (limit != PartialShape::kUnknown && indices[i] >= limit) {
        return Mismatch("index of slice ", i, " exceeded limits of shape; index is ", indices[i], " exceeded ", limit);
      }
    }
    return absl::OkStatus();
  }

  // Compares the shape of the values with that of the first gradient's values, or with the declared shape if there is
  // no gradient yet.
  absl::Status CheckValues(const Tensor& values) const {
    const int rank = values.shape().rank();
    if (values_shape_) {
      if (rank != values_shape_->rank())
        return Mismatch("expected values rank ", values_shape_->rank(), ", got ", rank);
      for (int i = 1; i < rank; ++i) RETURN_IF_ERROR(CheckDimension(values, i, values_shape_->dim(i)));
      return absl::OkStatus();
    }
    const PartialShape& declared = options_.shape;
    if (rank < declared.rank()) return Mismatch("expected values rank at least ", declared.rank(), ", got ", rank);
    for (int i = 1; i < declared.rank(); ++i) {
      if (declared.dim(i) != PartialShape::kUnknown) RETURN_IF_ERROR(CheckDimension(values, i, declared.dim(i)));
    }
    return absl::OkStatus();
  }

  const AccumulatorOptions options_;
  int64_t gradients_ = 0;
  // The shape of the first gradient's values; only the dimensions after the first matter.
  absl::optional<Shape> values_shape_;
  int64_t row_elements_ = 0;
  absl::flat_hash_map<int64_t, size_t> places_;  // index -> its place in rows_
  std::vector<Row> rows_;
  std::vector<char> values_;  // the elements of the rows, in the order in which they were added
};

}  // namespace

absl::StatusOr<std::unique_ptr<SparseConditionalAccumulator>> SparseConditionalAccumulator::Create(
    const AccumulatorOptions& options) {
  RETURN_IF_ERROR(CheckAccumulatorOptions(options));
  return absl::WrapUnique(new SparseConditionalAccumulator(std::make_unique<SparseSum>(options)));
}

}  // namespace lockstep::train
