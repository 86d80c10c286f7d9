#include "lockstep/cli/report/weight_names.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/tensor/shape.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

class WeightNamesTest : public ::testing::Test {
 protected:
  std::unique_ptr<BundleReader> Saved(const std::vector<std::pair<std::string, Shape>>& tensors) {
    auto writer = BundleWriter::Create(&fs_, "c").value();
    for (const auto& [name, shape] : tensors) {
      EXPECT_TRUE(writer->Add(name, v1::DT_FLOAT, shape, std::string(4 * shape.num_elements(), '\0')).ok());
    }
    EXPECT_TRUE(writer->Finish().ok());
    return BundleReader::Open(&fs_, "c").value();
  }

  MemoryFileSystem fs_;
};

TEST_F(WeightNamesTest, OmitsTensorsThatOnlyAResumeNeeds) {
  const auto checkpoint = Saved({{"a/kernel", {2, 3}},
                                 {"a/kernel/Adam", {2, 3}},
                                 {"a/kernel/Adam_1", {2, 3}},
                                 {"a/kernel/gain", {3}},
                                 {"beta1_power", {}},
                                 {"beta2_power", {}},
                                 {"bias", {3}},
                                 {"global_step", {}}});
  EXPECT_THAT(WeightNames(*checkpoint, nullptr), ElementsAre("a/kernel", "a/kernel/gain", "bias"));
}

TEST_F(WeightNamesTest, UsesTheKnownModelsVariables) {
  const auto checkpoint = Saved({{"a", {2}}, {"a/b", {2}}, {"a/b/Momentum", {2}}});
  v1::ModelSpec model;
  model.add_variables()->set_name("a/b");
  model.add_variables()->set_name("a");
  EXPECT_THAT(WeightNames(*checkpoint, &model), ElementsAre("a", "a/b"));
}

TEST_F(WeightNamesTest, AnotherRunsModelDoesNotCount) {
  const auto checkpoint = Saved({{"a", {2}}, {"a/Momentum", {2}}});
  v1::ModelSpec model;
  model.add_variables()->set_name("a");
  model.add_variables()->set_name("c");
  EXPECT_THAT(WeightNames(*checkpoint, &model), ElementsAre("a"));
}

}  // namespace
}  // namespace lockstep
