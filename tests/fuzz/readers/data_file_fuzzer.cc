#include <zstd.h>

#include "glog/logging.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"
#include "lockstep/worker/data/records/data_file.h"

namespace lockstep {
namespace {

// The maximum size of a file to decode, because a small file may expand to much more.
constexpr uint64_t kMaxBytes = 64 << 10;

// The input is a byte that says whether the file is text, followed by the file.
bool Run(absl::string_view input) {
  FuzzInput in(input);
  const bool is_text = (in.TakeByte() & 1) != 0;
  MemoryFileSystem fs;
  PutFile(&fs, "f", in.rest());
  const auto file = OpenDataFile(&fs, "f", is_text ? DataFileKind::kText : DataFileKind::kTfRecord, kMaxBytes);
  if (!file.ok()) {
    CHECK(absl::IsDataLoss(file.status())) << file.status();
    return false;
  }
  std::string contents((*file)->size(), '\0');
  CHECK((*file)->Read(0, contents.size(), &contents[0]).ok());
  FromUtf8OrLatin1(contents);
  return true;
}

std::string Zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(&out[0], out.size(), text.data(), text.size(), /*compressionLevel=*/3));
  return out;
}

std::vector<std::string> Seeds() {
  const std::string text = "a,b\r\n1,2\r\n";
  return {"\x01" + text,
          "\x01" + Zstd(text) + Zstd(""),
          "\x01" + Gzipped(text, 9),
          std::string("\x01\xFF\xFE"
                      "1\0,\0"
                      "2\0\n\0",
                      11),
          std::string("\x01\xFE\xFF"
                      "\0a\0\n",
                      7),
          "\x01"
          "a,b\r1,2\r",
          std::string(1, '\0') + WithRecordChecksums(std::string("\2\0\0\0\0\0\0\0"
                                                                 "....ab....",
                                                                 18))};
}

// A zstd decoder has a window of up to 8 MiB, and buffers of the same size.
const FuzzTarget kTarget({"data_file", 24 << 20, 12, Run, Seeds, 2 << 10});

}  // namespace
}  // namespace lockstep
