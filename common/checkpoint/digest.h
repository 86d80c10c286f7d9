#ifndef LOCKSTEP_COMMON_CHECKPOINT_DIGEST_H_
#define LOCKSTEP_COMMON_CHECKPOINT_DIGEST_H_

#include <openssl/evp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Computes the SHA-256 of variables. Two sets have the same digest if and only if they hold the same variables bit for
// bit. Not thread-safe.
//
// The hash covers four fields of each variable. Each field is preceded by its length in bytes, as 8 bytes
// little-endian:
//   the name; the type as NameOf gives it ("float32"); each dimension as 8 bytes little-endian; the elements,
//   row-major, little-endian (strings: as the data file encodes them).
class VariablesDigest {
 public:
  VariablesDigest();

  // Begins the next variable, in the byte order of the names. AddContent must follow, with `bytes` bytes in total.
  void Begin(absl::string_view name, v1::DataType dtype, absl::Span<const int64_t> dims, uint64_t bytes);
  void AddContent(absl::string_view content);
  // Returns the digest in lower-case hex. Must be called last, and once.
  std::string Hex();

 private:
  void AddField(absl::string_view field);

  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

// Returns the digest of a checkpoint's content: of its variables, including slots and global_step, regardless of file
// names, data files and partitions. Also verifies every checksum. Returns errors of TensorReader::ReadInto.
absl::StatusOr<std::string> CheckpointDigest(const TensorReader& reader);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_DIGEST_H_
