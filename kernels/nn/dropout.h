#ifndef LOCKSTEP_KERNELS_NN_DROPOUT_H_
#define LOCKSTEP_KERNELS_NN_DROPOUT_H_

#include <cstdint>

namespace lockstep {

// The rule for keeping elements, and the factor for the kept ones.
struct DropoutRule {
  // The lowest value of a random number's upper 24 bits for which the element is kept.
  int32_t lowest_kept;
  float scale;
};

// y[i] = x[i] scale if bits[i] >> 8 is at least lowest_kept, otherwise 0. Bit i % 8 of kept[i / 8] is set if element i
// is kept. Writes whole bytes of `kept`, and reads `bits` up to a multiple of 8.
void DropElements(const DropoutRule& rule, int64_t size, const uint32_t* bits, const float* x, uint8_t* kept, float* y);

// dx[i] = dy[i] scale if the bit is set, otherwise 0; dx may be dy.
void DropoutGradient(float scale, int64_t size, const uint8_t* kept, const float* dy, float* dx);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_NN_DROPOUT_H_
