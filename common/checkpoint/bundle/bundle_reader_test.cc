#include "lockstep/common/checkpoint/bundle/bundle_reader.h"

#include <algorithm>
#include <functional>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/bundle/index_table.h"
#include "lockstep/common/checkpoint/bundle/slice_key.h"
#include "lockstep/common/checkpoint/testing/decode_index_table.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/forwarding_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kData[] = "ckpt.data-00000-of-00001";

class BundleReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto writer = BundleWriter::Create(&fs_, "ckpt").value();
    ASSERT_TRUE(writer->Add("a", v1::DT_FLOAT, {2, 2}, "0123456789abcdef").ok());
    ASSERT_TRUE(writer->Add("b", v1::DT_UINT8, {3}, "xyz").ok());
    ASSERT_TRUE(writer->Finish().ok());
  }

  absl::Status OpenAndVerify() {
    const auto reader = BundleReader::Open(&fs_, "ckpt");
    return reader.ok() ? (*reader)->Verify() : reader.status();
  }

  // Rewrites the index with changed entries and valid checksums.
  void ChangeIndex(const std::function<void(std::map<std::string, std::string>*)>& change) {
    auto entries = DecodeIndexTable(ReadFile(&fs_, "ckpt.index").value()).value();
    change(&entries);
    ASSERT_TRUE(WriteFileAtomically(&fs_, "ckpt.index", EncodeIndexTable(entries)).ok());
  }
  void ChangeEntry(const std::string& key, const std::function<void(v1::BundleEntryProto*)>& change) {
    ChangeIndex([&](std::map<std::string, std::string>* entries) {
      v1::BundleEntryProto entry;
      ASSERT_TRUE(entry.ParseFromString((*entries)[key]));
      change(&entry);
      (*entries)[key] = entry.SerializeAsString();
    });
  }

  MemoryFileSystem fs_;
};

TEST_F(BundleReaderTest, DescribesAndReads) {
  const auto reader = BundleReader::Open(&fs_, "ckpt").value();
  EXPECT_EQ(reader->prefix(), "ckpt");
  EXPECT_THAT(reader->names(), ElementsAre("a", "b"));
  EXPECT_TRUE(reader->Contains("a"));
  EXPECT_FALSE(reader->Contains("c"));
  EXPECT_FALSE(reader->Contains(""));
  const auto entry = reader->Describe("a").value();
  EXPECT_EQ(entry.dtype, v1::DT_FLOAT);
  EXPECT_EQ(entry.shape, (Shape{2, 2}));
  EXPECT_EQ(entry.bytes, 16u);
  EXPECT_EQ(reader->Read("b")->bytes(), "xyz");
  char out[3];
  ASSERT_TRUE(reader->ReadInto("b", absl::MakeSpan(out)).ok());
  EXPECT_EQ(absl::string_view(out, 3), "xyz");
  EXPECT_EQ(reader->ReadInto("b", absl::MakeSpan(out, 2)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(reader->Verify().ok());
}

TEST_F(BundleReaderTest, VerifiesAllAndReadsTheRequested) {
  const auto reader = BundleReader::Open(&fs_, "ckpt").value();
  ThreadPool pool(2);
  for (ThreadPool* const threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    char a[16], b[3];
    ASSERT_TRUE(reader->VerifyInto({{"a", absl::MakeSpan(a)}, {"b", absl::MakeSpan(b)}}, threads).ok());
    EXPECT_EQ(absl::string_view(a, 16), "0123456789abcdef");
    EXPECT_EQ(absl::string_view(b, 3), "xyz");
    EXPECT_TRUE(absl::IsInvalidArgument(reader->VerifyInto({{"a", absl::MakeSpan(a, 15)}}, threads)));
    EXPECT_TRUE(absl::IsNotFound(reader->VerifyInto({{"c", absl::MakeSpan(b)}}, threads)));
    // Damage a variable that is not requested.
    fs_.FlipBits(kData, 17, 1);
    const absl::Status damaged = reader->VerifyInto({{"a", absl::MakeSpan(a)}}, threads);
    EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
    EXPECT_THAT(std::string(damaged.message()), HasSubstr("variable b"));
    fs_.FlipBits(kData, 17, 1);
  }
}

// SAVE-20
TEST_F(BundleReaderTest, SaysThatACheckpointIsMissing) {
  const absl::Status status = BundleReader::Open(&fs_, "missing").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("missing.index"));
}

// SAVE-22
TEST_F(BundleReaderTest, SaysThatAVariableIsMissing) {
  const auto reader = BundleReader::Open(&fs_, "ckpt").value();
  for (const absl::Status& status : {reader->Read("c").status(), reader->Describe("c").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(status.message(), "checkpoint ckpt has no variable c");
  }
}

// Flips each bit of both files and checks Verify's result. No checksum covers the padding in the index's footer, which
// is unused.
TEST_F(BundleReaderTest, DetectsEveryFlippedBit) {
  const uint64_t index_size = ReadFile(&fs_, "ckpt.index")->size();
  for (const std::string path : {"ckpt.index", kData}) {
    const uint64_t size = ReadFile(&fs_, path)->size();
    for (uint64_t i = 0; i < size; ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        fs_.FlipBits(path, i, 1 << bit);
        const absl::Status status = OpenAndVerify();
        if (path != "ckpt.index" || i < index_size - 48 || !status.ok()) {
          EXPECT_TRUE(absl::IsDataLoss(status)) << path << " byte " << i << " bit " << bit << ": " << status;
          EXPECT_THAT(std::string(status.message()), HasSubstr(path));
        }
        fs_.FlipBits(path, i, 1 << bit);
      }
    }
  }
  EXPECT_TRUE(OpenAndVerify().ok());
}

TEST_F(BundleReaderTest, DetectsACutAtEveryByte) {
  for (const std::string path : {"ckpt.index", kData}) {
    const std::string whole = ReadFile(&fs_, path).value();
    for (size_t size = 0; size < whole.size(); ++size) {
      fs_.Truncate(path, size);
      const absl::Status status = OpenAndVerify();
      EXPECT_TRUE(absl::IsDataLoss(status)) << path << " cut to " << size << ": " << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(path));
      ASSERT_TRUE(WriteFileAtomically(&fs_, path, whole).ok());
    }
  }
}

