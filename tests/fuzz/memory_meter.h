#ifndef LOCKSTEP_TESTS_FUZZ_MEMORY_METER_H_
#define LOCKSTEP_TESTS_FUZZ_MEMORY_METER_H_

#include <cstdint>

namespace lockstep {

// Measures what operator new gives out, in all threads, from its construction on. A program that links this has its own
// operator new. One at a time.
class MemoryMeter {
 public:
  MemoryMeter();

  // The most bytes so far that were given out and not given back, beyond those at the start.
  uint64_t peak() const;

 private:
  const int64_t start_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_FUZZ_MEMORY_METER_H_
