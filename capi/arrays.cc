#include "lockstep/capi/arrays.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/capi/answer.h"
#include "lockstep/kernels/nn/activation.h"
#include "lockstep/kernels/vectors/target.h"

namespace lockstep {
namespace {

// Number of rows summed together. Changing it changes the low-order bits of the results.
constexpr int64_t kBlockRows = 256;

}  // namespace

absl::Status RequireArray(const void* data, const char* name, absl::Span<const int64_t> shape) {
  const auto error = [&](const char* text) {
    return absl::InvalidArgumentError(absl::StrCat(name, " with shape [", absl::StrJoin(shape, ", "), "] ", text));
  };
  int64_t elements = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0 || (i > 0 && shape[i] == 0)) return error("has a dimension that is too small");
    if (shape[i] > 0 && elements > kMostElements / shape[i]) return error("has more than 2^40 elements");
    elements *= shape[i];
  }
  return elements > 0 ? RequirePointer(data, name) : absl::OkStatus();
}

absl::Status RequireInRange(absl::Span<const int64_t> numbers, const char* name, int64_t end, int64_t exception) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == exception || (numbers[i] >= 0 && numbers[i] < end)) continue;
    return absl::InvalidArgumentError(absl::StrCat(name, "[", i, "] is ", numbers[i], ", must be in [0, ", end, ")"));
  }
  return absl::OkStatus();
}

absl::Status RequireShare(float value, const char* name) {
  if (value >= 0 && value <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", value, ", must be in [0, 1]"));
}

int Compute(absl::FunctionRef<absl::Status(ComputeContext*)> body) {
  return Answer([&]() -> absl::Status {
    const std::string error = TargetError();
    if (!error.empty()) return absl::FailedPreconditionError(error);
    thread_local ComputeContext compute(1);
    return body(&compute);
  });
}

void SumAllRows(int64_t rows, int64_t columns, const float* x, float* sums) {
  if (rows == 0) {
    std::fill_n(sums, columns, 0.0f);
    return;
  }
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  if (blocks == 1) return SumColumns(rows, columns, x, sums);
  std::vector<float> partial(blocks * columns);
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t begin = block * kBlockRows;
    SumColumns(std::min(kBlockRows, rows - begin), columns, x + begin * columns, partial.data() + block * columns);
  }
  SumColumns(blocks, columns, partial.data(), sums);
}

}  // namespace lockstep
