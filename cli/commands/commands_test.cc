#include "lockstep/cli/commands/commands.h"

#include <stdlib.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/cli/checkpoint/export_command.h"
#include "lockstep/cli/commands/testing/called_command.h"

namespace lockstep {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kConfig[] = R"(
  model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
  input {
    split { name: "train" synthetic { examples: 600 shape: 4 classes: 3 noise: 0.1 } }
    split { name: "test" synthetic { examples: 150 shape: 4 classes: 3 noise: 0.1 stream: 1 } }
    batch_size: 8
  }
  optimizer { sgd {} learning_rate { initial: 0.5 } }
  training { steps: 100 replicas_to_aggregate: 2 seed: 1 })";

class CommandsTest : public ::testing::Test {
 protected:
  CommandsTest() {
    EXPECT_EQ(fs_->CreateDirectory(directory_), absl::OkStatus());
    EXPECT_EQ(WriteFileAtomically(fs_, config_, kConfig), absl::OkStatus());
  }
  std::string Path(const std::string& name) { return JoinPath(directory_, name); }

  FileSystem* const fs_ = FileSystem::Real();
  const std::string directory_ =
      absl::StrCat(getenv("TEST_TMPDIR"), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::string config_ = JoinPath(directory_, "clusters.textproto");
};

TEST_F(CommandsTest, TrainsThenEvaluatesAndPredicts) {
  const std::string logdir = absl::StrCat("--logdir=", Path("run"));
  const CalledCommand trained = Call(LocalCommand, {config_, logdir});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.out, StartsWith("training with 1 worker in this process, 100 steps of 2 slots, logdir "));
  EXPECT_THAT(trained.out, HasSubstr("finished at step 100 in "));
  EXPECT_THAT(trained.out, HasSubstr("test: 150 examples: accuracy "));
  EXPECT_THAT(trained.out, HasSubstr(absl::StrCat("checkpoint  ", Path("run/model.ckpt-100"))));

