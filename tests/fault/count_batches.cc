// Prints a checkpoint of a run that counts its batches: count_batches PREFIX VARIABLE
// The output is one line: the global step, the variable's first element, and the sum of the positions of all input
// streams.

#include <cstdint>
#include <iostream>
#include <numeric>
#include <string>

#include "absl/status/status.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep {
namespace {

absl::Status Count(const std::string& prefix, const std::string& variable) {
  ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(FileSystem::Real(), prefix));
  ASSIGN_OR_RETURN(const Tensor step, reader->Read(kGlobalStepKey));
  ASSIGN_OR_RETURN(const Tensor value, reader->Read(variable));
  int64_t batches = 0;
  if (reader->Contains(kStreamPositionsKey)) {
    ASSIGN_OR_RETURN(const Tensor positions, reader->Read(kStreamPositionsKey));
    const auto flat = positions.flat<int64_t>();
    batches = std::accumulate(flat.begin(), flat.end(), int64_t{0});
  }
  std::cout << step.flat<int64_t>()[0] << " " << static_cast<int64_t>(value.flat<float>()[0]) << " " << batches << "\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: count_batches PREFIX VARIABLE\n";
    return 2;
  }
  const absl::Status status = lockstep::Count(argv[1], argv[2]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
