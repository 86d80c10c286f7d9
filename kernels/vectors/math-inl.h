// Exponential, logarithm and hyperbolic tangent, lane by lane. Compiled once for each target. They use only operations
// that every processor rounds in the same way, so a number's result has the same bits on every target and in every
// lane. The C library's functions differ between versions and processors.
#if defined(LOCKSTEP_KERNELS_VECTORS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_VECTORS_MATH_INL_H_
#undef LOCKSTEP_KERNELS_VECTORS_MATH_INL_H_
#else
#define LOCKSTEP_KERNELS_VECTORS_MATH_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// limit > x ? limit : x, which preserves a NaN in x and the sign of a zero.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AtLeast(D d, V limit, V x) {
#if HWY_TARGET == HWY_NEON
  return hn::IfThenElse(hn::Gt(limit, x), limit, x);
#else
  return hn::Max(limit, x);  // x86 treats NaN and zeros this way.
#endif
}
// limit < x ? limit : x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AtMost(D d, V limit, V x) {
#if HWY_TARGET == HWY_NEON
  return hn::IfThenElse(hn::Lt(limit, x), limit, x);
#else
  return hn::Min(limit, x);
#endif
}

// 2^m for a whole number m in [-126, 127].
template <class D, class V = hn::Vec<D>>
HWY_INLINE V PowerOfTwo(D d, hn::Vec<hn::RebindToSigned<D>> m) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(m, hn::Set(di, 127))));
}

// e^x as in Cephes (expf): 2^m e^r with m = floor(x / ln 2 + 1/2) and a polynomial of degree 7 in r. Below -88.723, the
// result is e^-88.723, 2.9e-39. Infinity and NaN are preserved.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V bounded = AtLeast(d, c(-88.723f), AtMost(d, c(88.723f), x));
  const V m = hn::Floor(hn::MulAdd(bounded, c(1.44269504088896341f), c(0.5f)));
  V r = hn::MulAdd(m, c(-0.693359375f), bounded);
  r = hn::MulAdd(m, c(2.12194440e-4f), r);
  const V r2 = hn::Mul(r, r);
  const V r3 = hn::Mul(r2, r);
  V y = hn::MulAdd(c(1.9875691500E-4f), r, c(1.3981999507E-3f));
  V low = hn::MulAdd(c(4.1665795894E-2f), r, c(1.6666665459E-1f));
  y = hn::MulAdd(y, r, c(8.3334519073E-3f));
  low = hn::MulAdd(low, r, c(5.0000001201E-1f));
  y = hn::MulAdd(y, r3, low);
  y = hn::MulAdd(y, r2, hn::Add(r, c(1.0f)));
  // Multiplies by 2^m in two factors, since m is in [-128, 128]. One product is exact, and the other rounds once.
  const hn::RebindToSigned<D> di;
  const auto whole = hn::ConvertTo(di, m);
  const auto half = hn::ShiftRight<1>(whole);
  y = hn::Mul(hn::Mul(y, PowerOfTwo(d, half)), PowerOfTwo(d, hn::Sub(whole, half)));
  return AtLeast(d, x, y);
}

// The natural logarithm as in Cephes (logf): a polynomial of degree 8 for the mantissa in [sqrt(1/2), sqrt(2)), plus ln
// 2 times the exponent. The result is the logarithm of the smallest normal number for subnormal numbers, -infinity for
// 0, and NaN for negative numbers.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V one = c(1.0f);
  const V normal = AtLeast(d, c(1.17549435e-38f), x);
  const auto bits = hn::BitCast(di, normal);
  V e = hn::Sub(hn::ConvertTo(d, hn::ShiftRight<23>(bits)), c(126.0f));
  // The mantissa in [1/2, 1).
  V m = hn::BitCast(d, hn::Or(hn::And(bits, hn::Set(di, 0x007fffff)), hn::Set(di, 0x3f000000)));
  const auto small = hn::Lt(m, c(0.707106781186547524f));
  const V added = hn::IfThenElseZero(small, m);
  m = hn::Add(hn::Sub(m, one), added);
  e = hn::Sub(e, hn::IfThenElseZero(small, one));
  const V m2 = hn::Mul(m, m);
  const V m3 = hn::Mul(m2, m);
  V y = hn::MulAdd(c(7.0376836292E-2f), m, c(-1.1514610310E-1f));
  V y1 = hn::MulAdd(c(-1.2420140846E-1f), m, c(+1.4249322787E-1f));
  V y2 = hn::MulAdd(c(+2.0000714765E-1f), m, c(-2.4999993993E-1f));
  y = hn::MulAdd(y, m, c(1.1676998740E-1f));
  y1 = hn::MulAdd(y1, m, c(-1.6668057665E-1f));
  y2 = hn::MulAdd(y2, m, c(+3.3333331174E-1f));
  y = hn::MulAdd(y, m3, y1);
  y = hn::MulAdd(y, m3, y2);
  y = hn::Mul(y, m3);
  y = hn::MulAdd(c(-0.5f), m2, y);
  V result = hn::MulAdd(e, c(0.693147180559945309f), hn::Add(m, y));
  const V infinity = hn::BitCast(d, hn::Set(di, 0x7f800000));
  result = hn::IfThenElse(hn::Eq(x, infinity), infinity, result);
  result = hn::IfThenElse(hn::Ge(x, hn::Zero(d)), result, hn::BitCast(d, hn::Set(di, -1)));
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), result);
}

// tanh x: Eigen's rational function of degree 13 over degree 6, x itself if |x| < 0.0004, and +-1 beyond 7.9988.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V argument) {
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V x = AtLeast(d, c(-7.99881172180175781f), AtMost(d, c(7.99881172180175781f), argument));
  const V x2 = hn::Mul(x, x);
  V p = hn::MulAdd(x2, c(-2.76076847742355e-16f), c(2.00018790482477e-13f));
  p = hn::MulAdd(x2, p, c(-8.60467152213735e-11f));
  p = hn::MulAdd(x2, p, c(5.12229709037114e-08f));
  p = hn::MulAdd(x2, p, c(1.48572235717979e-05f));
  p = hn::MulAdd(x2, p, c(6.37261928875436e-04f));
  p = hn::MulAdd(x2, p, c(4.89352455891786e-03f));
  p = hn::Mul(x, p);
  V q = hn::MulAdd(x2, c(1.19825839466702e-06f), c(1.18534705686654e-04f));
  q = hn::MulAdd(x2, q, c(2.26843463243900e-03f));
  q = hn::MulAdd(x2, q, c(4.89352518554385e-03f));
  return hn::IfThenElse(hn::Lt(hn::Abs(argument), c(0.0004f)), x, hn::Div(p, q));
}

// 1 / (1 + e^-x)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(x))));
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // LOCKSTEP_KERNELS_VECTORS_MATH_INL_H_
