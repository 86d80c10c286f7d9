#ifndef LOCKSTEP_COMMON_IO_LITTLE_ENDIAN_H_
#define LOCKSTEP_COMMON_IO_LITTLE_ENDIAN_H_

#include <cstdint>
#include <string>

namespace lockstep {

// Reads and writes unsigned integers in files, lowest byte first on every machine.

template <typename T>
T LoadLittleEndian(const char* p) {
  T value = 0;
  for (int i = sizeof(T) - 1; i >= 0; --i) value = static_cast<T>(value << 8 | static_cast<unsigned char>(p[i]));
  return value;
}

template <typename T>
void AppendLittleEndian(std::string* out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out->push_back(static_cast<char>(value & 0xff));
    value = static_cast<T>(value >> 8);
  }
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_LITTLE_ENDIAN_H_
