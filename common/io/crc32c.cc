#include "lockstep/common/io/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace lockstep {
namespace {

// Polynomials over GF(2) modulo Castagnoli's, reflected: the highest bit is the coefficient of x^0.
constexpr uint32_t kPolynomial = 0x82f63b78u;
constexpr uint32_t kOne = 1u << 31;
// Appending a zero byte to a string multiplies its checksum by this.
constexpr uint32_t kX8 = kOne >> 8;

uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    if ((a & kOne) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data) {
  constexpr size_t kLargest = 1 << 30;  // ISA-L takes an int.
  while (!data.empty()) {
    const absl::string_view piece = data.substr(0, kLargest);
    // ISA-L takes and returns the inverted register and does not write to its argument.
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(piece.data()));
    crc = ~crc32_iscsi(bytes, static_cast<int>(piece.size()), ~crc);
    data.remove_prefix(piece.size());
  }
  return crc;
}

uint32_t CombineCrc32c(uint32_t first, uint32_t second, uint64_t second_bytes) {
  uint32_t factor = kOne;
  for (uint32_t power = kX8; second_bytes != 0; second_bytes >>= 1, power = Multiply(power, power)) {
    if ((second_bytes & 1) != 0) factor = Multiply(factor, power);
  }
  return Multiply(factor, first) ^ second;
}

}  // namespace lockstep
