#include <stdlib.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/common/checkpoint/formats/npy.h"
#include "lockstep/common/checkpoint/formats/npz_writer.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/common/io/testing/bytes_of.h"
#include "lockstep/v1/example.pb.h"
#include "lockstep/worker/data/formats/testing/idx_encoder.h"

namespace lockstep {
namespace {

using ::testing::StartsWith;

// Each example is a number, 0 or 1, which is also its class.
class PredictCommandTest : public ::testing::Test {
 protected:
  PredictCommandTest() { EXPECT_EQ(fs_->CreateDirectory(directory_), absl::OkStatus()); }

  std::string Path(const std::string& name) { return JoinPath(directory_, name); }
  std::string Logdir() { return absl::StrCat("--logdir=", Path("run")); }
  void Write(const std::string& name, const std::string& contents) {
    EXPECT_EQ(WriteFileAtomically(fs_, Path(name), contents), absl::OkStatus());
  }

  // Writes a run that trains with the columns x and y of train.csv.
  void WriteCsvRun(int steps) {
    Write("run.textproto", absl::StrCat(R"(
        model { layer { name: "y" dense { units: 2 } } loss { softmax_cross_entropy {} } }
        input {
          split { name: "train" csv { file: "train.csv" column { name: "x" } column { name: "y" type: LABEL } } }
          batch_size: 4
        }
        optimizer { sgd {} learning_rate { initial: 0.5 } }
        training { steps: )",
                                        steps, " }"));
  }

  // Trains as run.textproto says, then predicts the examples in the file. Returns the lines of the output.
  std::vector<std::string> TrainAndPredict(const std::string& file) {
    std::ostringstream out, err;
    EXPECT_EQ(LocalCommand(fs_, {Path("run.textproto"), Logdir()}, out, err), 0) << err.str();
    EXPECT_EQ(PredictCommand(fs_, {Logdir(), "--file", Path(file), "--output", Path("out.csv")}, out, err), 0)
        << err.str();
    const auto contents = ReadFile(fs_, Path("out.csv"));
    EXPECT_TRUE(contents.ok()) << contents.status();
    return contents.ok() ? absl::StrSplit(*contents, '\n') : std::vector<std::string>();
  }

