#ifndef LOCKSTEP_TESTS_FUZZ_MEMORY_METER_H_
#define LOCKSTEP_TESTS_FUZZ_MEMORY_METER_H_

#include <cstdint>

namespace lockstep {

// A meter of the memory that operator new allocates in all threads, from the meter's construction on. Replaces operator
// new in a program that links it. Only one may exist at a time.
class MemoryMeter {
 public:
  MemoryMeter();

  // Returns the maximum number of allocated bytes so far, excluding the bytes allocated at the start.
  uint64_t peak() const;

 private:
  const int64_t start_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_FUZZ_MEMORY_METER_H_
