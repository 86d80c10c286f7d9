#ifndef LOCKSTEP_KERNELS_NN_DROPOUT_H_
#define LOCKSTEP_KERNELS_NN_DROPOUT_H_

#include <cstdint>

namespace lockstep {

// Which elements are kept, and the factor of these.
struct DropoutRule {
  // Of the upper 24 bits of an element's random number.
  int32_t lowest_kept;
  float scale;
};

// y[i] = x[i] scale where bits[i] >> 8 is at least lowest_kept, else 0; bit i % 8 of kept[i / 8] says which. Writes
// whole bytes of `kept`, and reads `bits` up to a multiple of 8.
void DropElements(const DropoutRule& rule, int64_t size, const uint32_t* bits, const float* x, uint8_t* kept, float* y);

// dx[i] = dy[i] scale where the bit is set, else 0; dx may be dy.
void DropoutGradient(float scale, int64_t size, const uint8_t* kept, const float* dy, float* dx);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_NN_DROPOUT_H_
