#ifndef LOCKSTEP_TESTS_TESTING_PROCESS_MEMORY_H_
#define LOCKSTEP_TESTS_TESTING_PROCESS_MEMORY_H_

#include <cstdint>

namespace lockstep {

// Measures how far the memory of this process grows, by the kernel's count of resident bytes.
class MemoryGrowth {
 public:
  // Starts to measure.
  MemoryGrowth();
  // The most bytes by which the memory has exceeded that of the start, even for a moment.
  int64_t peak() const;

 private:
  int64_t start_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_PROCESS_MEMORY_H_
