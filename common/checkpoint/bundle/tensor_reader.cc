#include "lockstep/common/checkpoint/bundle/tensor_reader.h"

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {

absl::StatusOr<Tensor> TensorReader::Read(absl::string_view name) const {
  ASSIGN_OR_RETURN(const Entry entry, Describe(name));
  if (SizeOf(entry.dtype) == 0) {
    return absl::UnimplementedError(absl::StrCat("checkpoint ", prefix(), ": variable ", name, " has type ",
                                                 NameOf(entry.dtype), " (", entry.dtype, ")"));
  }
  Tensor tensor(entry.dtype, entry.shape);
  RETURN_IF_ERROR(ReadInto(name, absl::MakeSpan(tensor.data(), entry.bytes)));
  return tensor;
}

absl::StatusOr<TensorReader::Listing> TensorReader::List(absl::string_view name) const {
  ASSIGN_OR_RETURN(const Entry entry, Describe(name));
  return Listing{std::string(NameOf(entry.dtype)), entry.shape, entry.bytes};
}

absl::Status TensorReader::Verify() const {
  for (const std::string& name : names()) {
    const absl::Status status = Read(name).status();
    if (!status.ok() && !absl::IsUnimplemented(status)) return status;
  }
  return absl::OkStatus();
}

}  // namespace lockstep
