// Trains every example in one process, with fewer steps if it is long. Each must reach an accuracy that a broken model
// would not reach, and weights with the digest below, on every kind of processor. The BUILD file runs the test once for
// each kernel target. Targets that the processor lacks are skipped.
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "lockstep/cli/checkpoint/inspect.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/kernels/vectors/target.h"

namespace lockstep {
namespace {

// Trains an example with additional flags. Returns its metrics, such as ", accuracy 0.8451, mean_loss 0.4412, ".
std::string Train(const std::string& name, const std::vector<std::string>& flags) {
  std::ostringstream out, err;
  std::vector<std::string> words = {absl::StrCat("examples/", name, ".textproto"),
                                    absl::StrCat("--logdir=", getenv("TEST_TMPDIR"), "/", name)};
  words.insert(words.end(), flags.begin(), flags.end());
  EXPECT_EQ(LocalCommand(FileSystem::Real(), words, out, err), 0) << err.str();
  for (absl::string_view line : absl::StrSplit(out.str(), '\n')) {
    const size_t at = line.find(" examples: ");
    if (absl::StartsWith(line, "test: ") && at != absl::string_view::npos) {
      return absl::StrCat(", ", line.substr(at + strlen(" examples: ")), ", ");
    }
  }
  ADD_FAILURE() << "no evaluation in: " << out.str();
  return "";
}

// Returns the digest of the weights that Train has saved.
std::string Digest(const std::string& name) {
  std::ostringstream out, err;
  EXPECT_EQ(Inspect(FileSystem::Real(), {absl::StrCat(getenv("TEST_TMPDIR"), "/", name), "--digest"}, out, err), 0)
      << err.str();
  return std::string(absl::StripAsciiWhitespace(out.str()));
}

class ExamplesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (TargetError().empty()) return;
    // An unknown target name is an error.
    ASSERT_EQ(
        TargetNameError(getenv("LOCKSTEP_TARGET"), {KernelTarget::kAvx2, KernelTarget::kAvx512, KernelTarget::kNeon}),
        "");
    GTEST_SKIP() << TargetError();
  }
};

double Value(const std::string& metrics, const std::string& name) {
  const std::string key = absl::StrCat(", ", name, " ");
  const size_t at = metrics.find(key);
  double value = std::numeric_limits<double>::quiet_NaN();
  if (at != std::string::npos) {
    const size_t begin = at + key.size();
    EXPECT_TRUE(absl::SimpleAtod(metrics.substr(begin, metrics.find(',', begin) - begin), &value)) << metrics;
  }
  return value;
}

TEST_F(ExamplesTest, SoftmaxRegression) {
  const std::string metrics = Train("softmax_regression", {"--steps=400"});
  EXPECT_GE(Value(metrics, "accuracy"), 0.82) << metrics;
  EXPECT_GE(Value(metrics, "top_5"), 0.99) << metrics;
  EXPECT_EQ(Digest("softmax_regression"), "375d5c4c5acc5adedc07c0086c75747008c9884d4b1b301801f2526cb4040445");
}

TEST_F(ExamplesTest, Perceptron) {
  const std::string metrics = Train("fashion_mnist", {"--steps=200"});
  EXPECT_GE(Value(metrics, "accuracy"), 0.82) << metrics;
  EXPECT_EQ(Digest("fashion_mnist"), "cc4b11d7d113abcfb071de1df84c5e542c9a5a3854f78f3cb296a8fc0e0adabb");
}

TEST_F(ExamplesTest, ConvolutionalNetwork) {
  const std::string metrics = Train("cnn", {"--steps=80"});
  EXPECT_GE(Value(metrics, "accuracy"), 0.75) << metrics;
  EXPECT_EQ(Digest("cnn"), "fd0af1ccb5656e0f6de15f6accca93bb5bb47322b285b3a54c31be91057b3b77");
}

// Returns the bytes of a variable in a checkpoint.
std::string ValueOf(const std::string& checkpoint, const std::string& variable) {
  const auto reader = OpenTensors(FileSystem::Real(), checkpoint);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? std::string((*reader)->Read(variable).value().bytes()) : "";
}

TEST_F(ExamplesTest, FineTuning) {
  const std::string directory = getenv("TEST_TMPDIR");
  const std::string body = absl::StrCat(directory, "/body/model.ckpt-60");
  Train("cnn", {"--steps=60", absl::StrCat("--logdir=", directory, "/body")});
  const std::string metrics = Train("fine_tuning", {"--steps=60", absl::StrCat("--set=checkpoint.warm_start=", body)});
  EXPECT_GE(Value(metrics, "accuracy"), 0.7) << metrics;
  const std::string tuned = absl::StrCat(directory, "/fine_tuning/model.ckpt-60");
  for (const char* const frozen : {"conv1/kernel", "norm2/gamma", "conv3/kernel"}) {
    EXPECT_EQ(ValueOf(tuned, frozen), ValueOf(body, frozen)) << frozen;
  }
  EXPECT_NE(ValueOf(tuned, "norm2/moving_mean"), ValueOf(body, "norm2/moving_mean"));
}

TEST_F(ExamplesTest, CsvRegression) {
  const std::string metrics = Train("csv_regression", {});
  EXPECT_LE(Value(metrics, "rmse"), 58) << metrics;
  EXPECT_EQ(Digest("csv_regression"), "ff527bcccb081db2ce74422aff4be7a3d5dac7354d975fa77f32799b62f850d2");
}

TEST_F(ExamplesTest, LibsvmLogisticRegression) {
  const std::string metrics = Train("libsvm_logistic", {});
  EXPECT_GE(Value(metrics, "accuracy"), 0.95) << metrics;
  EXPECT_GE(Value(metrics, "auc"), 0.98) << metrics;
  EXPECT_EQ(Digest("libsvm_logistic"), "8caaeaeb6f6b7cb2a2f27d5777d5087f275756dc47315ec1299e14002246665e");
}

TEST_F(ExamplesTest, Embeddings) {
  const std::string metrics = Train("embedding", {});
  EXPECT_GE(Value(metrics, "accuracy"), 0.95) << metrics;
  EXPECT_EQ(Digest("embedding"), "b46c127bfe8a2e00aa7694f9a3d29d6b84c035c8c9e8d6315c270dbc28eb78ab");
}

}  // namespace
}  // namespace lockstep
