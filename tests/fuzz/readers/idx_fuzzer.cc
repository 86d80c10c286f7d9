#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"

namespace lockstep {
namespace {

config::v1::InputConfig Configuration(uint8_t) {
  config::v1::InputConfig config;
  config.set_batch_size(1);
  auto* const split = config.add_split();
  split->set_name("train");
  split->mutable_idx()->set_labels("labels");
  split->mutable_idx()->set_images("images");
  return config;
}

// The input is the labels, preceded by their length, and then the images.
bool Run(absl::string_view input) {
  FuzzInput in(input);
  MemoryFileSystem fs;
  PutFile(&fs, "labels", in.TakeSized());
  PutFile(&fs, "images", in.rest());
  return ReadWholeDataset(&fs, Kept<Configuration>(0));
}

std::string Header(std::initializer_list<int> dims) {
  std::string header = {0, 0, 8, static_cast<char>(dims.size())};
  for (const int dim : dims) header.append({0, 0, static_cast<char>(dim >> 8), static_cast<char>(dim)});
  return header;
}

std::vector<std::string> Seeds() {
  const std::string labels = Header({3}) + std::string("\0\1\2", 3);
  const std::string images = Header({3, 2, 2}) + std::string(12, 'x');
  return {Sized(labels) + images, Sized(labels) + Header({3, 1, 2, 3}) + std::string(18, '\xff'),
          Sized(Gzipped(labels, 9)) + Gzipped(images, 9)};
}

// Deflate compresses by a factor of at most 1032.
const FuzzTarget kTarget({"idx", 6 << 20, 8192, Run, Seeds});

}  // namespace
}  // namespace lockstep
