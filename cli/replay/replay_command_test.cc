#include "lockstep/cli/replay/replay_command.h"

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/digest.h"
#include "re2/re2.h"

namespace lockstep {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kConfig[] = R"(
    model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
    input { split { name: "train" synthetic { examples: 40 shape: 4 classes: 3 } } batch_size: 4 }
    optimizer { sgd {} learning_rate { initial: 0.1 } }
    training { replicas_to_aggregate: 2 steps: 6 }
    checkpoint { every_steps: 2 keep: 0 })";

class ReplayCommandTest : public ::testing::Test {
 protected:
  ReplayCommandTest() { EXPECT_EQ(FileSystem::Real()->CreateDirectory(directory_), absl::OkStatus()); }

  // Returns all output.
  std::string Train(const std::vector<std::string>& flags = {}, const std::string& logdir = "run") {
    const std::string config = JoinPath(directory_, "c.textproto");
    EXPECT_EQ(WriteFileAtomically(FileSystem::Real(), config, kConfig), absl::OkStatus());
    std::vector<std::string> words = {config, absl::StrCat("--logdir=", JoinPath(directory_, logdir))};
    words.insert(words.end(), flags.begin(), flags.end());
    std::ostringstream output;
    exit_code_ = LocalCommand(FileSystem::Real(), words, output, output);
    return output.str();
  }
  std::string Replay(const std::vector<std::string>& words) {
    std::ostringstream output;
    exit_code_ = ReplayCommand(FileSystem::Real(), words, output, output);
    return output.str();
  }

  std::string DigestOf(const std::string& checkpoint) {
    const auto reader = BundleReader::Open(FileSystem::Real(), JoinPath(directory_, checkpoint));
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? CheckpointDigest(**reader).value() : "";
  }

  const std::string directory_ =
      absl::StrCat(getenv("TEST_TMPDIR"), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::string logdir_ = JoinPath(directory_, "run");
  int exit_code_ = -1;
};

TEST_F(ReplayCommandTest, StepsAreCompared) {
  Train();
  const std::string output = Replay({"--logdir=" + logdir_, "--steps=3..6", "--dump=" + directory_ + "/state"});
  EXPECT_EQ(exit_code_, kExitDone) << output;
  EXPECT_THAT(output, ContainsRegex("step 4  loss [0-9.]+  the same bits as .*/model.ckpt-4\n"
                                    "step 5  loss [0-9.]+\n"
                                    "step 6  loss [0-9.]+  the same bits as .*/model.ckpt-6\n"
                                    "computed from .*/model.ckpt-2; step 6 has the digest [0-9a-f]+\n"
                                    "wrote .*/state\n"));
  EXPECT_THAT(output, HasSubstr("digest " + DigestOf("run/model.ckpt-6")));
  EXPECT_EQ(DigestOf("state"), DigestOf("run/model.ckpt-6"));
  // Uses a learning rate that differs from the run's.
  const std::string differs =
      Replay({"--logdir=" + logdir_, "--steps=2..4", "--set=optimizer.learning_rate.initial=0.2"});
  EXPECT_EQ(exit_code_, kExitFailed) << differs;
  EXPECT_THAT(differs, ContainsRegex("step 4 differs from .*/model.ckpt-4 in logits/"));
}

TEST_F(ReplayCommandTest, SlotIsPrintedAndDumped) {
  Train();
  const std::string output = Replay({"--logdir=" + logdir_, "--step=4", "--slot=1", "--dump=" + directory_ + "/slot"});
  EXPECT_EQ(exit_code_, kExitDone) << output;
  EXPECT_THAT(output, ContainsRegex("step 4  slot 1  loss [0-9.]+\n"
                                    "the batch of slot 1 of step 3, with the values of step 3, computed from .*-2\n"));
  const auto reader = BundleReader::Open(FileSystem::Real(), directory_ + "/slot");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->names(), ::testing::ElementsAre("gradient/logits/bias", "gradient/logits/kernel",
                                                         "input/features", "input/labels", "loss"));
  EXPECT_THAT(output, HasSubstr("\ndigest " + DigestOf("slot") + "\n"));
}

