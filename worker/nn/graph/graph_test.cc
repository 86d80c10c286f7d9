#include "lockstep/worker/nn/graph/graph.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/worker/nn/graph/graph_model.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr char kLoss[] = " loss { softmax_cross_entropy {} }";

ExampleSpec Spec(Shape shape, int64_t classes = 3, v1::DataType dtype = v1::DT_FLOAT) {
  ExampleSpec spec;
  spec.features_shape = std::move(shape);
  spec.features_dtype = dtype;
  spec.classes = classes;
  return spec;
}

ExampleSpec Targets(Shape shape, Shape labels) {
  ExampleSpec spec;
  spec.features_shape = std::move(shape);
  spec.labels_dtype = v1::DT_FLOAT;
  spec.labels_shape = std::move(labels);
  return spec;
}

absl::Status Try(const std::string& text, const ExampleSpec& examples) {
  config::v1::ModelConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return CreateModel(config, examples).status();
}

struct BadModel {
  std::string config;
  ExampleSpec examples;
  // Substrings that the error message must contain.
  std::vector<std::string> names;
};

std::string Layer1(const std::string& kind) { return absl::StrCat("layer { name: 'x' ", kind, " }", kLoss); }

std::vector<BadModel> BadStructures() {
  const std::string dense = "layer { name: 'x' dense { units: 3 } }";
  return {
      {"", Spec({4}), {"no layers"}},
      {dense, Spec({4}), {"no loss"}},
      {"layer { dense { units: 3 } }" + std::string(kLoss), Spec({4}), {"layer 0", "no name"}},
      {dense + dense + kLoss, Spec({4}), {"'x'", "0 and 1"}},
      {"layer { name: 'input' dense { units: 3 } }" + std::string(kLoss), Spec({4}), {"'input'"}},
      {"layer { name: 'x' }" + std::string(kLoss), Spec({4}), {"'x'", "no kind"}},
      {"layer { name: 'x' input: 'y' dense { units: 3 } }" + std::string(kLoss), Spec({4}), {"'x'", "'y'"}},
      {"layer { name: 'x' input: 'x' dense { units: 3 } }" + std::string(kLoss),
       Spec({4}),
       {"'x'", "neither a preceding layer"}},
      {"layer { name: 'x' input: 'input' input: 'input' dense { units: 3 } }" + std::string(kLoss),
       Spec({4}),
       {"'x'", "2 inputs"}},
      {dense + "layer { name: 'y' input: 'x' input: 'input' add {} }" + kLoss, Spec({4}), {"'y'", "[3]", "[4]"}},
      {dense + "layer { name: 'y' add {} }" + kLoss, Spec({4}), {"'y'", "2 or more", "1"}},
      {dense + "layer { name: 'y' input: 'input' dense { units: 3 } }" + kLoss, Spec({4}), {"'x'", "no loss depends"}},
      {dense + " loss {}", Spec({4}), {"'x'", "no kind"}},
      {dense + " loss { input: 'z' hinge {} }", Spec({4}), {"loss 0", "'z'"}},
      {dense + " loss { input: 'input' hinge {} }", Spec({4}), {"loss 0", "'input'"}},
      {dense + kLoss, Spec({4, 0}), {"[4,0]"}},
      {dense + kLoss, Spec({4}, 3, v1::DT_DOUBLE), {"float64"}},
      {dense + kLoss, Spec({4}, 3, v1::DT_INT32), {"'x'", "embedding"}},
      {dense + kLoss, Spec({4}, 0), {"0 classes"}},
  };
}

