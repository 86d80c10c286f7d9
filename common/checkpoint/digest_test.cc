#include "lockstep/common/checkpoint/digest.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

struct Variable {
  std::string name;
  v1::DataType dtype;
  Shape shape;
  std::string content;
};

std::string DigestOf(const std::vector<Variable>& variables) {
  MemoryFileSystem fs;
  auto writer = BundleWriter::Create(&fs, "ckpt").value();
  for (const Variable& v : variables) EXPECT_TRUE(writer->Add(v.name, v.dtype, v.shape, v.content).ok());
  EXPECT_TRUE(writer->Finish().ok());
  return CheckpointDigest(*BundleReader::Open(&fs, "ckpt").value()).value();
}

// printf '\x1\0\0\0\0\0\0\0a\5\0\0\0\0\0\0\0uint8\x8\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0xy' | sha256sum
TEST(CheckpointDigestTest, HashesTheDocumentedEncoding) {
  EXPECT_EQ(DigestOf({{"a", v1::DT_UINT8, {2}, "xy"}}),
            "9572340580bb441a4f5b0c2b1d3aa3b72defc1be32c55450321fb5bb1fa138eb");
  EXPECT_EQ(DigestOf({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(CheckpointDigestTest, DoesNotDependOnTheOrderOfWriting) {
  const Variable a = {"a", v1::DT_UINT8, {2}, "xy"};
  const Variable b = {"b", v1::DT_UINT8, {1}, "z"};
  EXPECT_EQ(DigestOf({a, b}), DigestOf({b, a}));
}

TEST(CheckpointDigestTest, DependsOnEveryFieldAndOnTheirBorders) {
  const std::vector<std::vector<Variable>> checkpoints = {
      {{"a", v1::DT_UINT8, {2}, "xy"}},
      {{"b", v1::DT_UINT8, {2}, "xy"}},
      {{"a", v1::DT_INT8, {2}, "xy"}},
      {{"a", v1::DT_UINT8, {1, 2}, "xy"}},
      {{"a", v1::DT_UINT8, {2, 1}, "xy"}},
      {{"a", v1::DT_UINT8, {2}, "xz"}},
      {{"a", v1::DT_UINT8, {1}, "x"}, {"b", v1::DT_UINT8, {1}, "y"}},
      {{"a", v1::DT_UINT8, {0}, ""}},
      {{"a", v1::DT_UINT8, {0, 5}, ""}},
      {},
  };
  for (size_t i = 0; i < checkpoints.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(DigestOf(checkpoints[i]), DigestOf(checkpoints[j])) << i << " " << j;
  }
}

TEST(CheckpointDigestTest, ReportsDamage) {
  MemoryFileSystem fs;
  auto writer = BundleWriter::Create(&fs, "ckpt").value();
  ASSERT_TRUE(writer->Add("a", v1::DT_UINT8, {2}, "xy").ok());
  ASSERT_TRUE(writer->Finish().ok());
  fs.FlipBits("ckpt.data-00000-of-00001", 1, 1);
  EXPECT_EQ(CheckpointDigest(*BundleReader::Open(&fs, "ckpt").value()).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace lockstep
