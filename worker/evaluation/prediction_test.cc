#include "lockstep/worker/evaluation/prediction.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

// Predicts the features.
class Echo : public Model {
 public:
  const v1::ModelSpec& spec() const override { return spec_; }
  absl::Status ComputeGradients(VariableValues, const Batch&, const SlotKey&, GradientSink*) override {
    return absl::UnimplementedError("not trained");
  }
  absl::StatusOr<Tensor> Predict(VariableValues, const Batch& batch) override { return batch.features; }
  absl::StatusOr<float> EvaluateLoss(VariableValues, const Batch&) override { return 0.0f; }

 private:
  const v1::ModelSpec spec_;
};

// A dataset of `size` examples of two numbers: i / 10 - 0.1 and 1e-9. Labels are i % 2, or targets.
class Numbers : public Dataset {
 public:
  Numbers(int64_t size, bool has_classes, bool has_labels = true)
      : Dataset(Spec(has_classes), size, /*has_weights=*/false, /*crc32c=*/0, has_labels) {}

 private:
  static ExampleSpec Spec(bool has_classes) {
    ExampleSpec spec;
    spec.features_shape = Shape({2});
    spec.classes = has_classes ? 2 : 0;
    if (!has_classes) {
      spec.labels_dtype = v1::DT_FLOAT;
      spec.labels_shape = Shape({2});
    }
    return spec;
  }
  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      out->features.flat<float>()[2 * i] = static_cast<float>(indices[i]) / 10 - 0.1f;
      out->features.flat<float>()[2 * i + 1] = 1e-9f;
      if (spec().classes > 0) {
        out->labels.flat<int32_t>()[i] = static_cast<int32_t>(indices[i] % 2);
      } else {
        out->labels.flat<float>()[2 * i] = out->labels.flat<float>()[2 * i + 1] = 0;
      }
    }
    return absl::OkStatus();
  }
};

class PredictionTest : public ::testing::Test {
 protected:
  PredictionTest() { options_.evaluation.batch_size = 2; }

  absl::Status Predict(const Dataset& dataset) {
    Echo model;
    return WritePredictions(&model, {}, dataset, options_, &fs_, "out.csv");
  }

  MemoryFileSystem fs_;
  PredictionOptions options_;
};

TEST_F(PredictionTest, WritesPredictionsOfClasses) {
  ASSERT_TRUE(Predict(Numbers(3, true)).ok());
  EXPECT_EQ(*ReadFile(&fs_, "out.csv"),
            "example,label,class,output_0,output_1\n"
            "0,0,1,-0.1,1e-09\n"
            "1,1,1,0,1e-09\n"
            "2,0,0,0.1,1e-09\n");
}

TEST_F(PredictionTest, WritesPredictionsOfNumbers) {
  options_.evaluation.batch_size = 1;
  ASSERT_TRUE(Predict(Numbers(2, false)).ok());
  EXPECT_EQ(*ReadFile(&fs_, "out.csv"), "example,output_0,output_1\n0,-0.1,1e-09\n1,0,1e-09\n");
}

TEST_F(PredictionTest, WritesTheNamesOfClasses) {
  options_.class_names = {"cat", "the \"big\", bad wolf"};
  ASSERT_TRUE(Predict(Numbers(3, true)).ok());
  EXPECT_EQ(*ReadFile(&fs_, "out.csv"),
            "example,label,class,class_name,output_0,output_1\n"
            "0,0,1,\"the \"\"big\"\", bad wolf\",-0.1,1e-09\n"
            "1,1,1,\"the \"\"big\"\", bad wolf\",0,1e-09\n"
            "2,0,0,cat,0.1,1e-09\n");
  options_.class_names.pop_back();
  const absl::Status status = Predict(Numbers(3, true));
  EXPECT_EQ(status.message(), "there are names for 1 classes, the model answers with one of 2");
}

TEST_F(PredictionTest, WithoutLabelsWritesClassesIfKnown) {
  ASSERT_TRUE(Predict(Numbers(1, true, /*has_labels=*/false)).ok());
  EXPECT_EQ(*ReadFile(&fs_, "out.csv"), "example,output_0,output_1\n0,-0.1,1e-09\n");
  options_.has_classes = true;
  ASSERT_TRUE(Predict(Numbers(1, true, /*has_labels=*/false)).ok());
  EXPECT_EQ(*ReadFile(&fs_, "out.csv"), "example,class,output_0,output_1\n0,1,-0.1,1e-09\n");
}

TEST_F(PredictionTest, WritesProbabilities) {
  options_.outputs = PredictionOptions::Outputs::kSoftmax;
  ASSERT_TRUE(Predict(Numbers(2, true)).ok());
  EXPECT_EQ(*ReadFile(&fs_, "out.csv"),
            "example,label,class,probability_0,probability_1\n0,0,1,0.47502083,0.5249792\n1,1,1,0.5,0.5\n");
  options_.outputs = PredictionOptions::Outputs::kSigmoid;
  ASSERT_TRUE(Predict(Numbers(1, true)).ok());
  EXPECT_EQ(*ReadFile(&fs_, "out.csv"), "example,label,class,probability_0,probability_1\n0,0,1,0.47502083,0.5\n");
}

// A dataset with identifiers and with rows before, between and after the examples that hold no example.
class Gaps : public Numbers {
 public:
  Gaps() : Numbers(3, /*has_classes=*/true) {}
  int64_t rows() const override { return 6; }
  Row RowAt(int64_t i) const override { return {10 + i, i % 2 == 0 ? -1 : i / 2}; }
  std::string id_name() const override { return "name"; }
  absl::StatusOr<std::string> ReadId(int64_t i) const override { return absl::StrCat("a,", i); }
};

TEST_F(PredictionTest, WritesALineForEachRow) {
  ASSERT_TRUE(Predict(Gaps()).ok());
  EXPECT_EQ(*ReadFile(&fs_, "out.csv"),
            "example,name,label,class,output_0,output_1\n"
            "10,\"a,0\",,,,\n"
            "11,\"a,1\",0,1,-0.1,1e-09\n"
            "12,\"a,2\",,,,\n"
            "13,\"a,3\",1,1,0,1e-09\n"
            "14,\"a,4\",,,,\n"
            "15,\"a,5\",0,0,0.1,1e-09\n");
}

TEST_F(PredictionTest, LeavesNoHalfFileBehind) {
  options_.evaluation.cancelled = [calls = 0]() mutable { return ++calls > 1; };
  EXPECT_EQ(Predict(Numbers(5, true)).code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(fs_.Exists("out.csv").value());
  EXPECT_FALSE(fs_.Exists("out.csv.tmp").value());
}

}  // namespace
}  // namespace lockstep
