#include "lockstep/train/evaluation/run_evaluator.h"

#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/evaluation/testing/sign_run.h"

namespace lockstep {
namespace {

TEST(RunEvaluatorTest, EvaluatesACheckpointOnASplit) {
  MemoryFileSystem fs;
  RecordSignRun(&fs, "/run");
  SaveSignCheckpoint(&fs, "/run", 7, 1);
  const auto evaluator = RunEvaluator::Create(&fs, SignRunSpec(), "test");
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  const auto evaluation = (*evaluator)->EvaluateCheckpoint("/run/model.ckpt-7");
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->step, 7);
  EXPECT_EQ(EvaluationText("test", evaluation->result), "test: 4 examples: accuracy 0.75");
  EXPECT_EQ(EvaluationJson("test", *evaluation),
            R"({"checkpoint": "/run/model.ckpt-7", "step": 7, "split": "test", "examples": 4, )"
            R"("metrics": {"accuracy": 0.75}})");
}

TEST(RunEvaluatorTest, WritesAConfusionMatrixAsRows) {
  MemoryFileSystem fs;
  config::v1::RunSpec config = SignRunSpec();
  config.mutable_evaluation()->add_metric("confusion_matrix");
  RecordSignRun(&fs, "/run", config);
  SaveSignCheckpoint(&fs, "/run", 7, 1);
  const auto evaluator = RunEvaluator::Create(&fs, config, "test");
  const auto evaluation = (*evaluator)->EvaluateCheckpoint("/run/model.ckpt-7");
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_NE(EvaluationJson("test", *evaluation)
                .find(R"("metrics": {"accuracy": 0.75}, "confusion_matrix": [[1, 0], [1, 2]]})"),
            std::string::npos);
  EXPECT_EQ(EvaluationText("test", evaluation->result), "test: 4 examples: accuracy 0.75");
  EXPECT_EQ(MatrixText(evaluation->result),
            "label  as 0  as 1\n"
            "    0     1     0\n"
            "    1     1     2\n");
}

TEST(RunEvaluatorTest, PredictsEveryExampleOfTheSplit) {
  MemoryFileSystem fs;
  RecordSignRun(&fs, "/run");
  SaveSignCheckpoint(&fs, "/run", 7, 0.5);
  const auto evaluator = RunEvaluator::Create(&fs, SignRunSpec(), "test");
  ASSERT_TRUE((*evaluator)->PredictCheckpoint("/run/model.ckpt-7", {}, "/run/out.csv").ok());
  EXPECT_EQ(ReadFile(&fs, "/run/out.csv").value(),
            "example,label,class,output_0,output_1\n0,1,1,0,0.5\n1,0,0,0,-0.5\n2,1,1,0,1\n3,1,0,0,-1\n");
}

TEST(RunEvaluatorTest, SaysThatTheRunKeepsNoAverages) {
  MemoryFileSystem fs;
  RecordSignRun(&fs, "/run");
  SaveSignCheckpoint(&fs, "/run", 7, 1);
  const auto evaluator = RunEvaluator::Create(&fs, SignRunSpec(), "test", ValueSource::kMovingAverages);
  EXPECT_TRUE(absl::IsNotFound((*evaluator)->EvaluateCheckpoint("/run/model.ckpt-7").status()));
}

TEST(RunEvaluatorTest, NamesTheSplitThatIsNotThere) {
  MemoryFileSystem fs;
  RecordSignRun(&fs, "/run");
  const auto evaluator = RunEvaluator::Create(&fs, SignRunSpec(), "dev");
  EXPECT_EQ(evaluator.status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(HasSplit(SignRunSpec(), "dev"));
  EXPECT_EQ(EvaluationSplit(config::v1::RunSpec()), "test");
}

}  // namespace
}  // namespace lockstep
