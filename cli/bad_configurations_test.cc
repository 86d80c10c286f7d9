// Checks that a wrong configuration produces one line with file, line and field before anything starts.
#include <stdlib.h>
#include <string.h>

#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/cli/commands/commands.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr char kGoodConfig[] = R"(model {
  layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} }
}
input {
  split { name: "train" synthetic { examples: 600 shape: 4 classes: 3 } }
  split { name: "test" synthetic { examples: 150 shape: 4 classes: 3 stream: 1 } }
  batch_size: 8
}
optimizer { adam {} learning_rate { initial: 0.05 } }
training { steps: 100 replicas_to_aggregate: 2 seed: 1 }
evaluation { metric: "accuracy" }
)";

// The text that replaces a part of kGoodConfig, the line that the error names, and parts of the expected message.
struct BadConfiguration {
  const char* part;
  const char* replacement;
  int line;
  std::vector<const char*> says;
};

std::vector<BadConfiguration> BadConfigurations() {
  return {
      {"units: 3", "unit: 3", 2, {"model.layer.dense.unit: Dense has no field \"unit\", did you mean \"units\"?"}},
      {"units: 3", "units: \"three\"", 2, {"takes an integer, such as 1000, not \"three\""}},
      {"units: 3", "units: 99999999999999999999", 2, {"takes an integer"}},
      {"units: 3", "units: 3 activation: RELUU", 2, {"takes one of NONE, RELU", "not RELUU"}},
      {"units: 3", "units: -3", 2, {"model.layer[0].dense.units is -3, must be above 0"}},
      {"units: 3", "units: 2", 2, {"model.loss[0]", "2 outputs", "3 classes"}},
      {"dense { units: 3 }", "conv2d { filters: 3 kernel: 3 }", 2, {"model.layer[0]", "[height, width", "[4]"}},
      {"dense { units: 3 }", "embedding { vocabulary: 9 dimension: 3 }", 2, {"model.layer[0]", "float32"}},
      {"name: \"logits\"", "name: \"logits\" input: \"nowhere\"", 2, {"model.layer[0]", "\"nowhere\""}},
      {"loss { softmax_cross_entropy {} }", "", 1, {"model has layers and no loss, such as loss {"}},
      {"layer {", "registered: \"two_towers\" layer {", 1, {"model has 1 layers and registered: \"two_towers\""}},
      {"layer {", "regularizer { variables: \"kernle\" l2: 1 } layer {", 2, {"model.regularizer[0]", "no trainable"}},
      {"name: \"train\"", "name: \"trian\"", 4, {"input has no split named \"train\""}},
      {"synthetic { examples: 600 shape: 4 classes: 3 }",
       "idx { images: \"/none.gz\" labels: \"/none.gz\" }",
       5,
       {"input.split[0]: there is no file /none.gz"}},
      {"synthetic { examples: 600 shape: 4 classes: 3 }",
       "registered { name: \"rings\" }",
       5,
       {"input.split[0]: registered.name is \"rings\", an input that this program lacks; it has none"}},
      {"synthetic { examples: 600 shape: 4 classes: 3 }",
       "registered { name: \"rings\" file: \"/none.gz\" }",
       5,
       {"input.split[0]: there is no file /none.gz"}},
      {"batch_size: 8", "batch_size: 8 batch_size: 9", 7, {"specified multiple times"}},
      {"batch_size: 8", "", 4, {"input.batch_size is 0, must be above 0, such as 64"}},
      {"batch_size: 8", "batch_size: 8 augmentation { flip: true }", 7, {"input.augmentation needs float images"}},
      {"batch_size: 8", "batch_size: 900 last_batch: DROP", 7, {"input.last_batch", "600 examples", "1800"}},
      {"batch_size: 8\n}", "batch_size: 8\n", 9, {"around it has; is a \"}\" missing before it?"}},
      {"adam {}", "adam {} sgd {}", 9, {"Field \"sgd\" is specified along with field \"adam\""}},
      {"adam {}", "", 9, {"optimizer has no kind, must have one of sgd, momentum"}},
      {"adam {}", "adam { beta1: 1.5 }", 9, {"optimizer.adam.beta1 is 1.5, must be in [0, 1)"}},
      {"adam {}",
       "adam {} multipliers { variables: \"kernle\" factor: 2 }",
       9,
       {"optimizer.multipliers[0]: variables is \"kernle\""}},
      {"initial: 0.05", "", 9, {"optimizer.learning_rate.initial is 0, must be a finite number above 0"}},
      {"}\ntraining",
       "}\ncheckpoint { warm_start: \"/none/model.ckpt-1\" } training",
       10,
       {"checkpoint.warm_start: there is no checkpoint /none/model.ckpt-1"}},
      {"steps: 100", "steps: 0", 10, {"training.steps is 0, must be above 0, such as 1000"}},
      {"metric: \"accuracy\"", "metric: \"acuracy\"", 11, {"evaluation.metric[0] is \"acuracy\", must be one of"}},
      {"metric: \"accuracy\"", "metric: \"rmse\"", 11, {"evaluation.metric[0]", "needs float labels"}},
      {"metric: \"accuracy\"",
       "metric: \"registered:f1\"",
       11,
       {"evaluation.metric[0]: registered is \"f1\", a metric that this program lacks; it has none"}},
      {"metric: \"accuracy\"", "split: \"dev\"", 11, {"evaluation.split is \"dev\", which is not a split"}},
  };
}

TEST(BadConfigurationsTest, AreReportedWithFileLineAndField) {
  FileSystem* const fs = FileSystem::Real();
  const std::string path = JoinPath(getenv("TEST_TMPDIR"), "bad.textproto");
  for (const BadConfiguration& bad : BadConfigurations()) {
    std::string text = kGoodConfig;
    const size_t at = text.find(bad.part);
    ASSERT_NE(at, std::string::npos) << bad.part;
    text.replace(at, strlen(bad.part), bad.replacement);
    ASSERT_TRUE(WriteFileAtomically(fs, path, text).ok());
    for (const Command command : {CheckCommand, RunCommand, LocalCommand}) {
      std::ostringstream out, err;
      EXPECT_EQ(command(fs, {path}, out, err), 2) << bad.replacement;
      EXPECT_EQ(out.str(), "") << bad.replacement;
      EXPECT_THAT(err.str(), HasSubstr(absl::StrCat(": ", path, ":", bad.line, ":"))) << bad.replacement;
      for (const char* part : bad.says) EXPECT_THAT(err.str(), HasSubstr(part));
      EXPECT_EQ(err.str().find('\n'), err.str().size() - 1) << err.str();
    }
  }
  EXPECT_FALSE(fs->Exists("runs").value()) << "nothing is written for a wrong configuration";
}

TEST(BadConfigurationsTest, DifferFromAGoodOne) {
  FileSystem* const fs = FileSystem::Real();
  const std::string path = JoinPath(getenv("TEST_TMPDIR"), "good.textproto");
  ASSERT_TRUE(WriteFileAtomically(fs, path, kGoodConfig).ok());
  std::ostringstream out, err;
  EXPECT_EQ(CheckCommand(fs, {path}, out, err), 0) << err.str();
}

}  // namespace
}  // namespace lockstep
