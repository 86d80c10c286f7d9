#ifndef LOCKSTEP_TRAIN_ACCUMULATOR_GRADIENT_ELEMENTS_H_
#define LOCKSTEP_TRAIN_ACCUMULATOR_GRADIENT_ELEMENTS_H_

#include <cstdint>

#include "lockstep/v1/tensor.pb.h"

namespace lockstep::train {

// Arithmetic on elements whose type is known only at run time: DT_HALF, DT_FLOAT or DT_DOUBLE, the types that
// TensorFlow's accumulators support. Each operation rounds its result to the type once.

// Returns true if `dtype` is DT_HALF, DT_FLOAT or DT_DOUBLE.
bool IsGradientType(v1::DataType dtype);

// Adds n elements: to[i] = to[i] + from[i]. Both pointers must be aligned for the type.
void AddElements(v1::DataType dtype, int64_t n, const char* from, char* to);

// Divides n elements by `divisor`, which is first rounded to the type.
void DivideElements(v1::DataType dtype, int64_t n, int64_t divisor, char* elements);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_ACCUMULATOR_GRADIENT_ELEMENTS_H_
