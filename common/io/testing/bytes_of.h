#ifndef LOCKSTEP_COMMON_IO_TESTING_BYTES_OF_H_
#define LOCKSTEP_COMMON_IO_TESTING_BYTES_OF_H_

#include <string>
#include <vector>

namespace lockstep {

// Returns the numbers' bytes as they are in memory, for writing test files.
template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_TESTING_BYTES_OF_H_
