#include "lockstep/train/accumulator/gradient_elements.h"

#include "Eigen/Core"
#include "glog/logging.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep::train {
namespace {

// Calls `compute` with a value of the C++ type of `dtype`.
template <typename Compute>
void WithType(v1::DataType dtype, const Compute& compute) {
  switch (dtype) {
    case v1::DT_HALF:
      return compute(Eigen::half());
    case v1::DT_FLOAT:
      return compute(float());
    case v1::DT_DOUBLE:
      return compute(double());
    default:
      LOG(FATAL) << "gradients of type " << NameOf(dtype);
  }
}

}  // namespace

bool IsGradientType(v1::DataType dtype) {
  return dtype == v1::DT_HALF || dtype == v1::DT_FLOAT || dtype == v1::DT_DOUBLE;
}

void AddElements(v1::DataType dtype, int64_t n, const char* from, char* to) {
  WithType(dtype, [&](auto element) {
    using T = decltype(element);
    const T* source = reinterpret_cast<const T*>(from);
    T* target = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) target[i] = target[i] + source[i];
  });
}

void DivideElements(v1::DataType dtype, int64_t n, int64_t divisor, char* elements) {
  WithType(dtype, [&](auto element) {
    using T = decltype(element);
    const T by = static_cast<T>(static_cast<double>(divisor));
    T* target = reinterpret_cast<T*>(elements);
    for (int64_t i = 0; i < n; ++i) target[i] = target[i] / by;
  });
}

}  // namespace lockstep::train