// Must not return OutOfRange, which the run that restores the checkpoint would take for a clean end.
TEST_F(BundleReaderTest, DetectsACutWhileItIsRead) {
  const auto reader = BundleReader::Open(&fs_, "ckpt").value();
  fs_.Truncate(kData, 17);
  EXPECT_TRUE(reader->Read("a").ok());
  for (const absl::Status& status : {reader->Read("b").status(), reader->Verify()}) {
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(kData));
  }
}

TEST_F(BundleReaderTest, NamesTheVariableWhoseBytesAreDamaged) {
  fs_.FlipBits(kData, 17, 1);
  const auto reader = BundleReader::Open(&fs_, "ckpt").value();
  EXPECT_TRUE(reader->Read("a").ok());
  const absl::Status status = reader->Read("b").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("checkpoint ckpt: variable b: its 3 bytes in ckpt.data-"));
}

TEST_F(BundleReaderTest, SaysThatADataFileIsMissing) {
  ASSERT_TRUE(fs_.Remove(kData).ok());
  const absl::Status status = OpenAndVerify();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("its data file ", kData, " is missing")));
}

TEST_F(BundleReaderTest, PassesOnErrorsOfTheFileSystem) {
  FaultyFileSystem faulty(&fs_);
  ASSERT_TRUE(BundleReader::Open(&faulty, "ckpt").value()->Verify().ok());
  const int64_t operations = faulty.operations();
  for (int64_t n = 1; n <= operations; ++n) {
    faulty.FailOperation(n, absl::InternalError("bad sector"));
    const auto reader = BundleReader::Open(&faulty, "ckpt");
    const absl::Status status = reader.ok() ? (*reader)->Verify() : reader.status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << n << ": " << status;
  }
}

// Malicious entries with valid checksums and invalid content.
TEST_F(BundleReaderTest, RefusesHostileEntries) {
  const std::string intact = ReadFile(&fs_, "ckpt.index").value();
  const std::function<void(v1::BundleEntryProto*)> changes[] = {
      [](v1::BundleEntryProto* entry) { entry->set_shard_id(1); },
      [](v1::BundleEntryProto* entry) { entry->set_shard_id(-1); },
      [](v1::BundleEntryProto* entry) { entry->set_offset(-1); },
      [](v1::BundleEntryProto* entry) { entry->set_offset(4); },
      [](v1::BundleEntryProto* entry) { entry->set_offset(INT64_MAX); },
      [](v1::BundleEntryProto* entry) { entry->set_size(-1); },
      [](v1::BundleEntryProto* entry) { entry->set_size(INT64_MAX); },
      [](v1::BundleEntryProto* entry) { entry->set_size(15); },
      [](v1::BundleEntryProto* entry) { entry->set_dtype(v1::DT_DOUBLE); },
      [](v1::BundleEntryProto* entry) { entry->set_dtype(v1::DT_STRING); },
      [](v1::BundleEntryProto* entry) { entry->mutable_shape()->set_unknown_rank(true); },
      [](v1::BundleEntryProto* entry) { entry->mutable_shape()->mutable_dim(0)->set_size(-2); },
      [](v1::BundleEntryProto* entry) { entry->mutable_shape()->mutable_dim(0)->set_size(INT64_MAX); },
      [](v1::BundleEntryProto* entry) { entry->mutable_shape()->clear_dim(); },
      [](v1::BundleEntryProto* entry) { entry->add_slices(); },
      [](v1::BundleEntryProto* entry) {
        auto* const slice = entry->add_slices();
        slice->add_extent();
        slice->add_extent();
      },
      [](v1::BundleEntryProto* entry) {
        for (int i = 0; i < 1000; ++i) entry->mutable_shape()->add_dim()->set_size(1);
      },
      [](v1::BundleEntryProto* entry) {
        entry->mutable_shape()->Clear();
        for (int i = 0; i < 20000; ++i) entry->add_slices();
      },
  };
  for (size_t i = 0; i < std::size(changes); ++i) {
    ASSERT_TRUE(WriteFileAtomically(&fs_, "ckpt.index", intact).ok());
    ChangeEntry("a", changes[i]);
    const absl::Status status = OpenAndVerify();
    EXPECT_TRUE(absl::IsDataLoss(status)) << "change " << i << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("checkpoint ckpt: variable a: ")) << i;
  }
}

