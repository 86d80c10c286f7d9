#include "lockstep/common/checkpoint/bundle/index_table.h"

#include <memory>
#include <random>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leveldb/env.h"
#include "leveldb/iterator.h"
#include "leveldb/options.h"
#include "leveldb/table.h"
#include "lockstep/common/checkpoint/testing/decode_index_table.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using Entries = std::map<std::string, std::string>;

Entries SomeEntries(int n) {
  Entries entries = {{"", "header"}};
  for (int i = 0; i < n; ++i) entries[absl::StrCat("layer", i, "/kernel")] = std::string(i % 50, 'v');
  return entries;
}

class StringReader : public leveldb::RandomAccessFile {
 public:
  explicit StringReader(std::string contents) : contents_(std::move(contents)) {}
  leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice* result, char*) const override {
    *result = leveldb::Slice(contents_.data() + offset, std::min(n, contents_.size() - offset));
    return leveldb::Status::OK();
  }

 private:
  const std::string contents_;
};

TEST(IndexTableTest, RoundTrips) {
  for (const int n : {0, 1, 16, 17, 1000, 50000}) {  // The last has several blocks.
    const Entries entries = SomeEntries(n);
    const auto decoded = DecodeIndexTable(EncodeIndexTable(entries));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, entries) << n;
  }
  EXPECT_TRUE(DecodeIndexTable(EncodeIndexTable({})).value().empty());
}

TEST(IndexTableTest, IsReadByLevelDb) {
  const Entries entries = SomeEntries(50000);
  const std::string table = EncodeIndexTable(entries);
  StringReader file(table);
  leveldb::Options options;
  options.paranoid_checks = true;
  leveldb::Table* opened = nullptr;
  ASSERT_TRUE(leveldb::Table::Open(options, &file, table.size(), &opened).ok());
  const std::unique_ptr<leveldb::Table> owned(opened);
  leveldb::ReadOptions read_options;
  read_options.verify_checksums = true;
  const std::unique_ptr<leveldb::Iterator> it(opened->NewIterator(read_options));
  Entries read;
  for (it->SeekToFirst(); it->Valid(); it->Next()) read[it->key().ToString()] = it->value().ToString();
  EXPECT_TRUE(it->status().ok());
  EXPECT_EQ(read, entries);
}

// Every flip is detected except in the padding of the footer's handles, which are padded to 40 bytes. The padding is
// never read.
TEST(IndexTableTest, DetectsAFlipOfEveryByteButThePadding) {
  const Entries entries = SomeEntries(40);
  const std::string table = EncodeIndexTable(entries);
  int harmless = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    for (const char mask : {'\x01', '\x80', '\xff'}) {
      std::string damaged = table;
      damaged[i] ^= mask;
      const auto decoded = DecodeIndexTable(damaged);
      if (!decoded.ok()) continue;
      EXPECT_GE(i, table.size() - 48) << "byte " << i;
      EXPECT_EQ(*decoded, entries) << "byte " << i;
      ++harmless;
    }
  }
  EXPECT_LE(harmless, 36 * 3);
}

TEST(IndexTableTest, DetectsACutAtEveryByte) {
  const std::string table = EncodeIndexTable(SomeEntries(40));
  for (size_t size = 0; size < table.size(); ++size) {
    EXPECT_EQ(DecodeIndexTable(table.substr(0, size)).status().code(), absl::StatusCode::kDataLoss) << size;
  }
}

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// Returns a table whose index names its only block `times` times, with valid checksums for any content.
std::string TableOfBlock(const std::string& block, int times = 1) {
  const auto trailer = [](const std::string& contents) {
    std::string typed = contents + '\0';
    const uint32_t crc = MaskCrc32c(Crc32c(typed));
    AppendLittleEndian<uint32_t>(&typed, crc);
    return typed;
  };
  const auto handle = [](size_t offset, size_t size) { return Varint(offset) + Varint(size); };
  const std::string empty("\0\0\0\0\1\0\0\0", 8);
  std::string table = trailer(block);
  const size_t meta_index = table.size();
  table += trailer(empty);
  const size_t index = table.size();
  std::string index_block;
  for (int i = 0; i < times; ++i) {
    const std::string place = handle(0, block.size());
    index_block += std::string("\0\1", 2) + static_cast<char>(place.size()) + "z" + place;
  }
  index_block += std::string("\0\0\0\0\1\0\0\0", 8);
  table += trailer(index_block);
  std::string footer = handle(meta_index, empty.size()) + handle(index, index_block.size());
  footer.resize(40);
  return table + footer + absl::HexStringToBytes("57fb808b247547db");
}

