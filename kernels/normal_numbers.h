#ifndef LOCKSTEP_KERNELS_NORMAL_NUMBERS_H_
#define LOCKSTEP_KERNELS_NORMAL_NUMBERS_H_

#include <cstdint>

namespace lockstep {

// Number of pairs that NormalPairs generates.
inline constexpr int kNormalPairs = 64;

// Generates independent standard normal numbers from uniform 32-bit numbers (Box and Muller 1958), in double precision:
//   first[i]  = sqrt(-2 ln u) cos(a)
//   second[i] = sqrt(-2 ln u) sin(a)    u = (words[2 i] + 1) / 2^32,  a = 2 pi words[2 i + 1] / 2^32
// for kNormalPairs of each. The logarithm, sine and cosine have the same bits as in portable_math.h.
void NormalPairs(const uint32_t* words, double* first, double* second);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_NORMAL_NUMBERS_H_
