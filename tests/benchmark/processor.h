#ifndef LOCKSTEP_TESTS_BENCHMARK_PROCESSOR_H_
#define LOCKSTEP_TESTS_BENCHMARK_PROCESSOR_H_

#include <string>

namespace lockstep {
namespace benchmark {

// Returns the processor time that this thread has used, in seconds.
double ProcessorSeconds();

// Measures how many fused multiply-adds per second one core can do in the registers of the current target
// (kernels/vectors/target.h), counting each lane. This is an upper bound for every kernel. Takes about a millisecond of
// processor time.
double MeasurePeak();

// Returns text such as "2 cores, AMD EPYC, AVX2 of 51 GFLOP/s each": the processor, the kernels' target, and the best
// of several measured peaks, counting each multiply-add as two operations.
std::string MachineText();

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_PROCESSOR_H_
