#include "glog/logging.h"
#include "lockstep/common/checkpoint/formats/safetensors.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"

namespace lockstep {
namespace {

// The input is the header with a two-byte length, followed by the tensors' bytes.
bool Run(absl::string_view input) {
  FuzzInput in(input);
  const absl::string_view header = in.TakeSized();
  std::string file;
  AppendLittleEndian<uint64_t>(&file, header.size());
  file.append(header.data(), header.size());
  file.append(in.rest().data(), in.rest().size());
  MemoryFileSystem fs;
  PutFile(&fs, "f.safetensors", file);
  const auto reader = SafetensorsReader::Open(&fs, "f.safetensors");
  if (!reader.ok()) {
    CHECK(absl::IsDataLoss(reader.status())) << reader.status();
    return false;
  }
  uint64_t bytes = 0;
  bool has_all = true;
  for (const std::string& name : (*reader)->names()) {
    const auto tensor = (*reader)->Read(name);
    has_all = has_all && tensor.ok();
    if (!tensor.ok()) CHECK(absl::IsUnimplemented(tensor.status())) << tensor.status();
    if (tensor.ok()) bytes += tensor->bytes().size();
  }
  if (has_all) CHECK_EQ(bytes, in.rest().size());
  return true;
}

std::vector<std::string> Seeds() {
  const std::string header =
      EncodeSafetensorsHeader({{"a/\"", v1::DT_FLOAT, {2, 1}}, {"step", v1::DT_INT64, {}}, {"e", v1::DT_UINT8, {0}}},
                              {{"format", "pt"}})
          .value()
          .substr(8);
  return {Sized(header) + "1234567812345678",
          Sized("{\"q\\u00e4\\ud83d\\ude00\":{\"data_offsets\":[0,2],\"shape\":[2],\"dtype\":\"F8_E4M3\"}}") + "ab"};
}

const FuzzTarget kTarget({"safetensors", 1 << 20, 400, Run, Seeds});

}  // namespace
}  // namespace lockstep
