#include "glog/logging.h"
#include "lockstep/common/checkpoint/bundle/index_table.h"
#include "lockstep/common/checkpoint/bundle/varint.h"
#include "lockstep/common/checkpoint/testing/decode_index_table.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/tests/fuzz/fuzz_target.h"

namespace lockstep {
namespace {

constexpr size_t kFooterBytes = 48;
constexpr size_t kTrailerBytes = 5;

// Reads a handle from the beginning of `handle`. If its block is within the table, corrects the block's checksum,
// because a fuzzer cannot guess one, and returns the block.
absl::string_view FixBlock(absl::string_view* handle, std::string* table) {
  uint64_t offset, size;
  const uint64_t room = table->size() - kFooterBytes;
  if (!ConsumeVarint(handle, &offset) || !ConsumeVarint(handle, &size)) return "";
  if (offset > room || size > room - offset || room - offset - size < kTrailerBytes) return "";
  std::string checksum;
  AppendLittleEndian<uint32_t>(&checksum, MaskCrc32c(Crc32c(absl::string_view(*table).substr(offset, size + 1))));
  table->replace(offset + size + 1, checksum.size(), checksum);
  return absl::string_view(*table).substr(offset, size);
}

// Corrects the checksums of the blocks named in the footer and in the index.
std::string WithChecksums(absl::string_view input) {
  std::string table(input);
  if (table.size() < kFooterBytes) return table;
  const std::string footer = table.substr(table.size() - kFooterBytes);
  absl::string_view handles = footer;
  FixBlock(&handles, &table);
  const std::string index(FixBlock(&handles, &table));
  absl::string_view rest = index;
  uint64_t shared, unshared, value_size;
  while (ConsumeVarint(&rest, &shared) && ConsumeVarint(&rest, &unshared) && ConsumeVarint(&rest, &value_size) &&
         unshared <= rest.size() && value_size <= rest.size() - unshared) {
    absl::string_view value = rest.substr(unshared, value_size);
    FixBlock(&value, &table);
    rest.remove_prefix(unshared + value_size);
  }
  return table;
}

// The input is a byte (1: correct the checksums), followed by the table.
bool Run(absl::string_view input) {
  FuzzInput in(input);
  const std::string table = (in.TakeByte() & 1) ? WithChecksums(in.rest()) : std::string(in.rest());
  const auto entries = DecodeIndexTable(table);
  if (!entries.ok()) {
    CHECK(absl::IsDataLoss(entries.status()) || absl::IsUnimplemented(entries.status())) << entries.status();
    return false;
  }
  const auto again = DecodeIndexTable(EncodeIndexTable(*entries));
  CHECK(again.ok()) << again.status();
  CHECK(*again == *entries);
  return true;
}

std::vector<std::string> Seeds() {
  std::map<std::string, std::string> entries;
  for (int i = 0; i < 40; ++i) entries["layer_" + std::to_string(i) + "/kernel"] = std::string(i, 'v');
  return {"\x01" + FileOfTree("tests/golden/bundle/model.ckpt-7.index"),
          "\x01" + FileOfTree("tests/golden/partitioned/model.ckpt-7.index"),
          std::string(1, '\0') + FileOfTree("tests/golden/object_graph/ckpt-1.index"),
          "\x01" + EncodeIndexTable(entries)};
}

// Keys share prefixes, so index_table.cc allows keys to take 64 times the table's bytes. The keys are copied twice, and
// the test's encoder makes 256 KiB blocks.
const FuzzTarget kTarget({"index_table", 2 << 20, 1000, Run, Seeds, 2 << 10});

}  // namespace
}  // namespace lockstep
