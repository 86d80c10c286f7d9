#include "lockstep/common/flags/command_line.h"

#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/version.h"

namespace lockstep {
namespace {

class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() : command_line_("lockstep run", "Trains a model.", "Exit codes: 0 done, 2 bad arguments.") {
    command_line_.AddArgument("CONFIG", "the configuration", &config_);
    command_line_.AddArgument("OUTPUT", "the output", &output_, CommandLine::kOptional);
    command_line_.AddFlag("workers", "N", "worker processes", &workers_);
    command_line_.AddFlag("steps", "N", "the last step", &steps_);
    command_line_.AddFlag("seed", "N", "the seed", &seed_);
    command_line_.AddFlag("master", "ADDRESS", "the chief", &master_);
    command_line_.AddFlag("json", "", "prints JSON", &json_);
    command_line_.AddFlag("rate", "X", "a rate", &rate_);
    command_line_.AddFlag("max_restarts", "N", "restarts of a process", &max_restarts_);
    command_line_.AddFlag("timeout", "TIME", "how long to wait", &timeout_);
    command_line_.AddFlag("set", "PATH=VALUE", "sets a field", &overrides_);
  }

  absl::optional<int> Parse(const std::vector<std::string>& words) { return command_line_.Parse(words, out_, err_); }
  // Returns the error message for an invalid command line. Checks that it is one line and that the exit code is 2.
  std::string ErrorOf(const std::vector<std::string>& words) {
    EXPECT_EQ(Parse(words), 2);
    std::string text = err_.str();
    err_.str("");
    EXPECT_TRUE(!text.empty() && text.find('\n') == text.size() - 1) << text;
    return text.substr(0, text.size() - 1);
  }

