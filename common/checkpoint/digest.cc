#include "lockstep/common/checkpoint/digest.h"

#include <openssl/evp.h>

#include <cstdint>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

// Hashes length-prefixed fields into one SHA-256.
class FieldHash {
 public:
  FieldHash() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    CHECK(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }

  void Add(absl::string_view field) {
    std::string length;
    AppendLittleEndian<uint64_t>(&length, field.size());
    Update(length);
    Update(field);
  }

  std::string Hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    CHECK_EQ(EVP_DigestFinal_ex(context_.get(), digest, &size), 1);
    return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
  }

 private:
  void Update(absl::string_view data) { CHECK_EQ(EVP_DigestUpdate(context_.get(), data.data(), data.size()), 1); }

  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

}  // namespace

absl::StatusOr<std::string> CheckpointDigest(const TensorReader& reader) {
  FieldHash hash;
  std::string content;
  for (const std::string& name : reader.names()) {
    // These are the state of the run and of the programs that follow it, not of its variables.
    if (name == kSessionStateKey || name == kStreamPositionsKey) continue;
    ASSIGN_OR_RETURN(const TensorReader::Entry entry, reader.Describe(name));
    std::string dims;
    for (const int64_t dim : entry.shape.dims()) AppendLittleEndian<uint64_t>(&dims, dim);
    content.resize(entry.bytes);
    RETURN_IF_ERROR(reader.ReadInto(name, absl::MakeSpan(content)));
    hash.Add(name);
    hash.Add(NameOf(entry.dtype));
    hash.Add(dims);
    hash.Add(content);
  }
  return hash.Hex();
}

}  // namespace lockstep