TEST(IndexTableTest, RefusesHostileBlocksWithChecksums) {
  const std::string restart("\0\0\0\0\1\0\0\0", 8);
  ASSERT_TRUE(DecodeIndexTable(TableOfBlock(std::string("\0\1\1kv", 5) + restart)).ok());
  const std::string blocks[] = {
      "",
      "\x01\x02",
      "\xff\xff\xff\xff",                                                // restart points beyond the block
      std::string("\1\1\1kv", 5) + restart,                              // shares a key with nothing
      std::string("\0\x7f\1kv", 5) + restart,                            // a key beyond the block
      std::string("\0\1\x7fkv", 5) + restart,                            // a value beyond the block
      "\xff\xff\xff\xff\x0f\1\1kv" + restart,                            // lengths near 2^32
      std::string("\0\xff\xff\xff\xff\x0f\x02kv", 9) + restart,          // lengths whose sum overflows 32 bits
      std::string("\0", 1) + std::string(9, '\xff') + "\1\1" + restart,  // lengths whose sum overflows 64 bits
      std::string(20, '\xff') + restart,                                 // a number that does not end
      std::string("\0\1\1bv\0\1\1av", 10) + restart,                     // keys that are not in order
      std::string("\0\1\1av\0\1\1av", 10) + restart,                     // the same key twice
  };
  for (const std::string& block : blocks) {
    EXPECT_EQ(DecodeIndexTable(TableOfBlock(block)).status().code(), absl::StatusCode::kDataLoss)
        << absl::CHexEscape(block);
  }
}

TEST(IndexTableTest, SaysAtWhichByteAnEntryIsDamaged) {
  const std::string restart("\0\0\0\0\1\0\0\0", 8);
  EXPECT_EQ(DecodeIndexTable(TableOfBlock(std::string("\0\1\1kv\0\x7f\1kv", 10) + restart)).status().message(),
            "damaged at byte 5: an entry does not fit in its block");
}

// Returns a block in which each key shares its first `key_size` bytes with the previous one.
std::string BlockOfSharedKeys(size_t key_size, int n) {
  std::string block = Varint(0) + Varint(key_size) + Varint(1) + std::string(key_size, 'k') + "v";
  for (int i = 0; i < n; ++i) {
    block += Varint(key_size) + Varint(2) + Varint(0) + static_cast<char>(1 + i / 255) + static_cast<char>(1 + i % 255);
  }
  return block + std::string("\0\0\0\0\1\0\0\0", 8);
}

// Without a limit, a file of 200 kB could yield 3 GB of keys.
TEST(IndexTableTest, RefusesKeysThatAreManyTimesTheirFile) {
  const auto status = [](size_t key_size, int n) {
    return DecodeIndexTable(TableOfBlock(BlockOfSharedKeys(key_size, n))).status();
  };
  EXPECT_TRUE(status(1000, 60).ok());
  EXPECT_TRUE(status((64 << 10) - 2, 60).ok());
  EXPECT_THAT(std::string(status((64 << 10) - 2, 100).message()), HasSubstr("more than 64 times its bytes"));
  EXPECT_THAT(std::string(status(1000, 20000).message()), HasSubstr("more than 64 times its bytes"));
  EXPECT_THAT(std::string(status((64 << 10) - 1, 1).message()), HasSubstr("a key of 65537 bytes"));
  EXPECT_EQ(status(100000, 30000).code(), absl::StatusCode::kDataLoss);
}

// Random blocks with valid checksums must be either read or rejected.
TEST(IndexTableTest, SurvivesAnyBlock) {
  std::mt19937 random(1);
  const std::string intact = BlockOfSharedKeys(9, 5);
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string block = intact;
    for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes) {
      block[random() % block.size()] = static_cast<char>(random() % 2 == 0 ? random() : random() % 16);
    }
    if (random() % 4 == 0) block.resize(random() % block.size());
    const absl::Status status = DecodeIndexTable(TableOfBlock(block, 1 + static_cast<int>(random() % 2))).status();
    read += status.ok();
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
  }
  EXPECT_GT(read, 100) << "changes of keys and values are none that matter here";
}

TEST(IndexTableTest, RefusesBlocksThatAreNamedAgain) {
  std::string empty(100000, '\0');  // restart points and nothing else
  AppendLittleEndian<uint32_t>(&empty, 25000);
  ASSERT_TRUE(DecodeIndexTable(TableOfBlock(empty)).ok());
  EXPECT_THAT(std::string(DecodeIndexTable(TableOfBlock(empty, 1000)).status().message()), HasSubstr("overlaps"));
}

// The names share all but their last digits, so that LevelDB's prefix sharing applies.
TEST(IndexTableTest, RoundTripsRandomTables) {
  Entries entries;
  const std::string longest((64 << 10) - 5, 'x');
  for (int i = 0; i < 200; ++i) entries[absl::StrCat(longest, 10000 + i)] = "";
  EXPECT_EQ(DecodeIndexTable(EncodeIndexTable(entries)).value(), entries);
}

}  // namespace
}  // namespace lockstep