TEST_F(ReplayCommandTest, ProgramComputesTheReplay) {
  const std::string request = JoinPath(directory_, "request");
  // The first part of the request names the file for the exit code.
  const std::string script =
      absl::StrCat("echo \"$LOCKSTEP_REPLAY\" | tr '\\037' '\\n' > ", request, "; echo 2 > $(head -n 1 ", request, ")");
  const std::string output =
      Replay({"--logdir=runs/net", "--steps=1..2", "--dump=/state", "--set=a=b", "--", "sh", "-c", script});
  EXPECT_EQ(exit_code_, 2) << output;
  EXPECT_EQ(output, "");
  const std::vector<std::string> lines = absl::StrSplit(ReadFile(FileSystem::Real(), request).value(), '\n');
  ASSERT_EQ(lines.size(), 6);
  EXPECT_THAT(lines[1], ContainsRegex("^--logdir=/.*/runs/net$"));
  EXPECT_THAT(std::vector<std::string>(lines.begin() + 2, lines.end()),
              ::testing::ElementsAre("--steps=1..2", "--dump=/state", "--set=a=b", ""));
  EXPECT_FALSE(FileSystem::Real()->Exists(lines[0]).value());
}

TEST_F(ReplayCommandTest, ProgramEndsWithoutComputing) {
  const std::vector<std::string> words = {"--logdir=run", "--step=1", "--slot=0", "--", "sh", "-c"};
  const std::pair<const char*, const char*> cases[] = {{"exit 0", "the program ended with exit code 0 before a worker"},
                                                       {"kill -9 $$", "the program was killed by SIGKILL before"}};
  for (const auto& [script, text] : cases) {
    std::vector<std::string> command = words;
    command.push_back(script);
    EXPECT_THAT(Replay(command), HasSubstr(text));
    EXPECT_EQ(exit_code_, kExitFailed);
  }
}

TEST_F(ReplayCommandTest, ErrorOfTheRunNamesTheCommand) {
  const std::string steep = "--set=optimizer.learning_rate.initial=1e38";
  const std::string policy = "--set=training.first_arrivals.total_replicas=2";
  const std::vector<std::vector<std::string>> runs = {{steep}, {steep, policy, "--set=training.record_order=true"}};
  for (const std::vector<std::string>& flags : runs) {
    const std::string output = Train(flags, absl::StrCat("run_", flags.size()));
    EXPECT_EQ(exit_code_, kExitFailed);
    std::string command;
    ASSERT_TRUE(RE2::PartialMatch(output, "lockstep replay (.*) computes it again", &command)) << output;
    const std::vector<std::string> words = absl::StrSplit(command, ' ');
    EXPECT_THAT(Replay(words), ContainsRegex("loss (-?nan|-?inf|[0-9.e+]+)\n"));
    EXPECT_EQ(exit_code_, kExitDone);
  }
  EXPECT_THAT(Train({steep, policy}, "unrecorded"), Not(HasSubstr("lockstep replay")));
  EXPECT_EQ(exit_code_, kExitFailed);
}

TEST_F(ReplayCommandTest, WrongArguments) {
  EXPECT_THAT(Replay({"--logdir=" + logdir_}), HasSubstr("either --steps or --step with --slot"));
  EXPECT_EQ(exit_code_, kExitBadConfiguration);
  EXPECT_THAT(Replay({"--logdir=" + logdir_, "--steps=0..1", "--"}), HasSubstr("there is no program after \"--\""));
  EXPECT_EQ(exit_code_, kExitBadConfiguration);
  EXPECT_THAT(Replay({"--logdir=" + logdir_, "--step=1"}), HasSubstr("either --steps or --step with --slot"));
  EXPECT_THAT(Replay({"--logdir=" + logdir_, "--steps=4..4"}), HasSubstr("--steps is \"4..4\", must be A..B"));
  EXPECT_THAT(Replay({"--logdir=" + directory_, "--steps=0..1"}), HasSubstr("is not a run's logdir"));
  EXPECT_EQ(exit_code_, kExitBadConfiguration);
  Train();
  EXPECT_THAT(Replay({"--logdir=" + logdir_, "--step=1", "--slot=2"}),
              HasSubstr("there is no slot 2 of step 1: steps begin at 1, and each has 2"));
  EXPECT_THAT(Replay({"--logdir=" + logdir_, "--steps=0..1", "--set=training.replicas_to_aggregate=-1"}),
              HasSubstr("training.replicas_to_aggregate is -1, must be in [1, 1048576]"));
  EXPECT_EQ(exit_code_, kExitBadConfiguration);
}

}  // namespace
}  // namespace lockstep