// Random index entries with valid checksums.
TEST_F(BundleReaderTest, SurvivesAnyEntry) {
  std::mt19937 random(1);
  const std::string intact = ReadFile(&fs_, "ckpt.index").value();
  int opened = 0;
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(WriteFileAtomically(&fs_, "ckpt.index", intact).ok());
    ChangeIndex([&](std::map<std::string, std::string>* entries) {
      std::string& value = (*entries)[std::string(random() % 8 == 0 ? "" : random() % 2 == 0 ? "a" : "b")];
      for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes) {
        value[random() % value.size()] = static_cast<char>(random() % 2 == 0 ? random() : random() % 16);
      }
    });
    const auto reader = BundleReader::Open(&fs_, "ckpt");
    if (!reader.ok()) continue;
    ++opened;
    (*reader)->Verify().IgnoreError();  // must end, with any result
    for (const std::string& name : (*reader)->names()) (*reader)->Read(name).IgnoreError();
  }
  EXPECT_GT(opened, 100);
}

// A file of zeros that uses no disk space.
class HoleyFile : public RandomAccessFile {
 public:
  uint64_t size() const override { return uint64_t{1} << 45; }
  uint64_t inode() const override { return 1; }
  absl::Time modification_time() const override { return absl::UnixEpoch(); }
  absl::Time change_time() const override { return absl::UnixEpoch(); }
  absl::Status Read(uint64_t offset, size_t n, char* out) const override {
    std::fill_n(out, n, '\0');
    return absl::OkStatus();
  }
};

class HoleyFileSystem : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) override {
    if (path == kData) return std::make_unique<HoleyFile>();
    return ForwardingFileSystem::NewRandomAccessFile(path);
  }

 private:
  absl::Status Before(Operation operation, const std::string& path) override { return absl::OkStatus(); }
};

TEST_F(BundleReaderTest, RefusesStringsThatNoMemoryHolds) {
  ChangeEntry("b", [](v1::BundleEntryProto* entry) {
    entry->set_dtype(v1::DT_STRING);
    entry->set_size(int64_t{1} << 44);
  });
  HoleyFileSystem holey(&fs_);
  const auto reader = BundleReader::Open(&holey, "ckpt");
  ASSERT_TRUE(reader.ok()) << reader.status();
  const absl::Status status = (*reader)->Verify();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(status.message(), absl::StrCat("checkpoint ckpt: variable b: its strings have 17592186044416 bytes in ",
                                           kData, "; at most 1073741824 are read"));
}

// Shared bytes would let a small file be read any number of times.
TEST_F(BundleReaderTest, RefusesVariablesThatShareTheirBytes) {
  ChangeIndex([](std::map<std::string, std::string>* entries) { (*entries)["c"] = entries->at("a"); });
  const absl::Status status = OpenAndVerify();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(status.message(),
            absl::StrCat("checkpoint ckpt: variable c: its 16 bytes and those before are more than the 19 of ", kData));
}

