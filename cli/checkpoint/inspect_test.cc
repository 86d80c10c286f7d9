#include "lockstep/cli/checkpoint/inspect.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class InspectTest : public ::testing::Test {
 protected:
  InspectTest() { EXPECT_TRUE(fs_.CreateDirectory("d").ok()); }

  void Save(int step) {
    const std::string prefix = absl::StrCat("d/model.ckpt-", step);
    auto writer = BundleWriter::Create(&fs_, prefix).value();
    ASSERT_TRUE(writer->Add("hidden1/kernel", v1::DT_FLOAT, {2, 3}, std::string(24, 'w')).ok());
    ASSERT_TRUE(writer->Add("global_step", v1::DT_INT64, {}, std::string(8, '\0')).ok());
    ASSERT_TRUE(writer->Finish().ok());
    ASSERT_TRUE(WriteCheckpointState(&fs_, "d", prefix, {}).ok());
  }
  int Run(const std::vector<std::string>& args) {
    out_.str("");
    err_.str("");
    return Inspect(&fs_, args, out_, err_);
  }
  std::string out() const { return out_.str(); }
  std::string err() const { return err_.str(); }

  MemoryFileSystem fs_;
  std::ostringstream out_, err_;
};

TEST_F(InspectTest, PrintsATableOfTheVariables) {
  Save(7);
  EXPECT_EQ(Run({"d"}), 0);
  EXPECT_EQ(out(),
            "d/model.ckpt-7\n"
            "name            dtype    shape         bytes\n"
            "global_step     int64    []                8\n"
            "hidden1/kernel  float32  [2,3]            24\n"
            "2 variables, 32 bytes, checksums ok\n");
  EXPECT_EQ(err(), "");
}

TEST_F(InspectTest, TakesADirectoryAPrefixOrAFile) {
  Save(7);
  ASSERT_EQ(Run({"d"}), 0);
  const std::string table = out();
  for (const char* path : {"d/", "d/model.ckpt-7", "d/model.ckpt-7.index", "d/model.ckpt-7.data-00000-of-00001"}) {
    EXPECT_EQ(Run({path}), 0) << path;
    EXPECT_EQ(out(), table) << path;
  }
}

TEST_F(InspectTest, PrintsTheDigestAlone) {
  Save(7);
  Save(8);
  EXPECT_EQ(Run({"d", "--digest"}), 0);
  EXPECT_THAT(out(), MatchesRegex("[0-9a-f]{64}\n"));
  const std::string digest = out();
  EXPECT_EQ(Run({"--digest", "d/model.ckpt-7"}), 0);
  EXPECT_EQ(out(), digest);
}

TEST_F(InspectTest, PrintsJson) {
  Save(7);
  EXPECT_EQ(Run({"d", "--digest"}), 0);
  const std::string digest = out().substr(0, 64);
  for (const std::vector<std::string>& args : {std::vector<std::string>{"d", "--json"}, {"d", "--json", "--digest"}}) {
    EXPECT_EQ(Run(args), 0);
    EXPECT_EQ(out(),
              "{\"checkpoint\": \"d/model.ckpt-7\",\n"
              " \"variables\": [\n"
              "  {\"name\": \"global_step\", \"dtype\": \"int64\", \"shape\": [], \"bytes\": 8},\n"
              "  {\"name\": \"hidden1/kernel\", \"dtype\": \"float32\", \"shape\": [2,3], \"bytes\": 24}],\n"
              " \"bytes\": 32,\n"
              " \"digest\": \"" +
                  digest + "\"}\n");
  }
}

TEST_F(InspectTest, EscapesNames) {
  auto writer = BundleWriter::Create(&fs_, "d/odd").value();
  ASSERT_TRUE(writer->Add("a\"\\\n\x1b\xc3\xa4", v1::DT_UINT8, {0}, "").ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(Run({"d/odd"}), 0);
  EXPECT_THAT(out(), HasSubstr("\na\\\"\\\\\\n\\x1b\xc3\xa4  uint8"));
  EXPECT_EQ(Run({"d/odd", "--json"}), 0);
  EXPECT_THAT(out(), HasSubstr("\"a\\\"\\\\\\u000a\\u001b\xc3\xa4\""));
}

TEST_F(InspectTest, SkipsDamagedCheckpointsOfADirectory) {
  Save(7);
  Save(8);
  fs_.FlipBits("d/model.ckpt-8.data-00000-of-00001", 3, 1);
  EXPECT_EQ(Run({"d"}), 0);
  EXPECT_THAT(out(), HasSubstr("d/model.ckpt-7\n"));
  EXPECT_THAT(err(), HasSubstr("damaged: d/model.ckpt-8: "));
  EXPECT_THAT(err(), HasSubstr("variable hidden1/kernel"));
}

TEST_F(InspectTest, ExitsWithTwoForADamagedCheckpoint) {
  Save(7);
  fs_.FlipBits("d/model.ckpt-7.data-00000-of-00001", 3, 1);
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"d/model.ckpt-7"}, {"d/model.ckpt-7", "--digest"}, {"d/model.ckpt-7", "--json"}}) {
    EXPECT_EQ(Run(args), 2);
    EXPECT_EQ(out(), "");
    EXPECT_THAT(err(), HasSubstr("lockstep inspect: checkpoint d/model.ckpt-7: variable hidden1/kernel"));
  }
  EXPECT_EQ(Run({"d"}), 2);
  EXPECT_THAT(err(), HasSubstr("none of the 1 checkpoints of d can be read"));
}

TEST_F(InspectTest, DirectoryWithoutCheckpointsIsAnError) {
  EXPECT_EQ(Run({"d"}), 2);
  EXPECT_EQ(err(), "lockstep inspect: d has no checkpoint\n");
}

TEST_F(InspectTest, ExitsWithTwoForBadArguments) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{}, {"--digest"}, {"d", "e"}, {"d", "--dump"}, {"missing"}}) {
    EXPECT_EQ(Run(args), 2);
    EXPECT_EQ(out(), "");
    EXPECT_THAT(err(), HasSubstr("lockstep inspect: "));
  }
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(out(), HasSubstr("Usage: lockstep inspect"));
}

}  // namespace
}  // namespace lockstep
