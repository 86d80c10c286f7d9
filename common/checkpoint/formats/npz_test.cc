#include "lockstep/common/checkpoint/formats/npz.h"

#include <zlib.h>

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/formats/npz_writer.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Deflated(const std::string& data) {
  std::string out(data.size() + 100, '\0');
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(&out[0]);
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// A ZIP archive with one member, as another program would write it. Tests can change each of its numbers to a wrong
// one.
struct Archive {
  std::string name = "w.npy", stored;
  uint32_t crc = 0, stored_bytes = 0, bytes = 0, offset = 0;
  uint16_t method = 0, flags = 0, entries = 1;
  std::string extra, comment;

  explicit Archive(const std::string& content, bool deflate = false) : stored(deflate ? Deflated(content) : content) {
    crc = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
    stored_bytes = static_cast<uint32_t>(stored.size());
    bytes = static_cast<uint32_t>(content.size());
    method = deflate ? 8 : 0;
  }
  std::string File() const {
    std::string file, directory;
    const auto add16 = [](std::string* out, size_t value) {
      AppendLittleEndian<uint16_t>(out, static_cast<uint16_t>(value));
    };
    const auto add32 = [](std::string* out, size_t value) {
      AppendLittleEndian<uint32_t>(out, static_cast<uint32_t>(value));
    };
    const auto common = [&](std::string* out) {
      for (const size_t value : {size_t{20}, size_t{flags}, size_t{method}, size_t{0}, size_t{0}}) add16(out, value);
      for (const uint32_t value : {crc, stored_bytes, bytes}) add32(out, value);
      add16(out, name.size());
      add16(out, extra.size());
    };
    add32(&file, 0x04034b50);
    common(&file);
    file += name + extra + stored;
    add32(&directory, 0x02014b50);
    add16(&directory, 20);
    common(&directory);
    for (int i = 0; i < 3; ++i) add16(&directory, 0);
    add32(&directory, 0);
    add32(&directory, offset);
    directory += name + extra;
    const size_t place = file.size();
    for (int i = 0; i < entries; ++i) file += directory;
    const size_t size = file.size() - place;
    add32(&file, 0x06054b50);
    for (const size_t value : {size_t{0}, size_t{0}, size_t{entries}, size_t{entries}}) add16(&file, value);
    add32(&file, size);
    add32(&file, place);
    add16(&file, comment.size());
    return file + comment;
  }
};

std::string Array() { return EncodeNpyHeader(v1::DT_FLOAT, {2}).value() + "8 bytes!"; }

class NpzTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<NpzReader>> Open(const std::string& file) {
    EXPECT_TRUE(WriteFileAtomically(&fs_, "f.npz", file).ok());
    return NpzReader::Open(&fs_, "f.npz");
  }
  absl::Status ReadAll(const std::string& file) {
    const auto reader = Open(file);
    return reader.ok() ? (*reader)->Verify() : reader.status();
  }

  MemoryFileSystem fs_;
};

TEST_F(NpzTest, ReadsTheWritersOutput) {
  auto file = fs_.NewWritableFile("w.npz").value();
  NpzWriter writer(file.get());
  ASSERT_TRUE(writer.Add("hidden/kernel", v1::DT_FLOAT, {2, 1}, "12345678").ok());
  ASSERT_TRUE(writer.Add("step", v1::DT_INT64, {}, "abcdefgh").ok());
  ASSERT_TRUE(writer.Add("none", v1::DT_UINT8, {0, 3}, "").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(writer.Add("step", v1::DT_INT64, {}, "abcdefgh")));
  EXPECT_TRUE(absl::IsInvalidArgument(writer.Add("b", v1::DT_BFLOAT16, {1}, "ab")));
  ASSERT_TRUE(writer.Finish().ok());
  ASSERT_TRUE(file->Close().ok());
  const auto reader = NpzReader::Open(&fs_, "w.npz");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->names(), ElementsAre("hidden/kernel", "none", "step"));
  EXPECT_EQ((*reader)->Describe("hidden/kernel")->shape, Shape({2, 1}));
  EXPECT_EQ((*reader)->Read("hidden/kernel")->bytes(), "12345678");
  EXPECT_EQ((*reader)->Read("step")->bytes(), "abcdefgh");
  EXPECT_EQ((*reader)->Describe("none")->bytes, 0u);
  EXPECT_TRUE((*reader)->Verify().ok());
  EXPECT_EQ((*reader)->Describe("x").status().message(), "w.npz has no array x");
  EXPECT_THAT(*ReadFile(&fs_, "w.npz"), HasSubstr("abcdefgh")) << "members are stored as they are";
}

