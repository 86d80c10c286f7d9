#include "lockstep/train/evaluation/prediction_settings.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

config::v1::RunSpec Spec(const std::string& text) {
  config::v1::RunSpec config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

TEST(PredictionSettingsTest, ClassNamesAreInTheConfigurationAFileOrTheData) {
  MemoryFileSystem fs;
  ASSERT_TRUE(WriteFileAtomically(&fs, "names", "cat \r\ndog\n\n").ok());
  const char kCsv[] = "input { split { name: 'test' csv { column { type: LABEL category: ['a', 'b'] } } } } ";
  EXPECT_THAT(*ClassNames(&fs, Spec(kCsv), "test"), ElementsAre("a", "b"));
  EXPECT_THAT(*ClassNames(&fs, Spec(kCsv), "train"), IsEmpty());
  EXPECT_THAT(*ClassNames(&fs, Spec(absl::StrCat(kCsv, "evaluation { class_name_file: 'names' }")), "test"),
              ElementsAre("cat", "dog"));
  EXPECT_THAT(*ClassNames(&fs, Spec(absl::StrCat(kCsv, "evaluation { class_name: 'x' class_name: 'y' }")), "test"),
              ElementsAre("x", "y"));
  const absl::Status absent = ClassNames(&fs, Spec("evaluation { class_name_file: 'none' }"), "test").status();
  EXPECT_TRUE(absl::IsNotFound(absent));
  EXPECT_THAT(std::string(absent.message()), ::testing::StartsWith("evaluation.class_name_file: "));
}

TEST(PredictionSettingsTest, ProbabilitiesAreThoseOfTheLoss) {
  MemoryFileSystem fs;
  const auto options = [&](const std::string& loss, bool probabilities = true) {
    return PredictionOptionsOf(&fs,
                               Spec("model { layer { name: 'x' dense {} } layer { name: 'y' dense {} } " + loss + " }"),
                               "test", probabilities);
  };
  EXPECT_EQ(options("loss { softmax_cross_entropy {} }")->outputs, PredictionOptions::Outputs::kSoftmax);
  EXPECT_EQ(options("loss { input: 'x' mean_squared_error {} } loss { input: 'y' sigmoid_cross_entropy {} }")->outputs,
            PredictionOptions::Outputs::kSigmoid);
  EXPECT_TRUE(absl::IsInvalidArgument(options("loss { input: 'x' softmax_cross_entropy {} }").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(options("loss { mean_squared_error {} }").status()));
  EXPECT_FALSE(options("loss { mean_squared_error {} }", false)->has_classes);
  EXPECT_TRUE(options("loss { hinge {} }", false)->has_classes);
  EXPECT_EQ(options("loss { log_loss {} }")->outputs, PredictionOptions::Outputs::kAsTheyAre);
  EXPECT_EQ(options("loss { log_loss {} }", false)->class_threshold, 0.5f);
  EXPECT_EQ(options("loss { softmax_cross_entropy {} }", false)->outputs, PredictionOptions::Outputs::kAsTheyAre);
}

}  // namespace
}  // namespace lockstep
