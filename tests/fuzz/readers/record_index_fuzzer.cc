#include <algorithm>

#include "glog/logging.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"
#include "lockstep/worker/data/formats/open_dataset.h"

namespace lockstep {
namespace {

// The sizes of the trailer's parts (record_index.h): the data's identity, and the numbers before the two checksums.
constexpr size_t kIdentityBytes = 44;
constexpr size_t kNumbersBytes = 28;
constexpr size_t kChecksumBytes = 4;
// The size of an entry.
constexpr size_t kEntryBytes = 16;
constexpr size_t kTrailerBytes = kIdentityBytes + kNumbersBytes + 2 * kChecksumBytes;

config::v1::InputConfig Configuration(uint8_t) {
  config::v1::InputConfig config;
  config.set_batch_size(1);
  auto* const split = config.add_split();
  split->set_name("train");
  split->mutable_libsvm()->add_file("f");
  split->mutable_libsvm()->set_features(3);
  return config;
}

absl::StatusOr<std::unique_ptr<Dataset>> Open(FileSystem* fs) {
  DatasetOptions options;
  options.fs = fs;
  options.index_directory = "index";
  return OpenDataset(Kept<Configuration>(0), "train", /*seed=*/1, options);
}

// Creates the data file as the first file in the file system, so that its identity is always the same.
void PutData(FileSystem* fs) { PutFile(fs, "f", "1 1:1\n0 2:0.5 3:-1\n2 3:7\n"); }

struct IndexFile {
  std::string path;
  std::string contents;
};

// Builds the index of the data.
IndexFile MakeIndex(uint8_t) {
  MemoryFileSystem fs;
  PutData(&fs);
  CHECK(Open(&fs).ok());
  const std::string path = JoinPath("index", fs.ListDirectory("index").value().at(0));
  return {path, ReadFile(&fs, path).value()};
}

void AppendChecksum(std::string* file, size_t begin) {
  AppendLittleEndian<uint32_t>(file, Crc32c(absl::string_view(*file).substr(begin)));
}

// The input is the trailer's numbers, followed by the entries. Puts them into an index with the right identity and
// checksums, so that only its statements about the data can be wrong.
bool Run(absl::string_view input) {
  const auto& [path, made] = Kept<MakeIndex>(0);
  const absl::string_view identity = absl::string_view(made).substr(made.size() - kTrailerBytes, kIdentityBytes);
  std::string numbers(input.substr(0, kNumbersBytes));
  numbers.resize(kNumbersBytes);
  std::string index(input.substr(std::min(kNumbersBytes, input.size())));
  const size_t entries = index.size();
  const uint32_t entries_checksum = Crc32c(index);
  index.append(identity.data(), identity.size()).append(numbers);
  AppendLittleEndian<uint32_t>(&index, entries_checksum);
  AppendChecksum(&index, entries);
  MemoryFileSystem fs;
  PutData(&fs);
  CHECK(fs.CreateDirectory("index").ok());
  PutFile(&fs, path, index);
  const auto dataset = Open(&fs);
  if (!dataset.ok()) {
    CHECK(absl::IsDataLoss(dataset.status())) << dataset.status();
    return false;
  }
  bool right = true;
  for (int64_t i = 0; i < std::min<int64_t>((*dataset)->size(), 8); ++i) {
    Batch batch;
    const absl::Status status = (*dataset)->Read({i}, &batch);
    CHECK(status.ok() || absl::IsDataLoss(status)) << status;
    right = right && status.ok();
  }
  return right && ReadFile(&fs, path).value() == index;
}

std::vector<std::string> Seeds() {
  const std::string& made = Kept<MakeIndex>(0).contents;
  const std::string entries = made.substr(0, made.size() - kTrailerBytes);
  const std::string numbers = made.substr(entries.size() + kIdentityBytes, kNumbersBytes);
  // An index with a row that the file does not have. If the index is trusted, its file is not rewritten.
  std::string damaged = numbers;
  damaged[8] = 1;
  const std::string row(kEntryBytes, '\0');
  const std::string number("\3\0\0\0\0\0\0\0", 8);
  return {numbers + entries, damaged + entries + row + number};
}

const FuzzTarget kTarget({"record_index", 4 << 20, 40, Run, Seeds, 512});

}  // namespace
}  // namespace lockstep