TEST_F(NpzTest, ReadsCompressedMembers) {
  const std::string content(3 << 20, 'x');  // takes several pieces
  const auto reader =
      Open(Archive(EncodeNpyHeader(v1::DT_UINT8, {3 << 20}).value() + content, /*deflate=*/true).File());
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->Read("w")->bytes(), content);
}

TEST_F(NpzTest, ReadsZip64AndAComment) {
  Archive archive(Array());
  archive.comment = "made by hand";
  AppendLittleEndian<uint16_t>(&archive.extra, 1);
  AppendLittleEndian<uint16_t>(&archive.extra, 16);
  for (int i = 0; i < 2; ++i) AppendLittleEndian<uint64_t>(&archive.extra, archive.bytes);
  archive.bytes = archive.stored_bytes = 0xffffffff;
  EXPECT_EQ(Open(archive.File()).value()->Read("w")->bytes(), "8 bytes!");
  archive.extra.resize(12);
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(archive.File())));
}

TEST_F(NpzTest, OnlyReadingABadArrayFails) {
  std::string array = Array();
  array.replace(array.find("<f4"), 3, ">f4");
  const auto reader = Open(Archive(array).File());
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE((*reader)->Contains("w"));
  EXPECT_TRUE(absl::IsUnimplemented((*reader)->Read("w").status()));
  EXPECT_EQ((*reader)->Describe("w").status().message(), "f.npz: w is big-endian (>f4); save it with .astype(\"<f4\")");
}

TEST_F(NpzTest, DamageIsDataLoss) {
  for (const bool deflate : {false, true}) {
    const std::string good = Archive(Array(), deflate).File();
    ASSERT_TRUE(ReadAll(good).ok());
    for (size_t size = 0; size < good.size(); ++size) {
      EXPECT_TRUE(absl::IsDataLoss(ReadAll(good.substr(0, size)))) << size;
    }
    std::string flipped = good;
    const size_t content = 30 + 5 + (deflate ? Deflated(Array()).size() : Array().size()) - 3;
    flipped[content] = static_cast<char>(flipped[content] ^ 1);
    EXPECT_TRUE(absl::IsDataLoss(ReadAll(flipped)));
  }
}

TEST_F(NpzTest, DoesNotTrustTheArchivesOwnSizes) {
  const auto error = [this](const std::function<void(Archive*)>& change, bool deflate = false) {
    Archive archive(Array(), deflate);
    change(&archive);
    return ReadAll(archive.File());
  };
  EXPECT_TRUE(absl::IsDataLoss(error([](Archive* a) { a->offset = 1 << 20; })));
  EXPECT_TRUE(absl::IsDataLoss(error([](Archive* a) { a->offset = 1; })));
  EXPECT_TRUE(absl::IsDataLoss(error([](Archive* a) { a->stored_bytes = a->bytes = 1 << 30; })));
  EXPECT_TRUE(absl::IsDataLoss(error([](Archive* a) { a->bytes = 1 << 30; }, true)));
  EXPECT_TRUE(absl::IsDataLoss(error([](Archive* a) { a->bytes -= 1; }, true)));
  EXPECT_TRUE(absl::IsDataLoss(error([](Archive* a) { a->crc ^= 1; })));
  EXPECT_TRUE(absl::IsDataLoss(error([](Archive* a) { a->entries = 2; })));
  EXPECT_TRUE(absl::IsDataLoss(error([](Archive* a) { a->name = "w.txt"; })));
  EXPECT_TRUE(absl::IsUnimplemented(error([](Archive* a) { a->flags = 1; })));
  EXPECT_EQ(error([](Archive* a) { a->method = 12; }).message(),
            "f.npz: the member w.npy is compressed with method 12, known are 0 (stored) and 8 (deflated)");
  EXPECT_EQ(ReadAll(Archive(EncodeNpyHeader(v1::DT_FLOAT, {3}).value() + "8 bytes!").File()).message(),
            "f.npz: w is float32[3], 12 bytes; 8 bytes follow");
}

}  // namespace
}  // namespace lockstep
