#include "lockstep/server/ps/versions/estimate_versions.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {
namespace {

// A layout with one variable, "w", of two elements.
std::shared_ptr<const ParameterLayout> Layout() {
  v1::ModelSpec model;
  v1::VariableSpec* const variable = model.add_variables();
  variable->set_name("w");
  variable->set_dtype(v1::DT_FLOAT);
  variable->add_shape(2);
  variable->set_trainable(true);
  return std::make_shared<ParameterLayout>(ParameterLayout::Create(model).value());
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Returns the encoded differences of a segment in which one element differs.
std::string Difference(uint16_t index, float difference) {
  return BytesOf<uint16_t>({index}) + BytesOf<float>({difference});
}

class EstimateVersionsTest : public ::testing::Test {
 protected:
  // Runs an update that changes the second element of both slots' estimates by `difference`.
  void Update(float difference) {
    estimates_.BeginUpdate();
    for (int64_t slot : {0, 1}) estimates_.AddToEstimate(w(), slot, Difference(1, difference));
    estimates_.Commit();
  }
  float ValueOf(int64_t slot, int element) const {
    return estimates_.current()->at(slot)->as<float>()[w().flat_offset + element];
  }
  const ParameterLayout::Segment& w() const { return layout_->segments()[0]; }

  const std::shared_ptr<const ParameterLayout> layout_ = Layout();
  EstimateVersions estimates_{layout_, /*num_slots=*/2};
};

TEST_F(EstimateVersionsTest, StartAtZero) {
  estimates_.Clear();
  ASSERT_EQ(estimates_.current()->size(), 2u);
  EXPECT_EQ(ValueOf(0, 0), 0);
  EXPECT_EQ(ValueOf(1, 1), 0);
}

TEST_F(EstimateVersionsTest, DifferencesAddUpFromVersionToVersion) {
  estimates_.Clear();
  const auto before = estimates_.current();
  estimates_.BeginUpdate();
  const float* const first = estimates_.AddToEstimate(w(), 0, Difference(1, 3));
  const float* const second = estimates_.AddToEstimate(w(), 1, "");
  EXPECT_EQ(first[0], 0);
  EXPECT_EQ(first[1], 3);
  EXPECT_EQ(second[1], 0);
  EXPECT_EQ(estimates_.current(), before) << "the old version stays current until the commit";
  estimates_.Commit();
  EXPECT_EQ(estimates_.current()->at(0)->as<float>() + w().flat_offset, first);
  Update(4);
  EXPECT_EQ(ValueOf(0, 0), 0);
  EXPECT_EQ(ValueOf(0, 1), 7);
  EXPECT_EQ(ValueOf(1, 1), 4);
  EXPECT_EQ(before->at(0)->as<float>()[w().flat_offset + 1], 0) << "a reader still has the old version";
}

TEST_F(EstimateVersionsTest, TakeTurnsInTwoBuffersForEachSlot) {
  estimates_.Clear();
  std::set<const AlignedBuffer*> buffers;
  for (int i = 0; i < 10; ++i) {
    Update(1);
    for (const auto& estimate : *estimates_.current()) buffers.insert(estimate.get());
  }
  EXPECT_EQ(buffers.size(), 2 * 2u);
}

TEST_F(EstimateVersionsTest, WithoutCompressionThereAreNone) {
  EstimateVersions none(layout_, 0);
  none.Clear();
  none.BeginUpdate();
  none.Commit();
  EXPECT_TRUE(none.current()->empty());
}

TEST_F(EstimateVersionsTest, RestoreReadsEverySlot) {
  MemoryFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("d").ok());
  {
    auto writer = BundleWriter::Create(&fs, "d/two").value();
    ASSERT_TRUE(writer->Add("w/GradientEstimate_0", v1::DT_FLOAT, {2}, BytesOf<float>({1, 2})).ok());
    ASSERT_TRUE(writer->Add("w/GradientEstimate_1", v1::DT_FLOAT, {2}, BytesOf<float>({3, 4})).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  const auto reader = BundleReader::Open(&fs, "d/two").value();
  std::vector<BundleReader::Place> places;
  ASSERT_TRUE(estimates_.Restore(*reader, &places).ok());
  ASSERT_TRUE(reader->VerifyInto(places, nullptr).ok());
  Update(10);
  EXPECT_EQ(ValueOf(0, 0), 1);
  EXPECT_EQ(ValueOf(0, 1), 12);
  EXPECT_EQ(ValueOf(1, 1), 14);
  EstimateVersions more(layout_, 3);
  EXPECT_TRUE(absl::IsNotFound(more.Restore(*reader, &places)));
}

}  // namespace
}  // namespace lockstep