  const CalledCommand again = Call(LocalCommand, {config_, logdir});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("finished at step 100 already; to continue: --steps=MORE"));

  const CalledCommand more = Call(LocalCommand, {config_, logdir, "--steps=120"});
  EXPECT_EQ(more.exit_code, 0) << more.err;
  EXPECT_THAT(more.out, HasSubstr("resuming from step 100"));
  EXPECT_TRUE(fs_->Exists(Path("run/model.ckpt-120.index")).value());

  const CalledCommand evaluated = Call(EvalCommand, {logdir});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_THAT(evaluated.out, StartsWith("step 120  test: 150 examples: accuracy "));
  const CalledCommand json = Call(EvalCommand, {"--checkpoint", Path("run/model.ckpt-100"), "--split=train", "--json"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_THAT(json.out,
              HasSubstr("\"step\": 100, \"split\": \"train\", \"examples\": 600, \"metrics\": {\"accuracy\": "));
  const CalledCommand watched = Call(EvalCommand, {logdir, "--watch"});
  EXPECT_EQ(watched.exit_code, 0) << watched.err;
  EXPECT_THAT(watched.out, StartsWith("step 120  test: "));
  EXPECT_EQ(fs_->ListDirectory(Path("run/eval"))->size(), 1);

  const CalledCommand predicted = Call(PredictCommand, {logdir, absl::StrCat("--output=", Path("out.csv"))});
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  const std::vector<std::string> lines = absl::StrSplit(ReadFile(fs_, Path("out.csv")).value(), '\n');
  EXPECT_EQ(lines.size(), 152);
  EXPECT_EQ(lines[0], "example,label,class,output_0,output_1,output_2");
}

TEST_F(CommandsTest, WatchesUntilARunEndsEarly) {
  const std::string logdir = absl::StrCat("--logdir=", Path("run"));
  // 600 examples make 37 batches of 16.
  const CalledCommand trained = Call(LocalCommand, {config_, logdir, "--set=input.epochs=1"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const CalledCommand watched = Call(EvalCommand, {logdir, "--watch"});
  EXPECT_EQ(watched.exit_code, 0) << watched.err;
  EXPECT_THAT(watched.out, HasSubstr("test: 150 examples: accuracy "));
}

TEST_F(CommandsTest, PredictsTheExamplesOfAFile) {
  const auto write = [&](const char* name, const char* text) {
    EXPECT_EQ(WriteFileAtomically(fs_, Path(name), text), absl::OkStatus());
    return Path(name);
  };
  write("train.csv", "x,sign\n1,1\n-1,0\n2,1\n-2,0\n");
  const std::string config = write("sign.textproto", R"(
      model { layer { name: "y" dense { units: 2 } } loss { softmax_cross_entropy {} } }
      input {
        split { name: "train" csv { file: "train.csv" column { name: "x" } column { name: "sign" type: LABEL } } }
        batch_size: 4
      }
      optimizer { sgd {} learning_rate { initial: 0.5 } }
      training { steps: 50 })");
  const std::string logdir = absl::StrCat("--logdir=", Path("sign"));
  const CalledCommand trained = Call(LocalCommand, {config, logdir});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string file = absl::StrCat("--file=", write("new.csv", "sign,x\n0,3\n0,-3\n0,4\n"));
  const std::string output = absl::StrCat("--output=", Path("out.csv"));
  const CalledCommand predicted = Call(PredictCommand, {logdir, "--split=train", file, output});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_EQ(predicted.out, absl::StrCat("wrote ", Path("out.csv"), ", 3 examples\n"));
  const std::vector<std::string> lines = absl::StrSplit(ReadFile(fs_, Path("out.csv")).value(), '\n');
  ASSERT_EQ(lines.size(), 5);
  EXPECT_THAT(lines[1], StartsWith("0,0,1,"));
  EXPECT_THAT(lines[2], StartsWith("1,0,0,"));
  EXPECT_THAT(lines[3], StartsWith("2,0,1,"));

  const std::string unlabeled = absl::StrCat("--file=", write("unlabeled.csv", "x\n3\n-3\n"));
  const CalledCommand probabilities =
      Call(PredictCommand, {logdir, "--split=train", unlabeled, output, "--probabilities",
                            "--set=evaluation.class_name[]=minus", "--set=evaluation.class_name[]=plus"});
  ASSERT_EQ(probabilities.exit_code, 0) << probabilities.err;
  const std::vector<std::string> named = absl::StrSplit(ReadFile(fs_, Path("out.csv")).value(), '\n');
  ASSERT_EQ(named.size(), 4);
  EXPECT_EQ(named[0], "example,class,class_name,probability_0,probability_1");
  EXPECT_THAT(named[1], ContainsRegex("^0,1,plus,[0-9.e-]+,0[.]9"));
  EXPECT_THAT(named[2], StartsWith("1,0,minus,0.9"));

  const CalledCommand unlike = Call(
      PredictCommand, {logdir, "--split=train", absl::StrCat("--file=", write("unlike.csv", "a,b\n1,2\n")), output});
  EXPECT_EQ(unlike.exit_code, 2);
  EXPECT_THAT(unlike.err, HasSubstr("column \"x\""));
}

TEST_F(CommandsTest, MatchesReorderedColumnsByName) {
  const auto write = [&](const char* name, const char* text) {
    EXPECT_EQ(WriteFileAtomically(fs_, Path(name), text), absl::OkStatus());
    return Path(name);
  };
  // The class is the sign of x. The values of n are small.
  write("train.csv", "x,n,sign\n1,0.1,1\n-1,0.1,0\n2,-0.1,1\n-2,-0.1,0\n");
  const std::string columns = R"(column { name: "n" } column { name: "x" } column { name: "sign" type: LABEL } } })";
  const std::string config = write("order.textproto", absl::StrCat(R"(
      model { layer { name: "y" dense { units: 2 } } loss { softmax_cross_entropy {} } }
      input { split { name: "train" csv { file: "train.csv" )",
                                                                   columns, R"(
              split { name: "test" csv { file: "train.csv" )",
                                                                   columns, R"( batch_size: 4 }
      optimizer { sgd {} learning_rate { initial: 0.5 } }
      training { steps: 50 })")
                                                          .c_str());
  const std::string logdir = absl::StrCat("--logdir=", Path("order"));
  ASSERT_EQ(Call(LocalCommand, {config, logdir}).exit_code, 0);
  const std::string swapped = write("swapped.csv", "n,sign,x\n-0.5,1,3\n0.5,0,-3\n");
  const std::string output = absl::StrCat("--output=", Path("out.csv"));
  for (const char* split : {"--split=train", "--split=test"}) {
    const CalledCommand predicted = Call(PredictCommand, {logdir, split, absl::StrCat("--file=", swapped), output});
    ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
    const std::vector<std::string> lines = absl::StrSplit(ReadFile(fs_, Path("out.csv")).value(), '\n');
    ASSERT_EQ(lines.size(), 4);
    EXPECT_THAT(lines[1], StartsWith("0,1,1,")) << split;
    EXPECT_THAT(lines[2], StartsWith("1,0,0,")) << split;
  }
  const CalledCommand evaluated = Call(EvalCommand, {logdir, absl::StrCat("--set=input.split[1].csv.file=", swapped)});
  EXPECT_THAT(evaluated.out, HasSubstr("accuracy 1")) << evaluated.err;
}

TEST_F(CommandsTest, RefusesNonFiniteStartValues) {
  const std::string logdir = absl::StrCat("--logdir=", Path("first"));
  ASSERT_EQ(Call(LocalCommand, {config_, logdir}).exit_code, 0);
  const std::string weights = Path("weights.safetensors");
  ASSERT_EQ(Call(ExportCommand, {Path("first"), "--format=safetensors", absl::StrCat("--out=", weights)}).exit_code, 0);
  std::string bytes = ReadFile(fs_, weights).value();
  bytes.replace(bytes.size() - 4, 4, "\xff\xff\xff\x7f");
  ASSERT_EQ(WriteFileAtomically(fs_, weights, bytes), absl::OkStatus());
  const std::string set = absl::StrCat("--set=checkpoint.warm_start=", weights);
  const std::string second = absl::StrCat("--logdir=", Path("second"));
  for (const CalledCommand& result : {Call(CheckCommand, {config_, set}), Call(LocalCommand, {config_, set, second})}) {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, ContainsRegex("warm_start: .*weights.safetensors: element [0-9]+ of logits/.* is -?nan"));
  }
  EXPECT_FALSE(fs_->Exists(absl::StrCat(Path("second"), "/model.ckpt-0.index")).value());
}

TEST_F(CommandsTest, KeepsNothingWithoutALogdir) {
  const CalledCommand trained = Call(RunCommand, {config_, "--master=", "--logdir=", "--workers=2"});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.out, StartsWith("training with 2 workers in this process, 100 steps of 2 slots, nothing kept\n"));
  EXPECT_THAT(trained.out, HasSubstr("not evaluated: nothing was kept"));
}

TEST_F(CommandsTest, ChecksConfigurationDataAndModel) {
  const CalledCommand good = Call(CheckCommand, {config_});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out, ContainsRegex("^train: 600 examples of float32.4., 3 classes, CRC32C [0-9a-f]{8}\n"
                                      "test: 150 examples of float32.4., 3 classes, CRC32C [0-9a-f]{8}\n"
                                      "100 steps of 2 slots of 8 examples: 2.67 epochs\n"));
  EXPECT_THAT(good.out, HasSubstr("\nlogits  dense  [3]             15 "));
  EXPECT_THAT(good.out, HasSubstr(absl::StrCat(config_, " is good\n")));
}

TEST_F(CommandsTest, ReportsConfigurationErrorInOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"--set=training.steps=0", "training.steps"},
      {"--set=training.stps=10", "did you mean \"steps\""},
      {"--set=model.layer[0].input=nowhere", "nowhere"},
      {"--set=optimizer.adam.beta1=2", "optimizer.adam.beta1"},
      {"--step=10", "did you mean --steps"},
  };
  for (const auto& [flag, message] : cases) {
    for (const Command command : {CheckCommand, RunCommand, LocalCommand}) {
      const CalledCommand bad = Call(command, {
                                                  config_,
                                                  flag,
                                              });
      EXPECT_EQ(bad.exit_code, 2) << flag;
      EXPECT_THAT(bad.err, HasSubstr(message));
      EXPECT_EQ(bad.err.find('\n'), bad.err.size() - 1) << bad.err;
    }
  }
  EXPECT_FALSE(fs_->Exists("runs").value()) << "nothing is written for a wrong configuration";
}

TEST_F(CommandsTest, WritesAStartingConfigurationOnce) {
  const CalledCommand written = Call(NewCommand, {Path("fresh")});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr(absl::StrCat("./lockstep run ", Path("fresh/run.textproto"))));
  const std::string text = ReadFile(fs_, Path("fresh/run.textproto")).value();
  EXPECT_EQ(text, ReadFile(fs_, "examples/fashion_mnist.textproto").value());
  const CalledCommand again = Call(NewCommand, {Path("fresh")});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("exists already; it is not overwritten"));
}