  std::string config_, output_;
  int workers_ = 2;
  absl::optional<int64_t> steps_;
  uint64_t seed_ = 0;
  absl::optional<std::string> master_;
  bool json_ = false;
  double rate_ = 0.5;
  int64_t max_restarts_ = 10;
  absl::Duration timeout_ = absl::Seconds(3);
  std::vector<std::string> overrides_;
  CommandLine command_line_;
  std::ostringstream out_, err_;
};

TEST_F(CommandLineTest, ReadsValuesAfterEqualsSignOrNextWord) {
  EXPECT_EQ(Parse({"--workers=3", "a.textproto", "--steps", "4000", "--rate=1e-3", "--seed=18446744073709551615"}),
            absl::nullopt);
  EXPECT_EQ(config_, "a.textproto");
  EXPECT_EQ(workers_, 3);
  EXPECT_EQ(steps_, 4000);
  EXPECT_EQ(rate_, 1e-3);
  EXPECT_EQ(seed_, 18446744073709551615u);
}

TEST_F(CommandLineTest, KeepsTheDefaultsOfWhatIsNotGiven) {
  EXPECT_EQ(Parse({"a.textproto"}), absl::nullopt);
  EXPECT_EQ(workers_, 2);
  EXPECT_EQ(steps_, absl::nullopt);
  EXPECT_EQ(master_, absl::nullopt);
  EXPECT_EQ(output_, "");
}

TEST_F(CommandLineTest, TellsAnEmptyValueFromAnAbsentOne) {
  EXPECT_EQ(Parse({"a.textproto", "--master="}), absl::nullopt);
  EXPECT_EQ(master_, "");
}

TEST_F(CommandLineTest, TakesABooleanWithoutItsValue) {
  EXPECT_EQ(Parse({"--json", "a.textproto"}), absl::nullopt);
  EXPECT_TRUE(json_);
  EXPECT_EQ(config_, "a.textproto");
  EXPECT_EQ(Parse({"--json=false", "a.textproto"}), absl::nullopt);
  EXPECT_FALSE(json_);
}

TEST_F(CommandLineTest, GathersRepeatedValuesAsTheyStand) {
  EXPECT_EQ(Parse({"a", "--set=optimizer.boundaries=10,30", "--set", "model.name=a=b", "--set="}), absl::nullopt);
  EXPECT_EQ(overrides_, (std::vector<std::string>{"optimizer.boundaries=10,30", "model.name=a=b", ""}));
}

TEST_F(CommandLineTest, TakesTheLastOfSeveralSingleValues) {
  EXPECT_EQ(Parse({"a", "--workers=3", "--workers=4"}), absl::nullopt);
  EXPECT_EQ(workers_, 4);
}

TEST_F(CommandLineTest, AcceptsDashesAndASingleDash) {
  EXPECT_EQ(Parse({"a", "--max-restarts=4", "-workers=5"}), absl::nullopt);
  EXPECT_EQ(max_restarts_, 4);
  EXPECT_EQ(workers_, 5);
}

TEST_F(CommandLineTest, TakesANegativeNumberInTheNextWord) {
  EXPECT_EQ(Parse({"a", "--rate", "-2.5"}), absl::nullopt);
  EXPECT_EQ(rate_, -2.5);
}

TEST_F(CommandLineTest, ReadsTimesWithAUnitAndBareSeconds) {
  EXPECT_EQ(Parse({"a", "--timeout=1.5"}), absl::nullopt);
  EXPECT_EQ(timeout_, absl::Milliseconds(1500));
  EXPECT_EQ(Parse({"a", "--timeout=2m"}), absl::nullopt);
  EXPECT_EQ(timeout_, absl::Minutes(2));
  EXPECT_EQ(ErrorOf({"a", "--timeout=-1s"}),
            "lockstep run: --timeout takes a time such as 30s, 500ms or 2m, not \"-1s\"");
}

TEST_F(CommandLineTest, TakesFlagLikeArgumentsAfterTwoDashes) {
  EXPECT_EQ(Parse({"--", "--odd", "-"}), absl::nullopt);
  EXPECT_EQ(config_, "--odd");
  EXPECT_EQ(output_, "-");
}

TEST_F(CommandLineTest, SuggestsTheNearestFlagForATypo) {
  EXPECT_EQ(ErrorOf({"a", "--worker=3"}), "lockstep run: no flag --worker; did you mean --workers?");
  EXPECT_EQ(ErrorOf({"a", "--max-restart=3"}), "lockstep run: no flag --max-restart; did you mean --max_restarts?");
  EXPECT_EQ(ErrorOf({"a", "--quietness=3"}), "lockstep run: no flag --quietness; try --help");
}

TEST_F(CommandLineTest, NamesTheFlagWhoseValueIsWrong) {
  EXPECT_EQ(ErrorOf({"a", "--steps=ten"}), "lockstep run: --steps takes an integer, not \"ten\"");
  EXPECT_EQ(ErrorOf({"a", "--workers=99999999999"}), "lockstep run: --workers takes an integer, not \"99999999999\"");
  EXPECT_EQ(ErrorOf({"a", "--seed=-1"}), "lockstep run: --seed takes an integer of at least 0, not \"-1\"");
  EXPECT_EQ(ErrorOf({"a", "--rate=nan"}), "lockstep run: --rate takes a number, not \"nan\"");
  EXPECT_EQ(ErrorOf({"a", "--json=perhaps"}), "lockstep run: --json takes true or false, not \"perhaps\"");
  EXPECT_EQ(ErrorOf({"a", "--steps"}), "lockstep run: --steps needs a value: --steps=N, the last step");
  EXPECT_EQ(steps_, absl::nullopt);
}

TEST_F(CommandLineTest, NamesTheMissingOrSurplusArgument) {
  EXPECT_EQ(ErrorOf({}), "lockstep run: CONFIG is missing: the configuration; try --help");
  EXPECT_EQ(ErrorOf({"a", "b", "c"}), "lockstep run: \"c\" is one argument too many after OUTPUT; try --help");
}

TEST_F(CommandLineTest, HelpOverridesMissingArguments) {
  EXPECT_EQ(Parse({"--help"}), 0);
  EXPECT_EQ(out_.str(), R"(Usage: lockstep run CONFIG [OUTPUT] [flags]

Trains a model.

  CONFIG                    the configuration
  OUTPUT                    the output
  --workers=N               worker processes (default 2)
  --steps=N                 the last step
  --seed=N                  the seed (default 0)
  --master=ADDRESS          the chief
  --json                    prints JSON
  --rate=X                  a rate (default 0.5)
  --max_restarts=N          restarts of a process (default 10)
  --timeout=TIME            how long to wait (default 3s)
  --set=PATH=VALUE          sets a field (may be repeated)
  --help                    shows this text
  --version                 shows which build this is

A flag that is not given has the value of its environment variable, if that is set and not empty:
LOCKSTEP_WORKERS, LOCKSTEP_STEPS, LOCKSTEP_SEED, LOCKSTEP_MASTER, LOCKSTEP_JSON, LOCKSTEP_RATE,
LOCKSTEP_MAX_RESTARTS, LOCKSTEP_TIMEOUT, LOCKSTEP_SET.

Exit codes: 0 done, 2 bad arguments.
)");
  EXPECT_EQ(err_.str(), "");
}

TEST_F(CommandLineTest, VersionOverridesMissingArguments) {
  EXPECT_EQ(Parse({"--version"}), 0);
  EXPECT_EQ(out_.str(), BuildText("lockstep run", ThisBuild()));
  EXPECT_EQ(err_.str(), "");
}

TEST_F(CommandLineTest, BreaksLongDescriptionsIntoLines) {
  CommandLine command_line("lockstep", "Trains.");
  std::string value;
  command_line.AddFlag("checkpoint_directory_of_the_run", "DIRECTORY",
                       "the directory that the checkpoints are written to, one file for each of the shards and one "
                       "index for each checkpoint",
                       &value);
  EXPECT_EQ(command_line.Help(), R"(Usage: lockstep [flags]

Trains.

  --checkpoint_directory_of_the_run=DIRECTORY
                            the directory that the checkpoints are written to, one file for each of
                            the shards and one index for each checkpoint
  --help                    shows this text
  --version                 shows which build this is

A flag that is not given has the value of its environment variable, if that is set and not empty:
LOCKSTEP_CHECKPOINT_DIRECTORY_OF_THE_RUN.
)");
}

// An environment variable that is set for the lifetime of the object.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~ScopedVariable() { unsetenv(name_); }

