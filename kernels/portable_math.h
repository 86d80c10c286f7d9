#ifndef LOCKSTEP_KERNELS_PORTABLE_MATH_H_
#define LOCKSTEP_KERNELS_PORTABLE_MATH_H_

namespace lockstep {

// Elementary functions that return the same bits on every processor and with every C library. They use only operations
// for which IEEE 754 defines the rounding (sums, products, quotients, fused multiply-adds). All code that weights
// depend on, including users' models and inputs, calls these functions and never the ones in <cmath>, whose
// implementation depends on the C library's version and the processor; tests/kernels/libm_test.sh checks the objects.
//
// The double functions evaluate a series in pairs of doubles and round once, at the end. The error is below 0.51 units
// of the result's last place, even for subnormal results. For all but one in thousands of arguments, they return the
// exact result rounded to the nearest double. Zeros, infinities and NaN follow C (annex F). errno does not change.
namespace portable {

double Exp(double x);
// e^x - 1, accurate to the last place even near 0.
double Expm1(double x);
double Log(double x);
// ln(1 + x), accurate to the last place even near 0.
double Log1p(double x);
// These return NaN if |x| > 2^20. The largest angle used here is 2 pi.
double Sin(double x);
double Cos(double x);
double Tanh(double x);
double Pow(double x, double y);

// The error is below 0.50001 units in the last place. Faster than Pow for doubles.
float Pow(float x, float y);

}  // namespace portable
}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_PORTABLE_MATH_H_
