#include "lockstep/cli/checkpoint/export_command.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/formats/safetensors.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExportCommandTest : public ::testing::Test {
 protected:
  ExportCommandTest() {
    EXPECT_TRUE(fs_.CreateDirectory("d").ok());
    auto writer = BundleWriter::Create(&fs_, "d/model.ckpt-7").value();
    EXPECT_TRUE(writer->Add("hidden/kernel", v1::DT_FLOAT, {2, 3}, std::string(24, 'w')).ok());
    EXPECT_TRUE(writer->Add("hidden/kernel/Momentum", v1::DT_FLOAT, {2, 3}, std::string(24, 'm')).ok());
    EXPECT_TRUE(writer->Add("global_step", v1::DT_INT64, {}, std::string("\x07\0\0\0\0\0\0\0", 8)).ok());
    EXPECT_TRUE(writer->Finish().ok());
    EXPECT_TRUE(WriteCheckpointState(&fs_, "d", "d/model.ckpt-7", {}).ok());
  }
  int Run(const std::vector<std::string>& words) {
    out_.str("");
    err_.str("");
    return ExportCommand(&fs_, words, out_, err_);
  }
  std::vector<std::string> NamesIn(const std::string& path) {
    const auto reader = OpenTensors(&fs_, path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? (*reader)->names() : std::vector<std::string>();
  }

  MemoryFileSystem fs_;
  std::ostringstream out_, err_;
};

TEST_F(ExportCommandTest, WritesWeightsNextToNewestCheckpoint) {
  EXPECT_EQ(Run({"d"}), 0) << err_.str();
  EXPECT_EQ(out_.str(), "wrote d/model.ckpt-7.safetensors, 1 variables, 24 bytes, of d/model.ckpt-7\n");
  const auto reader = SafetensorsReader::Open(&fs_, "d/model.ckpt-7.safetensors");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->names(), ElementsAre("hidden/kernel"));
  EXPECT_EQ((*reader)->Read("hidden/kernel")->bytes(), std::string(24, 'w'));
  EXPECT_EQ((*reader)->metadata().at("global_step"), "7");
}

TEST_F(ExportCommandTest, TakesFormatFromFlagOrFileName) {
  EXPECT_EQ(Run({"d/model.ckpt-7", "--out=weights.npz"}), 0) << err_.str();
  EXPECT_THAT(NamesIn("weights.npz"), ElementsAre("hidden/kernel"));
  EXPECT_EQ(Run({"d/model.ckpt-7.index", "--format=npz"}), 0) << err_.str();
  EXPECT_THAT(NamesIn("d/model.ckpt-7.npz"), ElementsAre("hidden/kernel"));
  EXPECT_EQ(Run({"d", "--format=npz", "--out=a.safetensors"}), 2);
  EXPECT_EQ(err_.str(), "lockstep export: --out=a.safetensors ends as safetensors does, --format is npz\n");
  EXPECT_EQ(Run({"d", "--format=onnx"}), 2);
  EXPECT_EQ(err_.str(), "lockstep export: --format=\"onnx\" is none of the formats, safetensors and npz\n");
}

TEST_F(ExportCommandTest, OptimizerStateComesOnDemand) {
  EXPECT_EQ(Run({"d", "--out=all.npz", "--optimizer_state"}), 0) << err_.str();
  EXPECT_THAT(NamesIn("all.npz"), ElementsAre("global_step", "hidden/kernel", "hidden/kernel/Momentum"));
  EXPECT_EQ(OpenTensors(&fs_, "all.npz").value()->Describe("global_step")->dtype, v1::DT_INT64);
}

TEST_F(ExportCommandTest, TheRunsRecordSaysWhichAreVariables) {
  v1::RunRecord record;
  record.mutable_model()->add_variables()->set_name("hidden/kernel");
  record.mutable_model()->add_variables()->set_name("hidden/kernel/Momentum");
  ASSERT_TRUE(WriteRunRecord(&fs_, "d", record).ok());
  EXPECT_EQ(Run({"d", "--out=w.npz"}), 0) << err_.str();
  EXPECT_THAT(NamesIn("w.npz"), ElementsAre("hidden/kernel", "hidden/kernel/Momentum"));
}

TEST_F(ExportCommandTest, ConvertsAFileOfWeights) {
  ASSERT_EQ(Run({"d", "--out=w.npz"}), 0);
  EXPECT_EQ(Run({"w.npz", "--out=w.safetensors"}), 0) << err_.str();
  EXPECT_EQ(OpenTensors(&fs_, "w.safetensors").value()->Read("hidden/kernel")->bytes(), std::string(24, 'w'));
  EXPECT_EQ(Run({"w.npz", "--out=w.npz"}), 2);
}

TEST_F(ExportCommandTest, DamagedCheckpointExitsWithTwo) {
  fs_.FlipBits("d/model.ckpt-7.data-00000-of-00001", 3, 1);
  EXPECT_EQ(Run({"d/model.ckpt-7", "--out=w.npz"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("lockstep export: checkpoint d/model.ckpt-7: variable "));
  EXPECT_FALSE(fs_.Exists("w.npz").value());
  EXPECT_FALSE(fs_.Exists("w.npz.tmp").value());
}

TEST_F(ExportCommandTest, ExitsWithTwoForBadArguments) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"missing"}, {"d", "--dump"}, {"d", "--out=no/such/folder.npz"}}) {
    EXPECT_EQ(Run(words), 2) << absl::StrCat(words.size());
    EXPECT_THAT(err_.str(), HasSubstr("lockstep export: "));
  }
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("Usage: lockstep export"));
}

}  // namespace
}  // namespace lockstep
