#include "lockstep/worker/data/images/image_checksums.h"

#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

class ImageChecksumsTest : public testing::Test {
 protected:
  void Put(const std::string& name, const std::string& text) {
    ASSERT_EQ(fs_.CreateDirectory("/p"), absl::OkStatus());
    ASSERT_EQ(WriteFileAtomically(&fs_, "/p/" + name, text), absl::OkStatus());
  }
  std::unique_ptr<RandomAccessFile> Open(const std::string& name) {
    return fs_.NewRandomAccessFile("/p/" + name).value();
  }
  ImageChecksums Load(uint64_t fingerprint = 7) { return ImageChecksums(&fs_, "/index", "/p", fingerprint); }
  std::string IndexPath() { return "/index/" + fs_.ListDirectory("/index").value().at(0); }

  MemoryFileSystem fs_;
};

TEST_F(ImageChecksumsTest, KeepsTheChecksumsOfUnchangedFiles) {
  Put("a", "1");
  Put("b", "2");
  ImageChecksums first = Load();
  EXPECT_FALSE(first.Find("a", *Open("a")).has_value());
  first.Set("a", *Open("a"), 11);
  first.Set("b", *Open("b"), 22);
  ASSERT_EQ(first.Keep(), absl::OkStatus());
  Put("b", "3");
  ImageChecksums second = Load();
  EXPECT_EQ(second.Find("a", *Open("a")), 11);
  EXPECT_FALSE(second.Find("b", *Open("b")).has_value());
  EXPECT_FALSE(Load(/*fingerprint=*/8).Find("a", *Open("a")).has_value());
}

TEST_F(ImageChecksumsTest, ForgetsFilesThatAreGone) {
  Put("a", "1");
  ImageChecksums first = Load();
  first.Set("a", *Open("a"), 11);
  ASSERT_EQ(first.Keep(), absl::OkStatus());
  ASSERT_EQ(Load().Keep(), absl::OkStatus());
  EXPECT_FALSE(Load().Find("a", *Open("a")).has_value());
}

TEST_F(ImageChecksumsTest, ADamagedFileCountsAsNone) {
  Put("a", "1");
  ImageChecksums first = Load();
  first.Set("a", *Open("a"), 11);
  ASSERT_EQ(first.Keep(), absl::OkStatus());
  const std::string path = IndexPath();
  const std::string whole = ReadFile(&fs_, path).value();
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 1;
    ASSERT_EQ(WriteFileAtomically(&fs_, path, damaged), absl::OkStatus());
    EXPECT_FALSE(Load().Find("a", *Open("a")).has_value()) << i;
    ASSERT_EQ(WriteFileAtomically(&fs_, path, whole.substr(0, i)), absl::OkStatus());
    EXPECT_FALSE(Load().Find("a", *Open("a")).has_value()) << i;
  }
}

}  // namespace
}  // namespace lockstep
