#include "lockstep/common/checkpoint/bundle/index_table.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "leveldb/env.h"
#include "leveldb/options.h"
#include "leveldb/table_builder.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/varint.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"

namespace lockstep {
namespace {

// TensorFlow's block size; LevelDB's default is 4 KiB.
constexpr size_t kBlockSize = 256 << 10;
constexpr int kRestartInterval = 16;

constexpr uint64_t kMagic = 0xdb4775248b80fb57u;
// Two padded handles and the magic number.
constexpr size_t kFooterSize = 48;
// Size of what follows each block: the compression type and the masked CRC32C of the block and the type.
constexpr size_t kTrailerSize = 5;

// Maximum total size of all keys, in bytes per byte of the table.
constexpr uint64_t kMostKeyBytesPerByte = 64;

class StringFile : public leveldb::WritableFile {
 public:
  explicit StringFile(std::string* out) : out_(out) {}
  leveldb::Status Append(const leveldb::Slice& data) override {
    out_->append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }

 private:
  std::string* const out_;
};

// The position of a block in the file, without its trailer.
struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

absl::Status Damaged(uint64_t offset, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("damaged at byte ", offset, ": ", what));
}

bool ConsumeHandle(absl::string_view* data, BlockHandle* handle) {
  return ConsumeVarint(data, &handle->offset) && ConsumeVarint(data, &handle->size);
}

// Returns the contents of a block after verifying its checksum.
absl::StatusOr<absl::string_view> BlockAt(absl::string_view table, const BlockHandle& handle) {
  const uint64_t room = table.size() - kFooterSize;
  if (handle.offset > room || handle.size > room - handle.offset || kTrailerSize > room - handle.offset - handle.size) {
    return Damaged(handle.offset, absl::StrCat("a block of ", handle.size, " bytes does not fit in the ", table.size(),
                                               " of the file"));
  }
  const absl::string_view block = table.substr(handle.offset, handle.size);
  const uint32_t stored = UnmaskCrc32c(LoadLittleEndian<uint32_t>(block.data() + block.size() + 1));
  const uint32_t computed = Crc32c(table.substr(handle.offset, handle.size + 1));
  if (stored != computed) {
    return Damaged(handle.offset, absl::StrCat("the block has checksum ", computed, " where ", stored, " is stored"));
  }
  const char compression = block.data()[block.size()];
  if (compression != 0) {
    return absl::UnimplementedError(absl::StrCat("the block at byte ", handle.offset, " has compression type ",
                                                 static_cast<int>(compression), "; only 0, none, is supported"));
  }
  return block;
}

using Visit = absl::FunctionRef<absl::Status(absl::string_view key, absl::string_view value)>;

// The rest of a table's limits. Because keys share prefixes, all keys together can be larger than their stored
// form: up to 16 times in a table with LevelDB's restart points, and without bound in a malicious one.
struct Allowance {
  uint64_t key_bytes;
  uint64_t block_bytes;
};

// Visits the entries of a block in order. An entry consists of three varints, the numbers of key bytes shared with the
// previous key, of other key bytes and of value bytes, followed by these other key bytes and the value. After the
// entries come the restart points, which are used for searching, and their number.
absl::Status VisitEntries(absl::string_view block, uint64_t offset, Allowance* allowance, Visit visit) {
  if (block.size() + kTrailerSize > allowance->block_bytes) return Damaged(offset, "the block overlaps others");
  allowance->block_bytes -= block.size() + kTrailerSize;
  if (block.size() < 4) return Damaged(offset, absl::StrCat("a block of ", block.size(), " bytes"));
  const uint64_t restarts = LoadLittleEndian<uint32_t>(block.data() + block.size() - 4);
  if (restarts > (block.size() - 4) / 4) {
    return Damaged(offset, absl::StrCat(restarts, " restart points in a block of ", block.size(), " bytes"));
  }
  absl::string_view rest = block.substr(0, block.size() - 4 - 4 * restarts);
  std::string key;
  while (!rest.empty()) {
    const uint64_t position = offset + (rest.data() - block.data());
    uint64_t shared, unshared, value_size;
    if (!ConsumeVarint(&rest, &shared) || !ConsumeVarint(&rest, &unshared) || !ConsumeVarint(&rest, &value_size) ||
        shared > key.size() || unshared > rest.size() || value_size > rest.size() - unshared) {
      return Damaged(position, "an entry does not fit in its block");
    }
    const uint64_t key_size = shared + unshared;
    if (key_size > kMostIndexKeyBytes) return Damaged(position, absl::StrCat("a key of ", key_size, " bytes"));
    if (key_size > allowance->key_bytes) {
      return Damaged(position, absl::StrCat("the keys have more than ", kMostKeyBytesPerByte, " times its bytes"));
    }
    allowance->key_bytes -= key_size;
    key.resize(shared);
    key.append(rest.data(), unshared);
    RETURN_IF_ERROR(visit(key, rest.substr(unshared, value_size)));
    rest.remove_prefix(unshared + value_size);
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeIndexTable(const std::map<std::string, std::string>& entries) {
  std::string table;
  StringFile file(&table);
  leveldb::Options options;
  options.block_size = kBlockSize;
  options.block_restart_interval = kRestartInterval;
  options.compression = leveldb::kNoCompression;
  leveldb::TableBuilder builder(options, &file);
  for (const auto& [key, value] : entries) builder.Add(key, value);
  const leveldb::Status status = builder.Finish();
  CHECK(status.ok()) << status.ToString();  // The file is a string.
  return table;
}

absl::Status ReadIndexTable(absl::string_view table, Visit visit) {
  if (table.size() < kFooterSize) {
    return Damaged(table.size(), absl::StrCat("the file ends before the ", kFooterSize, " bytes of a footer"));
  }
  absl::string_view footer = table.substr(table.size() - kFooterSize);
  const uint64_t magic = LoadLittleEndian<uint64_t>(footer.data() + kFooterSize - 8);
  if (magic != kMagic) {
    return Damaged(table.size() - 8,
                   absl::StrCat("the magic number is ", absl::Hex(magic), " and not ", absl::Hex(kMagic)));
  }
  footer.remove_suffix(8);
  BlockHandle meta_index, index;
  if (!ConsumeHandle(&footer, &meta_index) || !ConsumeHandle(&footer, &index)) {
    return Damaged(table.size() - kFooterSize, "the footer holds no block handles");
  }
  // Without a filter policy, the metaindex block is empty, but it still has a checksum.
  RETURN_IF_ERROR(BlockAt(table, meta_index).status());
  ASSIGN_OR_RETURN(const absl::string_view index_block, BlockAt(table, index));

  Allowance allowance = {kMostKeyBytesPerByte * table.size(), table.size()};
  std::string last_key;
  bool first = true;
  return VisitEntries(index_block, index.offset, &allowance, [&](absl::string_view, absl::string_view encoded_handle) {
    BlockHandle handle;
    if (!ConsumeHandle(&encoded_handle, &handle)) {
      return Damaged(index.offset, "an index entry holds no block handle");
    }
    ASSIGN_OR_RETURN(const absl::string_view block, BlockAt(table, handle));
    return VisitEntries(block, handle.offset, &allowance, [&](absl::string_view key, absl::string_view value) {
      if (!first && key <= last_key) return Damaged(handle.offset, "the keys of the block are not in order");
      first = false;
      last_key.assign(key.data(), key.size());
      return visit(key, value);
    });
  });
}

}  // namespace lockstep
