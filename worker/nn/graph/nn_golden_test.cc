// Compares the layers and losses with TensorFlow's results, which tests/golden/nn_golden.py wrote.
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/worker/nn/graph/graph_model.h"
#include "lockstep/worker/nn/testing/gradient_check.h"
#include "lockstep/worker/nn/testing/layer_kinds.h"

namespace lockstep {
namespace {

constexpr char kGoldenFile[] = "tests/golden/nn_golden.txt";
// Largest allowed difference, as a multiple of max(1, the tensor's largest number).
constexpr float kTolerance = 3e-6f;
// Kinds of layers that have no golden numbers, and the reasons.
const std::map<std::string, std::string> kNoNumbers = {{"dropout", "TensorFlow draws other random numbers"}};

struct GoldenCase {
  std::string name;
  config::v1::ModelConfig config;
  int64_t classes = 0;
  // Keyed by kind ("input", "variable", "expect", "gradient", "update") and name.
  std::map<std::pair<std::string, std::string>, Tensor> tensors;

  const Tensor& Get(const std::string& kind, const std::string& tensor) const { return tensors.at({kind, tensor}); }
  bool Has(const std::string& kind, const std::string& tensor) const { return tensors.count({kind, tensor}) > 0; }
};

// Reads "NAME DTYPE [DIMS] : NUMBERS".
Tensor ReadTensor(std::istringstream* line) {
  std::string dtype, dims, colon;
  *line >> dtype >> dims >> colon;
  EXPECT_EQ(colon, ":");
  std::vector<int64_t> sizes;
  std::istringstream list(dims.substr(1, dims.size() - 2));
  for (std::string dim; std::getline(list, dim, ',');) sizes.push_back(std::stoll(dim));
  Tensor tensor(dtype == "int32" ? v1::DT_INT32 : v1::DT_FLOAT, *Shape::Create(sizes));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (dtype == "int32") {
      *line >> tensor.flat<int32_t>()[i];
    } else {
      *line >> tensor.flat<float>()[i];
    }
  }
  EXPECT_FALSE(line->fail());
  return tensor;
}

std::vector<GoldenCase> ReadCases() {
  std::ifstream file(kGoldenFile);
  EXPECT_TRUE(file.good()) << kGoldenFile;
  std::vector<GoldenCase> cases;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string kind, name;
    line >> kind;
    if (kind == "end") continue;
    if (kind == "case") {
      cases.emplace_back();
      line >> cases.back().name;
    } else if (kind == "config") {
      EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text.substr(7), &cases.back().config)) << text;
    } else if (kind == "classes") {
      line >> cases.back().classes;
    } else {
      line >> name;
      cases.back().tensors[{kind, name}] = ReadTensor(&line);
    }
  }
  return cases;
}

ExampleSpec SpecOf(const GoldenCase& golden) {
  const auto example_shape = [](const Tensor& tensor) { return *Shape::Create(tensor.shape().dims().subspan(1)); };
  ExampleSpec spec;
  spec.features_dtype = golden.Get("input", "features").dtype();
  spec.features_shape = example_shape(golden.Get("input", "features"));
  spec.labels_dtype = golden.Get("input", "labels").dtype();
  spec.labels_shape = example_shape(golden.Get("input", "labels"));
  spec.classes = golden.classes;
  return spec;
}

void ExpectClose(absl::Span<const float> expected, absl::Span<const float> actual, const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  float scale = 1;
  for (const float x : expected) scale = std::max(scale, std::abs(x));
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(expected[i], actual[i], kTolerance * scale) << what << " element " << i;
  }
}

void RunCase(const GoldenCase& golden) {
  const absl::StatusOr<std::unique_ptr<Model>> model = CreateModel(golden.config, SpecOf(golden));
  ASSERT_EQ(model.status(), absl::OkStatus());
  const v1::ModelSpec& spec = (*model)->spec();
  std::vector<const float*> values;
  for (const v1::VariableSpec& variable : spec.variables()) {
    const Tensor& value = golden.Get("variable", variable.name());
    ASSERT_EQ(value.shape(), *Shape::Create(variable.shape())) << variable.name();
    values.push_back(value.flat<float>().data());
  }
  Batch batch;
  batch.features = golden.Get("input", "features");
  batch.labels = golden.Get("input", "labels");
  batch.size = batch.features.shape().dim(0);
  if (golden.Has("input", "weights")) batch.weights = golden.Get("input", "weights");

  RecordingSink sink(spec);
  ASSERT_EQ((*model)->ComputeGradients(values, batch, {}, &sink), absl::OkStatus());
  EXPECT_EQ(sink.Violations(), "");
  ExpectClose(golden.Get("expect", "loss").flat<float>(), {sink.loss()}, "loss");
  for (int i = 0; i < spec.variables_size(); ++i) {
    if (!spec.variables(i).trainable()) continue;
    const std::string& name = spec.variables(i).name();
    ExpectClose(golden.Get("gradient", name).flat<float>(), sink.gradient(i), "gradient of " + name);
  }
  for (int i = 0; i < spec.update_ops_size(); ++i) {
    const std::string& name = spec.update_ops(i).variable();
    ExpectClose(golden.Get("update", name).flat<float>(), sink.updates()[i], "update of " + name);
  }
  const absl::StatusOr<Tensor> prediction = (*model)->Predict(values, batch);
  ASSERT_EQ(prediction.status(), absl::OkStatus());
  ExpectClose(golden.Get("expect", "prediction").flat<float>(), prediction->flat<float>(), "prediction");
}

TEST(NnGoldenTest, LayersAndLossesMatchTensorFlow) {
  const std::vector<GoldenCase> cases = ReadCases();
  EXPECT_GE(cases.size(), 66u);
  for (const GoldenCase& golden : cases) {
    SCOPED_TRACE(golden.name);
    RunCase(golden);
  }
}

// If this test fails because of a new layer or activation, add a case to nn_golden.py.
TEST(NnGoldenTest, CasesHaveEachLayerAndActivation) {
  std::set<std::string> kinds, activations;
  for (const GoldenCase& golden : ReadCases()) {
    AddLayerKinds(golden.config, &kinds);
    AddActivations(golden.config, &activations);
  }
  for (const auto& [kind, reason] : kNoNumbers) {
    EXPECT_TRUE(kinds.insert(kind).second) << kind << " has golden numbers: take it off the list";
  }
  EXPECT_EQ(kinds, AllLayerKinds());
  EXPECT_EQ(activations, AllActivations());
}

}  // namespace
}  // namespace lockstep
