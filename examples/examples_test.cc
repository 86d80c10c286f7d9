// Every example trains, in one process and with fewer steps where it is long, to an accuracy that a broken model
// misses. The figures do not vary from run to run.
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

// Trains an example with some flags more and returns the JSON of its evaluation.
std::string Train(const std::string& name, const std::vector<std::string>& flags) {
  FileSystem* const fs = FileSystem::Real();
  const std::string logdir = absl::StrCat("--logdir=", getenv("TEST_TMPDIR"), "/", name);
  std::ostringstream out, err;
  std::vector<std::string> words = {absl::StrCat("examples/", name, ".textproto"), logdir};
  words.insert(words.end(), flags.begin(), flags.end());
  EXPECT_EQ(LocalCommand(fs, words, out, err), 0) << err.str();
  std::ostringstream json;
  EXPECT_EQ(EvalCommand(fs, {logdir, "--json"}, json, err), 0) << err.str();
  return json.str();
}

// The number behind "name": .
double Value(const std::string& json, const std::string& name) {
  const std::string key = absl::StrCat("\"", name, "\": ");
  const size_t at = json.find(key);
  double value = -1;
  EXPECT_NE(at, std::string::npos) << json;
  if (at == std::string::npos) return value;
  const size_t begin = at + key.size();
  EXPECT_TRUE(absl::SimpleAtod(json.substr(begin, json.find_first_of(",}", begin) - begin), &value)) << json;
  return value;
}

TEST(ExamplesTest, SoftmaxRegression) {
  const std::string json = Train("softmax_regression", {"--steps=400"});
  EXPECT_GE(Value(json, "accuracy"), 0.82) << json;
  EXPECT_GE(Value(json, "top_5"), 0.99) << json;
}

TEST(ExamplesTest, Perceptron) {
  const std::string json = Train("fashion_mnist", {"--steps=200"});
  EXPECT_GE(Value(json, "accuracy"), 0.82) << json;
}

TEST(ExamplesTest, ConvolutionalNetwork) {
  const std::string json = Train("cnn", {"--steps=150"});
  EXPECT_GE(Value(json, "accuracy"), 0.80) << json;
}

TEST(ExamplesTest, CsvRegression) {
  const std::string json = Train("csv_regression", {});
  EXPECT_LE(Value(json, "rmse"), 58) << json;
}

TEST(ExamplesTest, LibsvmLogisticRegression) {
  const std::string json = Train("libsvm_logistic", {});
  EXPECT_GE(Value(json, "accuracy"), 0.95) << json;
  EXPECT_GE(Value(json, "auc"), 0.98) << json;
}

TEST(ExamplesTest, Embeddings) {
  const std::string json = Train("embedding", {});
  EXPECT_GE(Value(json, "accuracy"), 0.95) << json;
}

}  // namespace
}  // namespace lockstep