std::vector<BadModel> BadLayers() {
  return {
      {Layer1("dense { units: 3 }"), Spec({28, 28}), {"'x'", "[28,28]", "add a flatten layer"}},
      {Layer1("dense {}"), Spec({4}), {"'x'", "units is 0"}},
      {Layer1("dense { units: -3 }"), Spec({4}), {"units is -3"}},
      {Layer1("dense { units: 3000000000 }"), Spec({4}), {"'x'", "2147483648"}},
      {Layer1("dense { units: 9223372036854775807 }"), Spec({4}), {"'x'"}},
      {Layer1("dense { units: 1000000000 }"), Spec({4}), {"kernel", "2147483648"}},
      {Layer1("dense { units: 3 activation: 77 }"), Spec({4}), {"activation 77"}},
      {Layer1("conv2d { kernel: 3 }"), Spec({9, 9, 1}), {"filters is 0"}},
      {Layer1("conv2d { filters: 4 }"), Spec({9, 9, 1}), {"0 numbers"}},
      {Layer1("conv2d { filters: 4 kernel: 0 }"), Spec({9, 9, 1}), {"is 0"}},
      {Layer1("conv2d { filters: 4 kernel: [1, 2, 3] }"), Spec({9, 9, 1}), {"3 numbers"}},
      {Layer1("conv2d { filters: 4 kernel: 3 strides: -1 }"), Spec({9, 9, 1}), {"strides is -1"}},
      {Layer1("conv2d { filters: 4 kernel: 3 strides: 65 }"), Spec({99, 99, 1}), {"65", "64"}},
      {Layer1("conv2d { filters: 4 kernel: 3 strides: 9223372036854775807 }"), Spec({9, 9, 1}), {"strides"}},
      {Layer1("conv2d { filters: 4 kernel: 1000000 }"), Spec({9, 9, 1}), {"2147483648"}},
      {Layer1("conv2d { filters: 4 kernel: 10 padding: VALID }"), Spec({9, 12, 1}), {"10", "9"}},
      {Layer1("conv2d { filters: 4 kernel: 3 padding: 9 }"), Spec({9, 9, 1}), {"padding 9"}},
      {Layer1("conv2d { filters: 4 kernel: 3 activation: -2 }"), Spec({9, 9, 1}), {"activation -2"}},
      {Layer1("conv2d { filters: 4 kernel: 3 }"), Spec({81}), {"[81]", "height"}},
      {Layer1("conv2d { filters: 4 kernel: 3 }"), Spec({}), {"[]"}},
      {Layer1("max_pool {}"), Spec({9, 9, 1}), {"0 numbers"}},
      {Layer1("max_pool { window: 10 padding: VALID }"), Spec({9, 9, 1}), {"10", "9"}},
      {Layer1("average_pool { window: 2 }"), Spec({9}), {"[9]"}},
      {Layer1("batch_norm {}"), Spec({}), {"'x'", "[]"}},
      {Layer1("batch_norm { decay: 1.5 }"), Spec({3}), {"1.5"}},
      {Layer1("batch_norm { decay: nan }"), Spec({3}), {"nan"}},
      {Layer1("batch_norm { epsilon: 0 }"), Spec({3}), {"epsilon is 0"}},
      {Layer1("batch_norm { activation: 9 }"), Spec({3}), {"activation 9"}},
      {Layer1("layer_norm { epsilon: -1 }"), Spec({3}), {"epsilon is -1"}},
      {Layer1("layer_norm {}"), Spec({}), {"[]"}},
      {Layer1("dropout { rate: 1 }"), Spec({3}), {"'x'", "rate is 1"}},
      {Layer1("dropout { rate: -0.5 }"), Spec({3}), {"rate is -0.5"}},
      {Layer1("dropout { rate: nan }"), Spec({3}), {"rate is nan"}},
      {Layer1("embedding { vocabulary: 5 dimension: 3 }"), Spec({3}), {"'x'", "float32"}},
      {Layer1("embedding { dimension: 3 }"), Spec({3}, 3, v1::DT_INT32), {"vocabulary is 0"}},
      {Layer1("embedding { vocabulary: 5 }"), Spec({3}, 3, v1::DT_INT32), {"dimension is 0"}},
      {Layer1("embedding { vocabulary: 5 dimension: 3 }"), Spec({3, 2}, 3, v1::DT_INT32), {"[3,2]"}},
      {Layer1("embedding { vocabulary: 9223372036854775807 dimension: 2 }"),
       Spec({3}, 3, v1::DT_INT32),
       {"embeddings"}},
      {Layer1("global_average_pool {}"), Spec({3}), {"[3]"}},
      {Layer1("activation { kind: RELU slope: 0.1 }"), Spec({3}), {"RELU"}},
      {Layer1("activation { kind: LEAKY_RELU slope: -1 }"), Spec({3}), {"slope is -1"}},
      {Layer1("activation { kind: 9 }"), Spec({3}), {"activation 9"}},
  };
}

