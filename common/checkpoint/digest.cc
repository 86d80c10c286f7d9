#include "lockstep/common/checkpoint/digest.h"

#include "absl/strings/escaping.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {

VariablesDigest::VariablesDigest() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  CHECK(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void VariablesDigest::Begin(absl::string_view name, v1::DataType dtype, absl::Span<const int64_t> dims,
                            uint64_t bytes) {
  std::string shape, length;
  for (const int64_t dim : dims) AppendLittleEndian<uint64_t>(&shape, dim);
  AddField(name);
  AddField(NameOf(dtype));
  AddField(shape);
  AppendLittleEndian<uint64_t>(&length, bytes);
  AddContent(length);
}

void VariablesDigest::AddContent(absl::string_view content) {
  CHECK_EQ(EVP_DigestUpdate(context_.get(), content.data(), content.size()), 1);
}

void VariablesDigest::AddField(absl::string_view field) {
  std::string length;
  AppendLittleEndian<uint64_t>(&length, field.size());
  AddContent(length);
  AddContent(field);
}

std::string VariablesDigest::Hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  CHECK_EQ(EVP_DigestFinal_ex(context_.get(), digest, &size), 1);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

absl::StatusOr<std::string> CheckpointDigest(const TensorReader& reader) {
  VariablesDigest digest;
  std::string content;
  for (const std::string& name : reader.names()) {
    // These keys hold the state of the run and of the program that drives it, not variables.
    if (name == kSessionStateKey || name == kStreamPositionsKey) continue;
    ASSIGN_OR_RETURN(const TensorReader::Entry entry, reader.Describe(name));
    content.resize(entry.bytes);
    RETURN_IF_ERROR(reader.ReadInto(name, absl::MakeSpan(content)));
    digest.Begin(name, entry.dtype, entry.shape.dims(), content.size());
    digest.AddContent(content);
  }
  return digest.Hex();
}

}  // namespace lockstep
