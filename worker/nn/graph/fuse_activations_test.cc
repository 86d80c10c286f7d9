#include "lockstep/worker/nn/graph/fuse_activations.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/worker/nn/graph/graph_model.h"
#include "lockstep/worker/nn/testing/gradient_check.h"

namespace lockstep {
namespace {

config::v1::ModelConfig Parse(const std::string& text) {
  config::v1::ModelConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::string Fused(const std::string& text) { return FuseActivations(Parse(text)).ShortDebugString(); }
std::string Same(const std::string& text) { return Parse(text).ShortDebugString(); }

TEST(FuseActivationsTest, MovesAnActivationIntoTheLayerBefore) {
  EXPECT_EQ(Fused("layer { name: 'd' dense { units: 3 } } layer { name: 'a' activation { kind: TANH } }"),
            Same("layer { name: 'd' dense { units: 3 activation: TANH } } layer { name: 'a' activation {} }"));
  EXPECT_EQ(Fused("layer { name: 'n' batch_norm {} } layer { name: 'a' input: 'n' activation { kind: RELU } }"),
            Same("layer { name: 'n' batch_norm { activation: RELU } } layer { name: 'a' input: 'n' activation {} }"));
  EXPECT_EQ(Fused("layer { name: 'c' conv2d {} } layer { name: 'a' activation { kind: LEAKY_RELU slope: 0.2 } }"),
            Same("layer { name: 'c' conv2d { activation: LEAKY_RELU } } layer { name: 'a' activation {} }"));
}

TEST(FuseActivationsTest, LeavesOthersWhereTheyAre) {
  for (const char* text :
       {"", "layer { name: 'a' activation { kind: RELU } }",
        "layer { name: 'f' flatten {} } layer { name: 'a' activation { kind: RELU } }",
        "layer { name: 'd' dense { activation: TANH } } layer { name: 'a' activation { kind: RELU } }",
        "layer { name: 'd' dense {} } layer { name: 'a' activation { kind: LEAKY_RELU slope: 0.1 } }",
        "layer { name: 'd' dense {} } layer { name: 'a' input: 'input' activation { kind: RELU } }",
        // Another layer reads 'd' too.
        "layer { name: 'd' dense {} } layer { name: 'a' activation { kind: RELU } } layer { name: 'b' input: 'd' add "
        "{} }",
        "layer { name: 'd' dense {} } layer { name: 'a' activation { kind: RELU } } loss { input: 'd' hinge {} }"}) {
    EXPECT_EQ(Fused(text), Same(text));
  }
}

TEST(FuseActivationsTest, DoesNotChangeTheBits) {
  ExampleSpec examples;
  examples.features_shape = Shape{7};
  examples.classes = 3;
  for (const char* layer : {"dense { units: 9 }", "batch_norm {}"}) {
    for (const char* kind : {"RELU", "LEAKY_RELU", "TANH", "SIGMOID", "GELU"}) {
      std::vector<std::string> bytes;
      // The second reader, whose output is not used, prevents fusing.
      for (const char* reader : {"", "layer { name: 'r' input: 'y' activation { kind: TANH } }"}) {
        const config::v1::ModelConfig config =
            Parse(absl::StrCat("layer { name: 'x' dense { units: 9 } } layer { name: 'y' ", layer, " }",
                               "layer { name: 'a' activation { kind: ", kind, " } }", reader,
                               "layer { name: 'z' input: 'a' dense { units: 3 } } loss { softmax_cross_entropy {} }"));
        const auto model = *CreateModel(config, examples);
        TestVariables variables(model->spec(), 1);
        RecordingSink sink(model->spec());
        ASSERT_EQ(model->ComputeGradients(variables.values(), RandomBatch(examples, 20, 2), {}, &sink),
                  absl::OkStatus());
        bytes.push_back(sink.Bytes());
      }
      EXPECT_TRUE(bytes[0] == bytes[1]) << layer << " " << kind;
    }
  }
}

}  // namespace
}  // namespace lockstep
