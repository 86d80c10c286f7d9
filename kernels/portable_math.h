#ifndef LOCKSTEP_KERNELS_PORTABLE_MATH_H_
#define LOCKSTEP_KERNELS_PORTABLE_MATH_H_

namespace lockstep {

// Elementary functions whose bits are the same on every processor and with every C library: they are made of operations
// that IEEE 754 rounds in one way only (sums, products, quotients, fused multiply-adds). Whatever weights depend on,
// in the models and inputs of users as well, calls these and never those of <cmath>, which the C library chooses by its
// version and the processor; tests/kernels/libm_test.sh looks at the objects.
//
// Those of double evaluate a series in pairs of doubles and round once, at the end: the error is below 0.51 units of
// the result's last place, subnormal results included. So they are the exact result rounded to the nearest double, but
// for one argument in thousands. Zeros, infinities and NaN are what C (annex F) says; errno is left alone.
namespace portable {

double Exp(double x);
// e^x - 1, to the last place near 0 too.
double Expm1(double x);
double Log(double x);
// ln(1 + x), to the last place near 0 too.
double Log1p(double x);
// For |x| <= 2^20, beyond which the result is NaN: no angle of ours is larger than 2 pi.
double Sin(double x);
double Cos(double x);
double Tanh(double x);
double Pow(double x, double y);

// The error is below 0.50001 units in the last place. Takes a part of the time of Pow for doubles.
float Pow(float x, float y);

}  // namespace portable
}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_PORTABLE_MATH_H_