TEST_F(CommandsTest, WritesTrainableConfigurationForTable) {
  std::string rows = "size,colour,kind\n";
  for (int i = 0; i < 200; ++i)
    absl::StrAppend(&rows, i % 50, ".5,", i % 3 ? "red" : "blue", ",", i % 50 < 25 ? "small" : "large", "\n");
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("things.csv"), rows).ok());
  const CalledCommand written =
      Call(NewCommand, {Path("things"), absl::StrCat("--csv=", Path("things.csv")), "--label=kind"});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("  size: a number, standardized\n"));
  EXPECT_THAT(written.out, HasSubstr("  kind: the class to predict, one of 2\n"));
  const CalledCommand checked = Call(CheckCommand, {Path("things/run.textproto")});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  const CalledCommand trained =
      Call(LocalCommand, {Path("things/run.textproto"), absl::StrCat("--logdir=", Path("things/logdir"))});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("test: "));
  EXPECT_EQ(Call(NewCommand, {Path("x"), "--label=y"}).exit_code, 2);
  EXPECT_EQ(Call(NewCommand, {Path("x"), "--csv=/none.csv"}).exit_code, 2);
}

TEST_F(CommandsTest, SaysWhereTheInputEnds) {
  const CalledCommand checked = Call(CheckCommand, {config_, "--set=input.epochs=1", "--set=training.steps=100000"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr(", then the input ends (input.epochs is 1)"));
  const CalledCommand trained = Call(LocalCommand, {config_, "--set=input.epochs=1", "--set=training.steps=100000",
                                                    absl::StrCat("--logdir=", Path("epoch"))});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("from start to end): the input has ended, input.epochs is 1\n"));
}

