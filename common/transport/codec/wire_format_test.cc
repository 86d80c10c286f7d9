#include "lockstep/common/transport/codec/wire_format.h"

#include <cstdint>
#include <string>
#include <vector>

#include "google/protobuf/io/coded_stream.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

std::string Varint(uint64_t value) {
  uint8_t bytes[10];
  const uint8_t* const end = google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, bytes);
  return std::string(reinterpret_cast<const char*>(bytes), static_cast<size_t>(end - bytes));
}

// Calls f with the bytes as a single run, and then split at every choice of two cuts, including cuts that leave empty
// runs.
template <typename F>
void ForEveryCut(const std::string& bytes, F f) {
  for (size_t a = 0; a <= bytes.size(); ++a) {
    for (size_t b = a; b <= bytes.size(); ++b) {
      const absl::string_view all(bytes);
      f({all.substr(0, a), all.substr(a, b - a), all.substr(b)});
    }
  }
}

TEST(WireReaderTest, ReadsVarintsHoweverTheyAreCut) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{127}, uint64_t{128}, uint64_t{300}, uint64_t{1} << 31,
                               uint64_t{1} << 63, ~uint64_t{0}}) {
    ForEveryCut(Varint(value), [value](const std::vector<absl::string_view>& runs) {
      WireReader reader(runs);
      uint64_t read = 1234;
      EXPECT_TRUE(reader.ReadVarint(&read));
      EXPECT_EQ(read, value);
      EXPECT_EQ(reader.left(), 0u);
      EXPECT_FALSE(reader.ReadVarint(&read));
    });
  }
}

TEST(WireReaderTest, RefusesVarintsThatAreCutOrTooLong) {
  for (const std::string& bytes : {std::string(), std::string("\x80"), std::string(9, '\xff'), std::string(10, '\xff'),
                                   std::string(9, '\xff') + "\x02", std::string(11, '\x80') + std::string(1, '\0')}) {
    const std::vector<absl::string_view> runs = {bytes};
    WireReader reader(runs);
    uint64_t value;
    EXPECT_FALSE(reader.ReadVarint(&value));
  }
}

TEST(WireReaderTest, SplitsTags) {
  const std::string good = Varint((uint64_t{536870911} << 3) | 2) + Varint(8);
  const std::vector<absl::string_view> runs = {good};
  WireReader reader(runs);
  uint32_t field, type;
  ASSERT_TRUE(reader.ReadTag(&field, &type));
  EXPECT_EQ(field, 536870911u);
  EXPECT_EQ(type, 2u);
  ASSERT_TRUE(reader.ReadTag(&field, &type));
  EXPECT_EQ(field, 1u);
  EXPECT_EQ(type, 0u);
  for (const std::string& bad : {Varint(2), Varint(uint64_t{1} << 32)}) {
    const std::vector<absl::string_view> bad_runs = {bad};
    WireReader bad_reader(bad_runs);
    EXPECT_FALSE(bad_reader.ReadTag(&field, &type));
  }
}

TEST(WireReaderTest, ReadsStringsAndChunksOverCuts) {
  const std::string bytes = "abcdefgh";
  ForEveryCut(bytes, [](const std::vector<absl::string_view>& runs) {
    WireReader reader(runs);
    std::string text;
    ASSERT_TRUE(reader.ReadString(3, &text));
    EXPECT_EQ(text, "abc");
    FloatChunks chunks;
    ASSERT_TRUE(reader.ReadChunks(4, &chunks));
    EXPECT_EQ(chunks.bytes(), 4u);
    float value = 0, expected = 0;
    chunks.CopyTo(0, 1, &value);
    std::copy_n("defg", 4, reinterpret_cast<char*>(&expected));
    EXPECT_EQ(value, expected);
    EXPECT_EQ(reader.left(), 1u);
    EXPECT_FALSE(reader.ReadString(2, &text));
    EXPECT_TRUE(reader.Skip(1));
    EXPECT_FALSE(reader.Skip(1));
  });
}

TEST(WireReaderTest, LengthsBeyondTheEndAreRefused) {
  const std::string bytes = "1234";
  const std::vector<absl::string_view> runs = {bytes};
  WireReader reader(runs);
  FloatChunks chunks;
  std::string text;
  for (const uint64_t n : {uint64_t{5}, uint64_t{1} << 63, ~uint64_t{0}}) {
    EXPECT_FALSE(reader.Skip(n));
    EXPECT_FALSE(reader.ReadChunks(n, &chunks));
    EXPECT_FALSE(reader.ReadString(n, &text));
  }
  EXPECT_EQ(reader.left(), 4u) << "nothing was taken";
}

TEST(WireReaderTest, SkipsFieldsByTheirType) {
  const std::string bytes = Varint(300) + std::string(8, 'x') + Varint(3) + "abc" + std::string(4, 'y') + "z";
  const std::vector<absl::string_view> runs = {bytes};
  WireReader reader(runs);
  for (const uint32_t type : {0, 1, 2, 5}) EXPECT_TRUE(reader.SkipField(type)) << type;
  EXPECT_EQ(reader.left(), 1u);
  for (const uint32_t type : {3, 4, 6, 7, 1}) EXPECT_FALSE(reader.SkipField(type)) << type;
}

}  // namespace
}  // namespace lockstep
