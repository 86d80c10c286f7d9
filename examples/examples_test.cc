// Every example trains, in one process and with fewer steps where it is long, to an accuracy that a broken model
// misses. The figures do not vary from run to run.
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "lockstep/cli/commands.h"

namespace lockstep {
namespace {

// Trains an example with some flags more and returns its metrics: ", accuracy 0.8451, mean_loss 0.4412, ".
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

TEST(ExamplesTest, SoftmaxRegression) {
  const std::string metrics = Train("softmax_regression", {"--steps=400"});
  EXPECT_GE(Value(metrics, "accuracy"), 0.82) << metrics;
  EXPECT_GE(Value(metrics, "top_5"), 0.99) << metrics;
}

TEST(ExamplesTest, Perceptron) {
  const std::string metrics = Train("fashion_mnist", {"--steps=200"});
  EXPECT_GE(Value(metrics, "accuracy"), 0.82) << metrics;
}

TEST(ExamplesTest, ConvolutionalNetwork) {
  const std::string metrics = Train("cnn", {"--steps=80"});
  EXPECT_GE(Value(metrics, "accuracy"), 0.75) << metrics;
}

TEST(ExamplesTest, CsvRegression) {
  const std::string metrics = Train("csv_regression", {});
  EXPECT_LE(Value(metrics, "rmse"), 58) << metrics;
}

TEST(ExamplesTest, LibsvmLogisticRegression) {
  const std::string metrics = Train("libsvm_logistic", {});
  EXPECT_GE(Value(metrics, "accuracy"), 0.95) << metrics;
  EXPECT_GE(Value(metrics, "auc"), 0.98) << metrics;
}

TEST(ExamplesTest, Embeddings) {
  const std::string metrics = Train("embedding", {});
  EXPECT_GE(Value(metrics, "accuracy"), 0.95) << metrics;
}

}  // namespace
}  // namespace lockstep
