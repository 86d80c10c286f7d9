#ifndef LOCKSTEP_COMMON_IO_TESTING_BYTES_OF_H_
#define LOCKSTEP_COMMON_IO_TESTING_BYTES_OF_H_

#include <string>
#include <vector>

namespace lockstep {

// Returns the bytes of the numbers in memory, to write test files.
template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_TESTING_BYTES_OF_H_