TEST_F(CommandsTest, SaysWhereTheStreamOfAWorkerEnds) {
  const std::vector<std::string> words = {config_, "--set=training={ steps: 100 replicas_to_aggregate: 1 async {} }",
                                          "--set=input.epochs=1"};
  const CalledCommand checked = Call(CheckCommand, words);
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.out,
              HasSubstr("100 steps of 1 slot of 8 examples at most; the stream of each worker ends after 75 "
                        "batches (input.epochs is 1)\n"));
  std::vector<std::string> large = words;
  large.push_back("--set=input.batch_size=601");
  const CalledCommand refused = Call(CheckCommand, large);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("1 epoch of 600 examples end before the first step, which needs 601 (1 slot of 601)"));
}

TEST_F(CommandsTest, SaysThatNoChiefAnswers) {
  // This socket has no listener.
  const std::string master = absl::StrCat("--master=unix:", Path("none.sock"));
  const CalledCommand status = Call(StatusCommand, {master});
  EXPECT_EQ(status.exit_code, 138);
  EXPECT_THAT(status.err, StartsWith("lockstep status: no chief answers at unix:"));
  const CalledCommand probe = Call(ProbeCommand, {master});
  EXPECT_EQ(probe.exit_code, 1);
  EXPECT_THAT(probe.err, StartsWith("lockstep probe: no chief answers at unix:"));
  EXPECT_THAT(status.out + probe.out, IsEmpty());
}

