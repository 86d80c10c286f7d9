#ifndef LOCKSTEP_TESTS_BENCHMARK_PROCESSOR_H_
#define LOCKSTEP_TESTS_BENCHMARK_PROCESSOR_H_

#include <string>

namespace lockstep {
namespace benchmark {

// Processor time of this thread.
double ProcessorSeconds();

// Fused multiply-adds per second of one core, each lane counted, in the registers of the current target
// (kernels/vectors/target.h): no kernel can be faster. Measured for about a millisecond of processor time.
double MeasurePeak();

// "2 cores, AMD EPYC, AVX2 of 51 GFLOP/s each": the processor, the kernels' target and the best of several peaks, two
// operations for each multiply-add.
std::string MachineText();

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_PROCESSOR_H_
