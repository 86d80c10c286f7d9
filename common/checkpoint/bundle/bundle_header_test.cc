#include "lockstep/common/checkpoint/bundle/bundle_header.h"

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

class BundleHeaderTest : public ::testing::Test {
 protected:
  BundleHeaderTest() { EXPECT_TRUE(memory_.CreateDirectory("d").ok()); }
  void Save(const std::string& prefix, bool by_saver, int files = 1) {
    BundleWriterOptions options;
    options.written_by_saver = by_saver;
    options.num_data_files = files;
    auto writer = BundleWriter::Create(&fs_, prefix, options).value();
    ASSERT_TRUE(writer->Add("v", v1::DT_UINT8, {4}, "data").ok());
    ASSERT_TRUE(writer->Finish().ok());
  }

  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
};

TEST_F(BundleHeaderTest, NamesTheWriterAndTheDataFileCount) {
  Save("d/run", false);
  Save("d/mine", true, 3);
  EXPECT_EQ(ReadBundleHeader(&fs_, "d/run")->num_shards(), 1);
  EXPECT_FALSE(IsWrittenBySaver(&fs_, "d/run").value());
  EXPECT_EQ(ReadBundleHeader(&fs_, "d/mine")->num_shards(), 3);
  EXPECT_TRUE(IsWrittenBySaver(&fs_, "d/mine").value());
  EXPECT_TRUE(BundleReader::Open(&fs_, "d/mine").value()->written_by_saver());
}

TEST_F(BundleHeaderTest, AbsentAndDamagedOnesAreNoSavers) {
  EXPECT_TRUE(absl::IsNotFound(ReadBundleHeader(&fs_, "d/absent").status()));
  EXPECT_FALSE(IsWrittenBySaver(&fs_, "d/absent").value());
  Save("d/mine", true);
  memory_.FlipBits("d/mine.index", 3, 1);
  EXPECT_TRUE(absl::IsDataLoss(ReadBundleHeader(&fs_, "d/mine").status()));
  EXPECT_FALSE(IsWrittenBySaver(&fs_, "d/mine").value());
}

TEST_F(BundleHeaderTest, UnresponsiveFileSystemIsAnError) {
  Save("d/mine", true);
  fs_.FailOperation(1, absl::PermissionDeniedError("not yours"));
  EXPECT_TRUE(absl::IsPermissionDenied(IsWrittenBySaver(&fs_, "d/mine").status()));
}

}  // namespace
}  // namespace lockstep