TEST_F(CommandsTest, RefusesArgumentsThatMakeNoSense) {
  const std::pair<Command, std::vector<std::string>> cases[] = {
      {StatusCommand, {}},
      {StatusCommand, {"--master=nowhere"}},
      {ProbeCommand, {"--master="}},
      {RunCommand, {}},
      {RunCommand, {config_, "--workers=0"}},
      {RunCommand, {config_, "--max_restarts=-1"}},
      {RunCommand, {config_, "--logdir="}},
      {RunCommand, {config_, "--master=grpc://host:1"}},
      {LocalCommand, {config_, "--master=grpc://host:1"}},
      {EvalCommand, {}},
      {EvalCommand, {"--logdir", directory_}},
      {EvalCommand, {"--watch", "--checkpoint=x"}},
      {EvalCommand, {"--export=x", "--logdir=y"}},
      {PredictCommand, {"--logdir", directory_}},
      {NewCommand, {}},
  };
  for (const auto& [command, words] : cases) {
    const CalledCommand result = Call(command, words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
    EXPECT_THAT(result.err, StartsWith("lockstep "));
  }
}

TEST_F(CommandsTest, ExportFlagOverridesLogdirVariable) {
  setenv("LOCKSTEP_LOGDIR", directory_.c_str(), 1);
  const CalledCommand exported = Call(EvalCommand, {"--export", directory_});
  const CalledCommand both = Call(EvalCommand, {"--export", directory_, "--logdir", directory_});
  unsetenv("LOCKSTEP_LOGDIR");
  EXPECT_THAT(exported.err, HasSubstr("is not an exported model"));
  EXPECT_THAT(both.err, HasSubstr("--export and --logdir exclude each other"));
  setenv("LOCKSTEP_EXPORT", "none", 1);
  EXPECT_THAT(Call(EvalCommand, {"--logdir", directory_}).err, HasSubstr("is not a run's logdir"));
  unsetenv("LOCKSTEP_EXPORT");
}

TEST_F(CommandsTest, ExplainsItself) {
  for (const Command command :
       {RunCommand, LocalCommand, StatusCommand, ProbeCommand, NewCommand, CheckCommand, EvalCommand, PredictCommand}) {
    const CalledCommand help = Call(command, {"--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, StartsWith("Usage: lockstep "));
    EXPECT_THAT(help.out, HasSubstr("Exit codes:"));
    EXPECT_THAT(help.err, IsEmpty());
    const CalledCommand version = Call(command, {"--version"});
    EXPECT_EQ(version.exit_code, 0);
    EXPECT_THAT(version.out, HasSubstr("arithmetic version "));
  }
}

TEST_F(CommandsTest, APageNamesWhatItNeeds) {
  EXPECT_EQ(Call(PageCommand, {}).err,
            "lockstep page: give --master=grpc://HOST:PORT of a running chief, or --logdir=DIR of a run\n");
  const CalledCommand open = Call(PageCommand, {"--logdir=" + directory_, "--http=0.0.0.0:0"});
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_THAT(open.err, HasSubstr("other machines can reach 0.0.0.0:0"));
  EXPECT_THAT(open.err, HasSubstr("--http_token_file=FILE, or --http_insecure"));
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("token"), "short\n").ok());
  EXPECT_THAT(Call(PageCommand, {"--logdir=" + directory_, "--http_token_file=" + Path("token")}).err,
              HasSubstr("has a token of 5 bytes; at least 16 are needed"));
  // --token_file is the token for the chief, as in `lockstep status`.
  EXPECT_THAT(Call(PageCommand, {"--master=grpc://127.0.0.1:1", "--token_file=" + Path("token")}).err,
              HasSubstr("--token_file needs --tls_dir"));
  const CalledCommand empty = Call(PageCommand, {"--logdir=" + directory_, "--http=127.0.0.1:0"});
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_THAT(empty.err, HasSubstr("there is no run in " + directory_));
}

TEST_F(CommandsTest, TlsNeedsConfigWithMasterFile) {
  const CalledCommand task =
      Call(TaskCommand, {"--role=chief", "--launcher=none", "--master=file:" + Path("address"), "--listen=127.0.0.1:0",
                         "--workers=1", "--tls_dir=" + Path("kit"), "--", "true"});
  EXPECT_EQ(task.exit_code, 2);
  EXPECT_THAT(task.err, HasSubstr("give CONFIG, or --master=grpc://HOST:PORT"));
}

TEST_F(CommandsTest, ATraceNeedsAChiefAndSteps) {
  EXPECT_THAT(Call(TraceCommand, {"--master=grpc://127.0.0.1:1", "--steps=0"}).err,
              HasSubstr("--steps must be from 1 to 10000, not 0"));
  const CalledCommand absent = Call(TraceCommand, {"--master=grpc://127.0.0.1:1", "--out=" + Path("trace.json")});
  EXPECT_EQ(absent.exit_code, 138) << absent.err;
  EXPECT_FALSE(fs_->Exists(Path("trace.json")).value());
}

}  // namespace
}  // namespace lockstep
