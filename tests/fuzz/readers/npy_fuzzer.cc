#include "glog/logging.h"
#include "lockstep/common/checkpoint/formats/npy.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"

namespace lockstep {
namespace {

bool Run(absl::string_view input) {
  MemoryFileSystem fs;
  PutFile(&fs, "f.npy", input);
  const auto header = ReadNpyHeader(*fs.NewRandomAccessFile("f.npy").value(), "f.npy");
  if (!header.ok()) {
    CHECK(absl::IsDataLoss(header.status()) || absl::IsUnimplemented(header.status())) << header.status();
    return false;
  }
  CHECK_EQ(header->header_bytes + header->content_bytes(), input.size());
  // A parsed header must be encodable again.
  const auto encoded = EncodeNpyHeader(header->dtype, header->shape);
  CHECK(encoded.ok()) << encoded.status();
  const auto again = ParseNpyHeader(*encoded, "again");
  CHECK(again.ok()) << again.status();
  CHECK(again->dtype == header->dtype && again->shape == header->shape);
  return true;
}

std::vector<std::string> Seeds() {
  const std::string dictionary = "{\"shape\": (2L,), 'fortran_order': True, 'descr': '=u2', }    \n";
  std::string other("\x93NUMPY\x02\0", 8);  // version 2.0
  AppendLittleEndian<uint32_t>(&other, static_cast<uint32_t>(dictionary.size()));
  return {EncodeNpyHeader(v1::DT_FLOAT, {2, 1}).value() + "12345678",
          EncodeNpyHeader(v1::DT_UINT8, {3}).value() + "123", EncodeNpyHeader(v1::DT_INT64, {}).value() + "12345678",
          other + dictionary + "abcd"};
}

const FuzzTarget kTarget({"npy", 1 << 20, 16, Run, Seeds});

}  // namespace
}  // namespace lockstep