  // Trains with `source`, then predicts the unlabeled examples 1, 0, 1 in the file.
  void ExpectPrediction(const std::string& source, const std::string& file) {
    Write("run.textproto", absl::StrCat(R"(
        model {
          layer { name: "flat" flatten {} }
          layer { name: "y" dense { units: 2 } }
          loss { softmax_cross_entropy {} }
        }
        input { split { name: "train" )",
                                        source, R"( } split { name: "test" )", source, R"( } batch_size: 4 }
        optimizer { sgd {} learning_rate { initial: 0.5 } }
        training { steps: 200 })"));
    const std::vector<std::string> lines = TrainAndPredict(file);
    ASSERT_EQ(lines.size(), 5);
    EXPECT_EQ(lines[0], "example,class,output_0,output_1") << "there is no label to show";
    EXPECT_THAT(lines[1], StartsWith("0,1,"));
    EXPECT_THAT(lines[2], StartsWith("1,0,"));
    EXPECT_THAT(lines[3], StartsWith("2,1,"));
  }

  FileSystem* const fs_ = FileSystem::Real();
  const std::string directory_ =
      absl::StrCat(getenv("TEST_TMPDIR"), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

const std::vector<float> kTrained = {0, 1, 0, 1};
const std::vector<int64_t> kLabels = {0, 1, 0, 1};
const std::vector<float> kUnlabeled = {1, 0, 1};

std::string Records(const std::vector<float>& values, bool labels) {
  std::string records;
  for (const float value : values) {
    v1::Example example;
    auto* const features = example.mutable_features()->mutable_feature();
    (*features)["x"].mutable_float_list()->add_value(value);
    if (labels) (*features)["y"].mutable_int64_list()->add_value(static_cast<int64_t>(value));
    records += FrameRecord(example.SerializeAsString());
  }
  return records;
}

TEST_F(PredictCommandTest, TfrecordFilesNeedNoLabels) {
  Write("train.tfrecord", Records(kTrained, /*labels=*/true));
  Write("new.tfrecord", Records(kUnlabeled, /*labels=*/false));
  ExpectPrediction("tfrecord { file: 'train.tfrecord' feature_key: 'x' feature_shape: [1, 1] label_key: 'y' }",
                   "new.tfrecord");
}

TEST_F(PredictCommandTest, IdxFilesNeedNoLabels) {
  Write("images", EncodeIdx({4, 1, 1}, absl::string_view("\0\xff\0\xff", 4)));
  Write("labels", EncodeIdx({4}, absl::string_view("\0\1\0\1", 4)));
  Write("new", EncodeIdx({3, 1, 1}, absl::string_view("\xff\0\xff", 3)));
  ExpectPrediction("idx { images: 'images' labels: 'labels' }", "new");
}

TEST_F(PredictCommandTest, NpyFilesNeedNoLabels) {
  Write("x.npy", EncodeNpyHeader(v1::DT_FLOAT, {4, 1}).value() + BytesOf(kTrained));
  Write("y.npy", EncodeNpyHeader(v1::DT_INT64, {4}).value() + BytesOf(kLabels));
  Write("new.npy", EncodeNpyHeader(v1::DT_FLOAT, {3, 1}).value() + BytesOf(kUnlabeled));
  ExpectPrediction("npy { features: 'x.npy' labels: 'y.npy' }", "new.npy");
}

TEST_F(PredictCommandTest, NpzFilesNeedNoLabels) {
  const auto write = [&](const std::string& name, const std::vector<float>& x, bool labels) {
    const auto file = fs_->NewWritableFile(Path(name)).value();
    NpzWriter writer(file.get());
    EXPECT_TRUE(writer.Add("x", v1::DT_FLOAT, {static_cast<int64_t>(x.size()), 1}, BytesOf(x)).ok());
    if (labels) {
      EXPECT_TRUE(writer.Add("y", v1::DT_INT64, {4}, BytesOf(kLabels)).ok());
    }
    EXPECT_TRUE(writer.Finish().ok());
    EXPECT_TRUE(file->Close().ok());
  };
  write("train.npz", kTrained, /*labels=*/true);
  write("new.npz", kUnlabeled, /*labels=*/false);
  ExpectPrediction("npz { file: 'train.npz' }", "new.npz");
}

// Reading the columns requires properties of the training split, whose file is removed before new rows are predicted.
TEST_F(PredictCommandTest, ReadsNewRowsAsTheTrainingRowsWere) {
  std::string rows = "id,x,town,y\n";
  for (int i = 0; i < 40; ++i)
    absl::StrAppend(&rows, "r", i, ",", i % 2 ? 70 : 30, ",", i % 2 ? "Oslo" : "Rome", ",", i % 2 ? "yes" : "no", "\n");
  Write("all.csv", rows);
  Write("run.textproto", R"(
      model { layer { name: "y" dense { units: 2 } } loss { softmax_cross_entropy {} } }
      input {
        split { name: "train" csv { file: "all.csv"
          column { name: "id" type: ID } column { name: "x" standardize: true missing { mean: true } }
          column { name: "town" type: CATEGORY one_hot: true } column { name: "y" type: LABEL } } }
        test_fraction: 0.25
        batch_size: 4
      }
      optimizer { sgd {} learning_rate { initial: 0.5 } }
      training { steps: 100 })");
  const std::string logdir = absl::StrCat("--logdir=", Path("run"));
  std::ostringstream out, err;
  ASSERT_EQ(LocalCommand(fs_, {Path("run.textproto"), logdir}, out, err), 0) << err.str();
  EXPECT_THAT(out.str(), ::testing::HasSubstr("accuracy 1"));
  ASSERT_EQ(PredictCommand(fs_, {logdir, "--output", Path("test.csv")}, out, err), 0) << err.str();
  EXPECT_THAT(*ReadFile(fs_, Path("test.csv")), StartsWith("example,id,label,class,class_name,output_0,output_1\n"));
  ASSERT_TRUE(fs_->Remove(Path("all.csv")).ok());
  Write("new.csv", "town,x,id\nOslo,70,a\nParis,1,b\nRome,,c\n");
  ASSERT_EQ(PredictCommand(fs_, {logdir, "--file", Path("new.csv"), "--output", Path("out.csv")}, out, err), 0)
      << err.str();
  const std::vector<std::string> lines = absl::StrSplit(ReadFile(fs_, Path("out.csv")).value(), '\n');
  ASSERT_EQ(lines.size(), 5);
  EXPECT_EQ(lines[0], "example,id,class,class_name,output_0,output_1");
  EXPECT_THAT(lines[1], StartsWith("0,a,1,yes,"));
  EXPECT_EQ(lines[2], "1,b,,,,") << "no such town";
  EXPECT_THAT(lines[3], StartsWith("2,c,0,no,"));
}

TEST_F(PredictCommandTest, CsvFilesNeedNoLabels) {
  Write("train.csv", "x,y\n0,0\n1,1\n0,0\n1,1\n");
  Write("new.csv", "x\n1\n0\n1\n");
  ExpectPrediction("csv { file: 'train.csv' column { name: 'x' } column { name: 'y' type: LABEL } }", "new.csv");
}

TEST_F(PredictCommandTest, UnknownCsvLabelsDoNotMatter) {
  Write("train.csv", "x,y\n0,no\n1,yes\n0,no\n1,yes\n");
  Write("new.csv", "x,y\n1,\n0,maybe\n?,no\n1,no\n");
  WriteCsvRun(200);
  const std::vector<std::string> lines = TrainAndPredict("new.csv");
  ASSERT_EQ(lines.size(), 6);
  EXPECT_EQ(lines[0], "example,label,class,class_name,output_0,output_1");
  EXPECT_THAT(lines[1], StartsWith("0,,1,yes,"));
  EXPECT_THAT(lines[2], StartsWith("1,,0,no,"));
  EXPECT_EQ(lines[3], "2,,,,,") << "a damaged feature";
  EXPECT_THAT(lines[4], StartsWith("3,0,1,yes,"));
}

TEST_F(PredictCommandTest, AFileNeedsNoTestSplit) {
  Write("train.csv", "x,y\n0,0\n1,1\n0,0\n1,1\n");
  Write("new.csv", "x\n1\n");
  WriteCsvRun(2);
  TrainAndPredict("new.csv");
  std::ostringstream out, err;
  EXPECT_NE(PredictCommand(fs_, {Logdir(), "--output", Path("out.csv")}, out, err), 0);
}

}  // namespace
}  // namespace lockstep