TEST_F(BundleReaderTest, RefusesAMissingOrHostileHeader) {
  for (const std::string header :
       {"\xff", "", "\x08\x80\x80\x80\x80\x07", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"}) {
    ChangeIndex([&](std::map<std::string, std::string>* entries) { (*entries)[""] = header; });
    EXPECT_EQ(OpenAndVerify().code(), absl::StatusCode::kDataLoss);
  }
  ChangeIndex([&](std::map<std::string, std::string>* entries) { entries->erase(""); });
  EXPECT_EQ(OpenAndVerify().code(), absl::StatusCode::kDataLoss);
  ChangeIndex([&](std::map<std::string, std::string>* entries) { (*entries)[""] = std::string("\x08\1\x10\1", 4); });
  EXPECT_EQ(OpenAndVerify().code(), absl::StatusCode::kUnimplemented);
  ChangeIndex([&](std::map<std::string, std::string>* entries) {
    (*entries)[""] = std::string("\x08\1", 2);
    (*entries)["a"] = "\xff\xff";
  });
  EXPECT_EQ(OpenAndVerify().code(), absl::StatusCode::kDataLoss);
}

// A variable of 2 x 3 bytes. Columns 0 and 1 are in one data file, column 2 in another.
class PartitionedBundleReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    *whole_.mutable_shape() = Shape{2, 3}.ToProto();
    whole_.set_dtype(v1::DT_UINT8);
    AddSlice(0, 0, 2, "abde");
    AddSlice(1, 2, 1, "cf");
    Write();
  }
  void AddSlice(int shard, int64_t start, int64_t length, const std::string& content) {
    v1::TensorSliceProto* const slice = whole_.add_slices();
    slice->add_extent();
    slice->add_extent()->set_start(start);
    slice->mutable_extent(1)->set_length(length);
    v1::BundleEntryProto entry;
    entry.set_dtype(v1::DT_UINT8);
    *entry.mutable_shape() = Shape{2, length}.ToProto();
    entry.set_shard_id(shard);
    entry.set_size(content.size());
    entry.set_crc32c(MaskCrc32c(Crc32c(content)));
    entries_[SliceKey("v", *slice)] = entry.SerializeAsString();
    ASSERT_TRUE(WriteFileAtomically(&fs_, absl::StrCat("ckpt.data-0000", shard, "-of-00002"), content).ok());
  }
  void Write() {
    entries_[""] = "\x08\x02";
    entries_["v"] = whole_.SerializeAsString();
    ASSERT_TRUE(WriteFileAtomically(&fs_, "ckpt.index", EncodeIndexTable(entries_)).ok());
  }
  absl::Status OpenStatus() { return BundleReader::Open(&fs_, "ckpt").status(); }

  MemoryFileSystem fs_;
  v1::BundleEntryProto whole_;
  std::map<std::string, std::string> entries_;
};

TEST_F(PartitionedBundleReaderTest, PutsSlicesTogether) {
  const auto reader = BundleReader::Open(&fs_, "ckpt");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->names(), ElementsAre("v"));
  EXPECT_EQ((*reader)->Describe("v")->bytes, 6u);
  EXPECT_EQ((*reader)->Read("v")->bytes(), "abcdef");
  EXPECT_EQ((*reader)->Read("v")->shape(), (Shape{2, 3}));
  EXPECT_TRUE((*reader)->Verify().ok());
  EXPECT_FALSE((*reader)->Contains(entries_.begin()->first));
}

TEST_F(PartitionedBundleReaderTest, DetectsDamageInASlice) {
  fs_.FlipBits("ckpt.data-00001-of-00002", 1, 1);
  const auto reader = BundleReader::Open(&fs_, "ckpt").value();
  EXPECT_EQ(reader->Read("v").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(reader->Verify().code(), absl::StatusCode::kDataLoss);
}

TEST_F(PartitionedBundleReaderTest, RefusesSlicesThatLeaveAHole) {
  whole_.mutable_slices()->RemoveLast();
  Write();
  EXPECT_EQ(OpenStatus().message(), "checkpoint ckpt: variable v: the slices have 4 of the 6 elements");
}

TEST_F(PartitionedBundleReaderTest, RefusesSlicesThatOverlap) {
  AddSlice(0, 1, 2, "bcef");
  Write();
  EXPECT_THAT(std::string(OpenStatus().message()), HasSubstr("overlap"));
}

TEST_F(PartitionedBundleReaderTest, RefusesAMissingSlice) {
  entries_.erase(SliceKey("v", whole_.slices(1)));
  Write();
  EXPECT_EQ(OpenStatus().message(), "checkpoint ckpt: variable v: its slice 0,2:2,1 is missing");
}

TEST_F(PartitionedBundleReaderTest, RefusesSlicesThatShareTheirBytes) {
  whole_.mutable_shape()->mutable_dim(1)->set_size(8);
  // Overwrites the data file of the slice "cf", which now consists of the first two of these bytes.
  AddSlice(1, 3, 5, "0123456789");
  Write();
  EXPECT_THAT(std::string(OpenStatus().message()), HasSubstr("its 10 bytes and those before are more than the 10 of"));
}

TEST_F(PartitionedBundleReaderTest, RefusesASliceOfAnotherTypeOrSize) {
  whole_.set_dtype(v1::DT_INT8);
  Write();
  EXPECT_EQ(OpenStatus().code(), absl::StatusCode::kDataLoss);
  whole_.set_dtype(v1::DT_STRING);
  Write();
  EXPECT_EQ(OpenStatus().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace lockstep
