#include "lockstep/kernels/nn/dropout.h"

#include <algorithm>
#include <cstring>

#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/dropout.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

using Integers = hn::RebindToSigned<Floats>;

// Number of mask bits written at a time. Must be a multiple of 8.
constexpr int kTogether = kFloatLanes < 8 ? 8 : kFloatLanes;

// Drops elements of one vector and returns its mask bits.
template <class Load, class Store>
HWY_INLINE uint32_t DropVector(const DropoutRule& rule, const uint32_t* bits, Load load, Store store) {
  const Floats d;
  const Integers di;
  const hn::RebindToUnsigned<Floats> du;
  const auto uniform = hn::BitCast(di, hn::ShiftRight<8>(hn::LoadU(du, bits)));
  const auto keep = hn::Not(hn::Lt(uniform, hn::Set(di, rule.lowest_kept)));
  store(hn::IfThenElseZero(hn::RebindMask(d, keep), hn::Mul(load(), hn::Set(d, rule.scale))));
  uint8_t bytes[8] = {};
  hn::StoreMaskBits(di, keep, bytes);
  uint32_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

HWY_INLINE void StoreBytes(uint32_t word, int64_t count, uint8_t* kept) {
  for (int64_t i = 0; i < count; ++i, word >>= 8) kept[i] = static_cast<uint8_t>(word);
}

void DropOnTarget(const DropoutRule& rule, int64_t size, const uint32_t* bits, const float* x, uint8_t* kept,
                  float* y) {
  const Floats d;
  int64_t i = 0;
  for (; i + kTogether <= size; i += kTogether) {
    uint32_t word = 0;
#pragma GCC unroll 2
    for (int at = 0; at < kTogether; at += kFloatLanes) {
      word |= DropVector(
                  rule, bits + i + at, [&]() HWY_ATTR { return hn::LoadU(d, x + i + at); },
                  [&](FloatVector v) HWY_ATTR { hn::StoreU(v, d, y + i + at); })
              << at;
    }
    StoreBytes(word, kTogether / 8, kept + i / 8);
  }
  if (i == size) return;
  // The random numbers of the last elements, rounded up to a whole byte of the mask.
  uint32_t last[kTogether] = {};
  std::copy_n(bits + i, (size - i + 7) / 8 * 8, last);
  uint32_t word = 0;
  for (int at = 0; at < kTogether; at += kFloatLanes) {
    const int64_t count = size - i - at;
    word |= DropVector(
                rule, last + at, [&]() HWY_ATTR { return LoadUpTo(d, x + i + at, count); },
                [&](FloatVector v) HWY_ATTR { StoreUpTo(v, d, y + i + at, count); })
            << at;
  }
  StoreBytes(word, (size - i + 7) / 8, kept + i / 8);
}

// Returns a mask whose lane i is set if bit i of `word` is set.
HWY_INLINE hn::Mask<Floats> MaskOf(uint32_t word) {
  const Integers di;
  const auto bit = hn::Shl(hn::Set(di, 1), hn::Iota(di, 0));
  return hn::RebindMask(Floats(), hn::TestBit(hn::Set(di, static_cast<int32_t>(word)), bit));
}

// Returns the mask bits of the elements from i on. Reads only the bytes of elements before `end`.
HWY_INLINE uint32_t WordAt(const uint8_t* kept, int64_t i, int64_t end) {
  uint32_t word = kept[i / 8];
  if (kFloatLanes > 8 && i + 8 < end) word |= static_cast<uint32_t>(kept[i / 8 + 1]) << 8;
  return word >> (i % 8);
}

void GradientOnTarget(float scale, int64_t size, const uint8_t* kept, const float* dy, float* dx) {
  const Floats d;
  const FloatVector factor = hn::Set(d, scale);
  const auto scaled = [&](int64_t i, FloatVector x)
                          HWY_ATTR { return hn::IfThenElseZero(MaskOf(WordAt(kept, i, size)), hn::Mul(x, factor)); };
  int64_t i = 0;
  for (; i + kFloatLanes <= size; i += kFloatLanes) hn::StoreU(scaled(i, hn::LoadU(d, dy + i)), d, dx + i);
  if (i < size) StorePart(scaled(i, LoadPart(d, dy + i, size - i)), d, dx + i, size - i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(DropOnTarget);
HWY_EXPORT(GradientOnTarget);

void DropElements(const DropoutRule& rule, int64_t size, const uint32_t* bits, const float* x, uint8_t* kept,
                  float* y) {
  HWY_DYNAMIC_DISPATCH(DropOnTarget)(rule, size, bits, x, kept, y);
}

void DropoutGradient(float scale, int64_t size, const uint8_t* kept, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(GradientOnTarget)(scale, size, kept, dy, dx);
}

}  // namespace lockstep
#endif  // HWY_ONCE
