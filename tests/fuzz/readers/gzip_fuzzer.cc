#include "glog/logging.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"
#include "lockstep/worker/data/records/gzip_reader.h"

namespace lockstep {
namespace {

// A small file may inflate to a large one, so the target reads at most this many bytes, which fill deflate's window
// twice, in at most this many pieces.
constexpr uint64_t kMostBytes = 64 << 10;
constexpr int kMostPieces = 256;

// The input is a byte that determines the number of bytes per read, followed by the file.
bool Run(absl::string_view input) {
  FuzzInput in(input);
  const uint64_t piece = uint64_t{1} << in.TakeByte() % 18;
  MemoryFileSystem fs;
  PutFile(&fs, "f", in.rest());
  const auto file = fs.NewRandomAccessFile("f");
  CHECK(file.ok());
  CHECK(IsGzipped(**file).ok());
  GzipReader reader(file->get(), "f");
  uint64_t done = 0;
  for (int pieces = 0; pieces < kMostPieces && done < kMostBytes; ++pieces) {
    const auto bytes = reader.Read(piece);
    if (!bytes.ok()) return false;
    CHECK_LE(bytes->size(), piece);
    done += bytes->size();
    if (bytes->size() == piece) continue;
    const auto after = reader.Read(piece);
    CHECK(after.ok() && after->empty()) << "bytes after the end";
    break;
  }
  return true;
}

std::vector<std::string> Seeds() {
  std::string text;
  for (int i = 0; i < 40; ++i) text += std::to_string(i * i) + " times. ";
  return {"\x02" + Gzipped(text, 9), "\x0c" + Gzipped(text, 0),
          "\x05" + Gzipped("a", 9) + Gzipped("", 1) + Gzipped("b", 6), "\x10" + Gzipped(std::string(1 << 20, 'x'), 9)};
}

const FuzzTarget kTarget({"gzip", 2 << 20, 8, Run, Seeds, 2 << 10});

}  // namespace
}  // namespace lockstep
