#include "lockstep/common/checkpoint/formats/v1_checkpoint.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/index_table.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MadeCheckpointTest : public testing::Test {
 protected:
  MadeCheckpointTest() {
    v1::SavedSliceMeta* const meta = all_.mutable_meta()->add_tensor();
    meta->set_name("w");
    meta->set_type(v1::DT_FLOAT);
    meta->mutable_shape()->add_dim()->set_size(2);
    slice_.mutable_data()->set_name("w");
    slice_.mutable_data()->mutable_slice()->add_extent();
    slice_.mutable_data()->mutable_data()->set_float_val(std::string(8, '\0'));
  }

  absl::Status Read() {
    const std::string table =
        EncodeIndexTable({{"", all_.SerializeAsString()}, {"some key", slice_.SerializeAsString()}});
    EXPECT_EQ(WriteFileAtomically(&fs_, "/c", table), absl::OkStatus());
    const auto reader = V1CheckpointReader::Open(&fs_, "/c");
    return reader.ok() ? (*reader)->Read("w").status() : reader.status();
  }

  MemoryFileSystem fs_;
  v1::SavedTensorSlices all_, slice_;
};

TEST_F(MadeCheckpointTest, ContradictionsAreDamage) {
  EXPECT_EQ(Read(), absl::OkStatus());
  slice_.mutable_data()->mutable_data()->set_float_val("123");
  EXPECT_THAT(std::string(Read().message()), HasSubstr("/c: w: a slice of 2 elements of float32 has 3 bytes"));
  slice_.mutable_data()->mutable_slice()->mutable_extent(0)->set_start(1);
  slice_.mutable_data()->mutable_slice()->mutable_extent(0)->set_length(1);
  slice_.mutable_data()->mutable_data()->set_float_val("1234");
  EXPECT_TRUE(absl::IsDataLoss(Read()));
  slice_.mutable_data()->set_name("other");
  EXPECT_THAT(std::string(Read().message()), HasSubstr("lacks other"));
  all_.clear_meta();
  EXPECT_THAT(std::string(Read().message()), HasSubstr("has no list of tensors"));
}

// A checkpoint of two shards. Each has half of w[4], and the second one also has b[1].
class ShardsTest : public testing::Test {
 protected:
  ShardsTest() {
    v1::SavedTensorSlices first, second;
    AddMeta("w", 4, &first);
    AddMeta("w", 4, &second);
    AddMeta("b", 1, &second);
    const float values[] = {1, 2, 3, 4};
    Write("/net-00000-of-00002", first, {Slice("w", 0, 2, values)});
    Write("/net-00001-of-00002", second, {Slice("b", 0, 1, values), Slice("w", 2, 2, values + 2)});
  }

  void AddMeta(const std::string& name, int64_t size, v1::SavedTensorSlices* all) {
    v1::SavedSliceMeta* const meta = all->mutable_meta()->add_tensor();
    meta->set_name(name);
    meta->set_type(v1::DT_FLOAT);
    meta->mutable_shape()->add_dim()->set_size(size);
  }
  std::string Slice(const std::string& name, int64_t start, int64_t length, const float* values) {
    v1::SavedTensorSlices slice;
    slice.mutable_data()->set_name(name);
    auto* const extent = slice.mutable_data()->mutable_slice()->add_extent();
    extent->set_start(start);
    extent->set_length(length);
    slice.mutable_data()->mutable_data()->set_float_val(
        std::string(reinterpret_cast<const char*>(values), static_cast<size_t>(length) * sizeof(float)));
    return slice.SerializeAsString();
  }
  void Write(const std::string& path, const v1::SavedTensorSlices& all, const std::vector<std::string>& slices) {
    std::map<std::string, std::string> table = {{"", all.SerializeAsString()}};
    for (const std::string& slice : slices) table[std::string(1 + table.size(), 'k')] = slice;
    ASSERT_EQ(WriteFileAtomically(&fs_, path, EncodeIndexTable(table)), absl::OkStatus());
  }

  MemoryFileSystem fs_;
};

TEST_F(ShardsTest, AnyNameMeansTheWholeCheckpoint) {
  for (const std::string path : {"/net", "/net-00000-of-00002", "/net-00001-of-00002",
                                 "/net-?????"
                                 "-of-00002"}) {
    ASSERT_TRUE(IsV1Checkpoint(&fs_, path)) << path;
    const auto reader = V1CheckpointReader::Open(&fs_, path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_THAT((*reader)->names(), ElementsAre("b", "w"));
    EXPECT_THAT((*reader)->Read("w")->flat<float>(), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT((*reader)->Read("b")->flat<float>(), ElementsAre(1));
  }
}

TEST_F(ShardsTest, UnstoredShapeIsDataLossUnallocated) {
  for (const int64_t size : {int64_t{1} << 45, int64_t{1} << 62}) {
    v1::SavedTensorSlices all;
    AddMeta("w", size, &all);
    Write("/large", all, {});
    const auto reader = V1CheckpointReader::Open(&fs_, "/large");
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_TRUE(absl::IsDataLoss((*reader)->Read("w").status()));
  }
}

TEST_F(ShardsTest, FilesOfAnotherKindAreNoShards) {
  for (const char* const path : {"/net-00000-of-00010", "/net-00000-of-00020"}) {
    ASSERT_EQ(WriteFileAtomically(&fs_, path, std::string(100, 'x')), absl::OkStatus());
  }
  const auto reader = V1CheckpointReader::Open(&fs_, "/net");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->names(), ElementsAre("b", "w"));
}

TEST_F(ShardsTest, AMissingShardIsNamed) {
  ASSERT_EQ(fs_.Remove("/net-00000-of-00002"), absl::OkStatus());
  ASSERT_TRUE(IsV1Checkpoint(&fs_, "/net-00001-of-00002"));
  EXPECT_THAT(std::string(V1CheckpointReader::Open(&fs_, "/net-00001-of-00002").status().message()),
              HasSubstr("/net-00000-of-00002"));
}

TEST_F(ShardsTest, RefusesAShardBeyondTheCount) {
  v1::SavedTensorSlices other;
  AddMeta("c", 1, &other);
  Write("/net-00002-of-00002", other, {});
  ASSERT_TRUE(IsV1Checkpoint(&fs_, "/net-00002-of-00002"));
  const absl::Status status = V1CheckpointReader::Open(&fs_, "/net-00002-of-00002").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/net-00002-of-00002 is no shard of a checkpoint: of 2 shards"));
}

TEST_F(ShardsTest, ShardsOfTwoCheckpointsAreNotMixed) {
  v1::SavedTensorSlices other;
  AddMeta("w", 3, &other);
  Write("/net-00000-of-00003", other, {});
  EXPECT_THAT(std::string(V1CheckpointReader::Open(&fs_, "/net").status().message()),
              HasSubstr("/net-00000-of-00002 and /net-00000-of-00003"));
  EXPECT_TRUE(V1CheckpointReader::Open(&fs_, "/net-00000-of-00002").ok());
  Write("/net-00000-of-00002", other, {});
  EXPECT_THAT(std::string(V1CheckpointReader::Open(&fs_, "/net-00001-of-00002").status().message()),
              HasSubstr("w has another type or shape in another shard"));
}

TEST_F(MadeCheckpointTest, AnotherFileIsNone) {
  ASSERT_EQ(WriteFileAtomically(&fs_, "/x", std::string(100, 'x')), absl::OkStatus());
  EXPECT_FALSE(IsV1Checkpoint(&fs_, "/x"));
  EXPECT_FALSE(IsV1Checkpoint(&fs_, "/none"));
}

}  // namespace
}  // namespace lockstep
