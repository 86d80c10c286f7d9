#include "lockstep/common/checkpoint/bundle/slice_key.h"

#include <cstdint>

namespace lockstep {
namespace {

// Appends the number of significant bytes of `value`, then these bytes, highest first.
void AppendUnsigned(std::string* key, uint64_t value) {
  std::string bytes;
  for (; value > 0; value >>= 8) bytes.insert(bytes.begin(), static_cast<char>(value & 0xff));
  key->push_back(static_cast<char>(bytes.size()));
  *key += bytes;
}

// Encodes 00 as 00 ff and ff as ff 00, and terminates with 00 01.
void AppendString(std::string* key, absl::string_view text) {
  for (const char c : text) {
    key->push_back(c);
    if (c == '\0') key->push_back('\xff');
    if (c == '\xff') key->push_back('\0');
  }
  *key += std::string("\0\1", 2);
}

// Appends the two's complement of `value`, highest byte first, in the fewest bytes n that hold 7n bits including the
// sign. Inverts the n highest bits: a non-negative value begins with n ones before the sign's 0, a negative one with n
// zeros before the sign's 1.
void AppendSigned(std::string* key, int64_t value) {
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  int bits = 0;
  while (bits < 64 && (magnitude >> bits) != 0) ++bits;
  const int size = bits / 7 + 1;
  // The `size` highest bits, which may extend beyond the first byte, are inverted.
  for (int i = 0; i < size; ++i) {
    const int shift = 8 * (size - 1 - i);
    const uint64_t shifted = shift < 64 ? static_cast<uint64_t>(value >> shift) : (value < 0 ? ~uint64_t{0} : 0);
    auto byte = static_cast<unsigned char>(shifted & 0xff);
    const int ones = size - 8 * i;
    if (ones >= 8) {
      byte ^= 0xff;
    } else if (ones > 0) {
      byte ^= static_cast<unsigned char>(0xff << (8 - ones));
    }
    key->push_back(static_cast<char>(byte));
  }
}

}  // namespace

std::string SliceKey(absl::string_view name, const v1::TensorSliceProto& slice) {
  std::string key;
  AppendUnsigned(&key, 0);
  AppendString(&key, name);
  AppendUnsigned(&key, slice.extent_size());
  for (const v1::TensorSliceProto::Extent& extent : slice.extent()) {
    const bool whole = extent.has_length_case() == v1::TensorSliceProto::Extent::HAS_LENGTH_NOT_SET;
    AppendSigned(&key, whole ? 0 : extent.start());
    AppendSigned(&key, whole ? -1 : extent.length());
  }
  return key;
}

}  // namespace lockstep
