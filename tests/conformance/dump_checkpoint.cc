// Prints a checkpoint for other programs to compare: dump_checkpoint PREFIX
// Prints a line "name dtype shape bytes" for each variable, then the digest.

#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

absl::Status Dump(const std::string& prefix) {
  ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(FileSystem::Real(), prefix));
  RETURN_IF_ERROR(reader->Verify());
  for (const std::string& name : reader->names()) {
    ASSIGN_OR_RETURN(const BundleReader::Entry entry, reader->Describe(name));
    std::cout << name << " " << NameOf(entry.dtype) << " " << entry.shape.ToString() << " " << entry.bytes << "\n";
  }
  ASSIGN_OR_RETURN(const std::string digest, CheckpointDigest(*reader));
  std::cout << digest << "\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: dump_checkpoint PREFIX\n";
    return 2;
  }
  const absl::Status status = lockstep::Dump(argv[1]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
