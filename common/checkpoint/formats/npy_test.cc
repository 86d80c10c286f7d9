#include "lockstep/common/checkpoint/formats/npy.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string Npy(const std::string& dictionary, int version = 1) {
  std::string file = "\x93NUMPY";
  file += {static_cast<char>(version), '\0'};
  if (version == 1) {
    AppendLittleEndian<uint16_t>(&file, static_cast<uint16_t>(dictionary.size()));
  } else {
    AppendLittleEndian<uint32_t>(&file, static_cast<uint32_t>(dictionary.size()));
  }
  return file + dictionary;
}

absl::Status ErrorOf(const std::string& start) { return ParseNpyHeader(start, "f").status(); }

// The bytes that numpy 1.26 writes for numpy.zeros((2, 3), numpy.float32).
TEST(NpyTest, WritesTheBytesThatNumPyWrites) {
  const auto header = EncodeNpyHeader(v1::DT_FLOAT, {2, 3});
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(*header, Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" + std::string(58, ' ') + "\n"));
  EXPECT_EQ(header->size(), 128u);
  EXPECT_THAT(*EncodeNpyHeader(v1::DT_UINT8, {4}),
              HasSubstr("'descr': '|u1', 'fortran_order': False, 'shape': (4,), }"));
  EXPECT_THAT(*EncodeNpyHeader(v1::DT_INT64, {}), HasSubstr("'shape': (), }"));
  EXPECT_EQ(EncodeNpyHeader(v1::DT_BFLOAT16, {1}).status().message(), "NumPy has no type bfloat16");
}

TEST(NpyTest, RoundTrips) {
  for (const v1::DataType dtype :
       {v1::DT_FLOAT, v1::DT_DOUBLE, v1::DT_INT32, v1::DT_UINT8, v1::DT_INT16, v1::DT_INT8, v1::DT_INT64, v1::DT_BOOL,
        v1::DT_HALF, v1::DT_UINT16, v1::DT_UINT32, v1::DT_UINT64}) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{2, 1, 3}}) {
      const std::string encoded = EncodeNpyHeader(dtype, shape).value();
      const auto header = ParseNpyHeader(encoded + "more", "f");
      ASSERT_TRUE(header.ok()) << header.status();
      EXPECT_EQ(header->dtype, dtype);
      EXPECT_EQ(header->shape, shape);
      EXPECT_EQ(header->header_bytes, encoded.size());
    }
  }
}

TEST(NpyTest, ReadsOtherSpellings) {
  for (const std::string& start : {Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 2),
                                   Npy("{ \"shape\" : ( 3 , ) , \"descr\":\"<f4\",\"fortran_order\":True}\n", 3),
                                   Npy("{'descr': '=f4', 'fortran_order': False, 'shape': (3L,)}")}) {
    const auto header = ParseNpyHeader(start, "f");
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->dtype, v1::DT_FLOAT);
    EXPECT_EQ(header->shape, Shape({3}));
  }
}

TEST(NpyTest, NamesUnsupportedArrays) {
  const auto error = [](const std::string& descr, const char* fortran_order = "False") {
    const absl::Status status =
        ErrorOf(Npy(absl::StrCat("{'descr': ", descr, ", 'fortran_order': ", fortran_order, ", 'shape': (2, 3), }")));
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(error("'<f4'", "True"), "f is in Fortran order; save numpy.ascontiguousarray of the array");
  EXPECT_EQ(error("'>f4'"), "f is big-endian (>f4); save it with .astype(\"<f4\")");
  EXPECT_EQ(error("'|O'"),
            "f has elements of the type |O, which is not read; numbers and booleans are; convert Python objects with "
            ".astype('float32') or .astype('int64')");
  EXPECT_THAT(error("'<U5'"), HasSubstr("of the type <U5, which is not read; numbers and booleans are; integers are "));
  EXPECT_THAT(error("'<c8'"), EndsWith("of the type <c8, which is not read; numbers and booleans are"));
  for (const char* type : {"'<U3'", "'|S5'", "'<c8'", "'<M8[ns]'", "[('a', '<f4'), ('b', '<i4')]", "'|V2'", "'<f16'"}) {
    EXPECT_THAT(error(type), HasSubstr("f has elements of the type "));
  }
}

TEST(NpyTest, DamageIsNoCrash) {
  const std::string good = Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(ErrorOf(good.substr(0, size)))) << size;
  }
  EXPECT_EQ(ErrorOf("PK").message(), "f: no .npy array: it does not begin with \\x93NUMPY");
  EXPECT_THAT(std::string(ErrorOf("PK\x03\x04").message()), testing::HasSubstr("\\x93NUMPY; it is a ZIP archive"));
  EXPECT_THAT(std::string(ErrorOf(Npy("", 9)).message()), HasSubstr("version 9.0, known are 1.0 to 3.0"));
  EXPECT_THAT(std::string(ErrorOf(Npy(std::string(70000, ' '), 2)).message()),
              HasSubstr("a header of 70000 bytes, at most 10000 are read"));
  for (const char* dictionary :
       {"", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2147483648, 2147483648)}",
        "{'descr': '<f4', 'fortran_order': False, 'other': 1, 'shape': (1,)}"}) {
    EXPECT_TRUE(absl::IsDataLoss(ErrorOf(Npy(dictionary)))) << dictionary;
  }
}

TEST(NpyTest, AFilesLengthMustMatchItsHeader) {
  MemoryFileSystem fs;
  const std::string header = EncodeNpyHeader(v1::DT_FLOAT, {2}).value();
  ASSERT_TRUE(WriteFileAtomically(&fs, "a.npy", header + "12345678").ok());
  EXPECT_EQ(ReadNpyHeader(*fs.NewRandomAccessFile("a.npy").value(), "a.npy")->content_bytes(), 8u);
  ASSERT_TRUE(WriteFileAtomically(&fs, "a.npy", header + "1234567").ok());
  const absl::Status status = ReadNpyHeader(*fs.NewRandomAccessFile("a.npy").value(), "a.npy").status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(status.message(), "a.npy: an array of float32[2], 8 bytes, expected; 7 bytes follow");
}

}  // namespace
}  // namespace lockstep
