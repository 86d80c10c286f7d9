#ifndef LOCKSTEP_TESTS_TESTING_PROCESS_MEMORY_H_
#define LOCKSTEP_TESTS_TESTING_PROCESS_MEMORY_H_

#include <cstdint>

namespace lockstep {

// The growth of this process's memory, according to the kernel's count of resident bytes.
class MemoryGrowth {
 public:
  // Starts the measurement.
  MemoryGrowth();
  // Returns the maximum growth since construction in bytes, even if it lasted only briefly.
  int64_t peak() const;

 private:
  int64_t start_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_PROCESS_MEMORY_H_