 private:
  const char* const name_;
};

TEST_F(CommandLineTest, TakesDefaultsFromTheEnvironment) {
  const ScopedVariable workers("LOCKSTEP_WORKERS", "5"), restarts("LOCKSTEP_MAX_RESTARTS", "3"),
      json("LOCKSTEP_JSON", "true"), set("LOCKSTEP_SET", "a=1,2\nb=3\n"), steps("LOCKSTEP_STEPS", "");
  EXPECT_EQ(Parse({"a", "--max-restarts=4"}), absl::nullopt);
  EXPECT_EQ(workers_, 5);
  EXPECT_EQ(max_restarts_, 4) << "the flag counts first";
  EXPECT_TRUE(json_);
  EXPECT_EQ(overrides_, (std::vector<std::string>{"a=1,2", "b=3"})) << "a line each";
  EXPECT_EQ(steps_, absl::nullopt) << "an empty variable says nothing";
}

TEST_F(CommandLineTest, AnEmptyFlagOverridesTheEnvironment) {
  const ScopedVariable master("LOCKSTEP_MASTER", "grpc://a:1");
  EXPECT_EQ(Parse({"a", "--master="}), absl::nullopt);
  EXPECT_EQ(master_, "");
  EXPECT_EQ(Parse({"a"}), absl::nullopt);
  EXPECT_EQ(master_, "grpc://a:1");
}

TEST_F(CommandLineTest, NamesTheVariableThatIsWrong) {
  const ScopedVariable steps("LOCKSTEP_STEPS", "many");
  EXPECT_EQ(ErrorOf({"a"}),
            "lockstep run: LOCKSTEP_STEPS in the environment takes an integer as --steps does, not \"many\"");
  EXPECT_EQ(Parse({"a", "--steps=1"}), absl::nullopt) << "it is not looked at";
}

TEST(CommandLineValueOfTest, IsTheLastOneHoweverItIsWritten) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(CommandLine::ValueOf("master", {"config", "--name=a"}), absl::nullopt);
  for (const Words& words : {Words{"config", "--master="}, Words{"-master="}, Words{"--master", "", "config"},
                             Words{"--master=grpc://a:1", "--master="}}) {
    EXPECT_EQ(CommandLine::ValueOf("master", words), "");
  }
  EXPECT_EQ(CommandLine::ValueOf("master", {"--master", "grpc://a:1"}), "grpc://a:1");
  EXPECT_EQ(CommandLine::ValueOf("index_dir", {"--index-dir=d"}), "d");
  EXPECT_EQ(CommandLine::ValueOf("master", {"--masters=a", "master=b"}), absl::nullopt);
  EXPECT_EQ(CommandLine::ValueOf("master", {"--", "--master="}), absl::nullopt);
  EXPECT_EQ(CommandLine::ValueOf("master", {"--master"}), absl::nullopt) << "Parse says what is missing";
}

}  // namespace
}  // namespace lockstep
