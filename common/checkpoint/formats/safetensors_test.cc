#include "lockstep/common/checkpoint/formats/safetensors.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string File(const std::string& json, const std::string& content) {
  std::string file;
  AppendLittleEndian<uint64_t>(&file, json.size());
  return file + json + content;
}

class SafetensorsTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<SafetensorsReader>> Open(const std::string& file) {
    EXPECT_TRUE(WriteFileAtomically(&fs_, "f.safetensors", file).ok());
    return SafetensorsReader::Open(&fs_, "f.safetensors");
  }
  std::string ErrorOf(const std::string& json, const std::string& content = "") {
    const absl::Status status = Open(File(json, content)).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << json << ": " << status;
    return std::string(status.message());
  }

  MemoryFileSystem fs_;
};

TEST_F(SafetensorsTest, ReadsTheTensorsOfItsHeader) {
  const auto reader = Open(File(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"I64","shape":[],"data_offsets":[8,16]},)"
      R"( "a/b" : {"shape":[2,1],"dtype":"F32","data_offsets":[0,8]} , "e":{"dtype":"BF16","shape":[0],"data_offsets":[16,16]}}  )",
      "12345678abcdefgh"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->names(), ElementsAre("a/b", "b", "e"));
  EXPECT_EQ((*reader)->Describe("a/b")->dtype, v1::DT_FLOAT);
  EXPECT_EQ((*reader)->Describe("a/b")->shape, Shape({2, 1}));
  EXPECT_EQ((*reader)->Read("a/b")->bytes(), "12345678");
  EXPECT_EQ((*reader)->Read("b")->bytes(), "abcdefgh");
  EXPECT_EQ((*reader)->Describe("e")->bytes, 0u);
  EXPECT_EQ((*reader)->metadata().at("format"), "pt");
  EXPECT_TRUE((*reader)->Verify().ok());
  EXPECT_EQ((*reader)->Describe("c").status().message(), "f.safetensors has no tensor c");
}

TEST_F(SafetensorsTest, RoundTrips) {
  const auto header = EncodeSafetensorsHeader(
      {{"l\xc3\xa4ngs\"\n", v1::DT_DOUBLE, {1}}, {"h", v1::DT_HALF, {3}}, {"u", v1::DT_UINT8, {1, 2}}},
      {{"step", "7"}});
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->size() % 8, 0u);
  const auto reader = Open(*header + "12345678" + "abcdef" + "xy");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->Read("l\xc3\xa4ngs\"\n")->bytes(), "12345678");
  EXPECT_EQ((*reader)->Read("h")->bytes(), "abcdef");
  EXPECT_EQ((*reader)->Read("u")->bytes(), "xy");
  EXPECT_EQ((*reader)->metadata().at("step"), "7");
}

TEST_F(SafetensorsTest, NamesUnwritableTensors) {
  const auto error = [](const std::string& name, v1::DataType dtype) {
    const absl::Status status = EncodeSafetensorsHeader({{"a", v1::DT_FLOAT, {}}, {name, dtype, {}}}, {}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  EXPECT_EQ(error("a", v1::DT_FLOAT), "safetensors cannot hold a: the name is taken");
  EXPECT_EQ(error("__metadata__", v1::DT_FLOAT), "safetensors cannot hold __metadata__: the name is taken");
  EXPECT_EQ(error("\xff", v1::DT_FLOAT), "safetensors cannot hold \\xff: the name is not UTF-8");
  EXPECT_EQ(error("s", v1::DT_STRING), "safetensors cannot hold s: there is no type string");
}

TEST_F(SafetensorsTest, OnlyReadingAnUnsupportedTypeFails) {
  const auto reader = Open(File(R"({"q":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}})", "ab"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE((*reader)->Contains("q"));
  EXPECT_EQ((*reader)->Read("q").status().message(),
            "f.safetensors: q has elements of the type F8_E4M3, which is not read; convert it to F32, F16 or BF16");
}

TEST_F(SafetensorsTest, DamageIsDataLoss) {
  const std::string good = File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
  ASSERT_TRUE(Open(good).ok());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(Open(good.substr(0, size)).status())) << size;
  }
  EXPECT_TRUE(absl::IsDataLoss(Open(good + "9").status()));
  EXPECT_THAT(std::string(Open("PK\x03\x04 a zip archive").status().message()),
              HasSubstr("and at most 100000000 are read"));
  const char kTensor[] = R"("dtype":"F32","shape":[2],"data_offsets":)";
  EXPECT_THAT(ErrorOf("{\"a\":{" + std::string(kTensor) + "[0,16]}}", "12345678"), HasSubstr("in bytes 0 to 16 of 8"));
  EXPECT_THAT(ErrorOf("{\"a\":{" + std::string(kTensor) + "[8,0]}}", "12345678"), HasSubstr("in bytes 8 to 0 of 8"));
  EXPECT_THAT(ErrorOf("{\"a\":{" + std::string(kTensor) + "[0,4]}}", "1234"),
              HasSubstr("tensor a: 4 bytes for type F32 and shape [2]"));
  EXPECT_THAT(ErrorOf("{\"a\":{" + std::string(kTensor) + "[1,9]}}", "123456789"),
              HasSubstr("begins at byte 63, the one before ends at 62"));
  EXPECT_THAT(ErrorOf(absl::StrCat("{\"a\":{", kTensor, "[0,8]},\"b\":{", kTensor, "[0,8]}}"), "12345678"),
              HasSubstr("the one before ends at"));
  EXPECT_THAT(ErrorOf(absl::StrCat("{\"a\":{", kTensor, "[0,8]},\"a\":{", kTensor, "[8,16]}}"), "1234567812345678"),
              HasSubstr("tensor a: it is named twice"));
  for (const char* json :
       {"", " {}", "[]", "{", "{\"a\"}", "{\"a\":1}", "{\"a\":{}}", "{} x", "{,}",
        R"({"a":{"dtype":"F32","shape":[2]}})", R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0]}})",
        R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"x":1}})",
        R"({"a":{"dtype":"F32","shape":[0],"shape":[0],"data_offsets":[0,0]}})", R"({"__metadata__":{"a":1}})",
        R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})"}) {
    EXPECT_NE(ErrorOf(json), "") << json;
  }
}

}  // namespace
}  // namespace lockstep