std::vector<BadModel> BadLosses() {
  const auto with = [](const std::string& loss) { return "layer { name: 'x' dense { units: 4 } } " + loss; };
  const std::string good = with(" loss { softmax_cross_entropy {} } ");
  return {
      {with("loss { softmax_cross_entropy {} }"), Spec({4}, 5), {"'x'", "4 outputs", "5 classes"}},
      {with("loss { softmax_cross_entropy { label_smoothing: 2 } }"), Spec({4}, 4), {"label_smoothing is 2"}},
      {with("loss { softmax_cross_entropy {} }"), Targets({4}, {5}), {"'x'", "[4]", "[5]"}},
      {"layer { name: 'x' flatten {} } layer { name: 'y' input: 'input' activation {} } loss { softmax_cross_entropy "
       "{} }",
       Spec({2, 2}, 2),
       {"'y'", "[2,2]"}},
      {with("loss { mean_squared_error {} }"), Spec({4}, 5), {"'x'", "4 outputs", "5 classes"}},
      {with("loss { hinge {} }"), Targets({4}, {4, 1}), {"'x'", "[4]", "[4,1]"}},
      {with("loss { huber { delta: 0 } }"), Spec({4}, 4), {"delta is 0"}},
      {with("loss { weight: inf hinge {} }"), Spec({4}, 4), {"'x'", "inf"}},
      {good + "regularizer { variables: '(' l2: 1 }",
       Spec({4}, 4),
       {"regularizer[0]", "\"(\"", "not a regular expression"}},
      {good + "regularizer { variables: 'kernels' l2: 1 }", Spec({4}, 4), {"\"kernels\"", "no trainable"}},
      {good + "regularizer { variables: 'kernel' l2: -1 }", Spec({4}, 4), {"'kernel'", "-1"}},
      {good + "regularizer { variables: 'kernel' l1: nan }", Spec({4}, 4), {"'kernel'", "nan"}},
      {good + "regularizer { variables: '" + std::string(1001, 'a') + "' }",
       Spec({4}, 4),
       {"matches no trainable variable"}},
  };
}

void ExpectRefused(const std::vector<BadModel>& models) {
  for (const BadModel& model : models) {
    const absl::Status status = Try(model.config, model.examples);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << model.config << ": " << status;
    for (const std::string& name : model.names)
      EXPECT_THAT(std::string(status.message()), HasSubstr(name)) << model.config;
  }
}

TEST(GraphTest, RefusesBadStructuresByName) { ExpectRefused(BadStructures()); }
TEST(GraphTest, RefusesBadLayersByName) { ExpectRefused(BadLayers()); }
TEST(GraphTest, RefusesBadLossesByName) { ExpectRefused(BadLosses()); }

TEST(GraphTest, DeclaresVariablesInLayerOrder) {
  config::v1::ModelConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "layer { name: 'c' conv2d { filters: 4 kernel: 3 kernel: 5 } } layer { name: 'n' batch_norm { decay: 0.5 } }"
      "layer { name: 'f' flatten {} } layer { name: 'd' dense { units: 3 kernel_initializer { he {} } } }"
      "loss { softmax_cross_entropy {} }",
      &config));
  const absl::StatusOr<Graph> graph = BuildGraph(config, Spec({8, 6, 2}));
  ASSERT_EQ(graph.status(), absl::OkStatus());
  std::string text;
  for (const v1::VariableSpec& v : graph->spec.variables()) {
    absl::StrAppend(&text, v.name(), " ", Shape::Create(v.shape())->ToString(), v.trainable() ? " " : " fixed ",
                    v.initializer().ShortDebugString(), "\n");
  }
  EXPECT_EQ(text,
            "c/kernel [3,5,2,4] glorot { }\n"
            "c/bias [4] zeros { }\n"
            "n/beta [4] zeros { }\n"
            "n/gamma [4] constant { value: 1 }\n"
            "n/moving_mean [4] fixed zeros { }\n"
            "n/moving_variance [4] fixed constant { value: 1 }\n"
            "d/kernel [192,3] he { }\n"
            "d/bias [3] zeros { }\n");
  ASSERT_EQ(graph->spec.update_ops_size(), 2);
  EXPECT_EQ(graph->spec.update_ops(0).ShortDebugString(),
            "variable: \"n/moving_mean\" kind: MOVING_AVERAGE decay: 0.5");
  EXPECT_EQ(graph->spec.update_ops(1).variable(), "n/moving_variance");
}

TEST(GraphTest, AcceptsOneOutputForTwoClasses) {
  for (const char* loss : {"sigmoid_cross_entropy", "hinge", "mean_squared_error"}) {
    EXPECT_EQ(Try(absl::StrCat("layer { name: 'x' dense { units: 1 } } loss { ", loss, " {} }"), Spec({4}, 2)),
              absl::OkStatus());
  }
}

TEST(GraphTest, AcceptsASplitThatLacksTheLastClasses) {
  for (const char* loss : {"softmax_cross_entropy", "sigmoid_cross_entropy", "hinge", "mean_squared_error"}) {
    for (const int64_t classes : {1, 2, 3}) {
      EXPECT_EQ(Try(absl::StrCat("layer { name: 'x' dense { units: 3 } } loss { ", loss, " {} }"), Spec({4}, classes)),
                absl::OkStatus());
    }
  }
}

TEST(GraphTest, AcceptsAPredictionThatNoLossReads) {
  EXPECT_EQ(Try("layer { name: 'x' dense { units: 3 } } layer { name: 'p' activation { kind: SIGMOID } } "
                "loss { input: 'x' softmax_cross_entropy {} }",
                Spec({4}, 3)),
            absl::OkStatus());
}

}  // namespace
}  // namespace lockstep
