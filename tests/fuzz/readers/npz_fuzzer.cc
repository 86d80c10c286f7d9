#include <zlib.h>

#include "glog/logging.h"
#include "lockstep/common/checkpoint/formats/npy.h"
#include "lockstep/common/checkpoint/formats/npz.h"
#include "lockstep/common/checkpoint/formats/npz_writer.h"
#include "lockstep/common/checkpoint/formats/zip_format.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"

namespace lockstep {
namespace {

// Corrects the checksums in the archive's directory to match the members as stored, because a fuzzer cannot guess a
// checksum.
std::string WithMemberChecksums(absl::string_view input) {
  std::string file(input);
  std::string signature;
  AppendLittleEndian<uint32_t>(&signature, zip::kEntrySignature);
  for (size_t at = 0; (at = file.find(signature, at)) != std::string::npos; at += signature.size()) {
    if (file.size() - at < zip::kEntryBytes) break;
    const uint64_t size = LoadLittleEndian<uint32_t>(&file[at + 24]);
    const uint64_t local = LoadLittleEndian<uint32_t>(&file[at + 42]);
    if (local + zip::kLocalBytes > file.size()) continue;
    const uint64_t begin = local + zip::kLocalBytes + LoadLittleEndian<uint16_t>(&file[local + 26]) +
                           LoadLittleEndian<uint16_t>(&file[local + 28]);
    if (begin > file.size() || size > file.size() - begin) continue;
    std::string crc;
    AppendLittleEndian<uint32_t>(&crc,
                                 static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(&file[begin]), size)));
    file.replace(at + 16, crc.size(), crc);
  }
  return file;
}

bool Run(absl::string_view input) {
  MemoryFileSystem fs;
  PutFile(&fs, "f.npz", WithMemberChecksums(input));
  const auto reader = NpzReader::Open(&fs, "f.npz");
  if (!reader.ok()) {
    CHECK(absl::IsDataLoss(reader.status()) || absl::IsUnimplemented(reader.status())) << reader.status();
    return false;
  }
  for (const std::string& name : (*reader)->names()) {
    const auto entry = (*reader)->Describe(name);
    const auto tensor = (*reader)->Read(name);
    if (!entry.ok()) CHECK(absl::IsUnimplemented(entry.status())) << entry.status();
    if (tensor.ok()) CHECK_EQ(tensor->bytes().size(), entry->bytes);
  }
  return (*reader)->Verify().ok();
}

// Returns an archive with a deflated member, as made by numpy.savez_compressed. The checksum is that of the inflated
// array. WithMemberChecksums does not change it, because the array is longer than the rest of the file.
std::string Compressed() {
  const std::string array = EncodeNpyHeader(v1::DT_UINT8, {300}).value() + std::string(300, 'a');
  std::string stored(1000, '\0');
  z_stream stream = {};
  CHECK_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(array.data()));
  stream.avail_in = static_cast<uInt>(array.size());
  stream.next_out = reinterpret_cast<Bytef*>(&stored[0]);
  stream.avail_out = static_cast<uInt>(stored.size());
  CHECK_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  stored.resize(stream.total_out);
  deflateEnd(&stream);
  const std::string name = "c.npy";
  std::string common;
  for (const uint16_t value : {uint16_t{20}, uint16_t{0}, zip::kDeflated, uint16_t{0}, zip::kFirstDay}) {
    AppendLittleEndian<uint16_t>(&common, value);
  }
  AppendLittleEndian<uint32_t>(
      &common, static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(array.data()), array.size())));
  AppendLittleEndian<uint32_t>(&common, static_cast<uint32_t>(stored.size()));
  AppendLittleEndian<uint32_t>(&common, static_cast<uint32_t>(array.size()));
  AppendLittleEndian<uint32_t>(&common, static_cast<uint32_t>(name.size()));  // and no extra field
  std::string file, entry, end;
  AppendLittleEndian<uint32_t>(&file, zip::kLocalSignature);
  file += common + name + stored;
  AppendLittleEndian<uint32_t>(&entry, zip::kEntrySignature);
  AppendLittleEndian<uint16_t>(&entry, zip::kVersion);
  entry += common + std::string(14, '\0') + name;
  AppendLittleEndian<uint32_t>(&end, zip::kEndSignature);
  AppendLittleEndian<uint32_t>(&end, 0);
  AppendLittleEndian<uint32_t>(&end, 1 << 16 | 1);
  AppendLittleEndian<uint32_t>(&end, static_cast<uint32_t>(entry.size()));
  AppendLittleEndian<uint32_t>(&end, static_cast<uint32_t>(file.size()));
  AppendLittleEndian<uint16_t>(&end, 0);
  return file + entry + end;
}

std::vector<std::string> Seeds() {
  MemoryFileSystem fs;
  auto file = fs.NewWritableFile("w.npz").value();
  NpzWriter writer(file.get());
  CHECK(writer.Add("w", v1::DT_FLOAT, {2, 1}, "12345678").ok());
  CHECK(writer.Add("n", v1::DT_INT64, {}, "12345678").ok());
  CHECK(writer.Finish().ok());
  CHECK(file->Close().ok());
  return {ReadFile(&fs, "w.npz").value(), Compressed()};
}

// Deflate compresses by a factor of at most 1032. An array and the pieces into which it is inflated are in memory at
// the same time.
const FuzzTarget kTarget({"npz", 4 << 20, 4096, Run, Seeds});

}  // namespace
}  // namespace lockstep
