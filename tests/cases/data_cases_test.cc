// Tests situations from public bug reports, with data and weights like those that users have. Each folder in data/ is
// one case, with a configuration that `check` and `local` must either both accept, or both reject with the same message
// and exit code.
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/cli/checkpoint/export_command.h"
#include "lockstep/cli/checkpoint/inspect.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kRead = 0;
constexpr int kRefused = 2;

struct Case {
  const char* name;
  int exit_code;
  // Text that the output of `check` must contain or, if the case is refused, that the error message must contain.
  const char* says;
  const char* config = "c.textproto";
};

void PrintTo(const Case& situation, std::ostream* out) { *out << situation.name << " " << situation.config; }

const Case kCases[] = {
    {"checkpoint_v1", kRefused,
     "vgg_16.ckpt: the file has no vgg_16.ckpt.index beside it, and it is no checkpoint of TensorFlow's format V1"},
    {"csv_bom_no_header", kRead, "train: 20 examples of float32[2], 2 classes"},
    {"csv_decimal_comma", kRefused, "expected a finite number; it has a comma: write a point for decimals"},
    {"csv_gz", kRead, "train: 20 examples of float32[2], 2 classes"},
    {"csv_header_again", kRefused, "data.csv:12: column \"a\" is \"a\""},
    {"csv_latin1_category", kRead, "train: 20 examples"},
    {"csv_missing_values", kRefused, "expected a finite number; a column may have missing { default: "},
    {"csv_missing_values", kRead, "train: ", "skip.textproto"},
    {"csv_mixed_types_label_missing_class", kRefused,
     "4 classes: the greatest label is 3, and classes begin at 0; the layer needs 4 outputs, or the classes other "
     "numbers (examples of split \"train\", "},
    {"csv_preamble", kRefused,
     "data.csv:1: csv column \"a\" is not among the 1 of the header line: \"Source: agency\""},
    {"csv_text_labels", kRead, "train: 20 examples of float32[2], 2 classes"},
    {"csv_trailing_separator", kRead, "train: 20 examples of float32[2], 2 classes"},
    {"epochs_smaller_than_batch", kRefused, "end before the first step, which needs 128 (2 slots of 64)"},
    {"epochs_smaller_than_batch", kRefused, "one step needs 128, and input.last_batch is DROP", "d.textproto"},
    {"epochs_smaller_than_batch", kRefused, "one step needs 128, and input.last_batch is DROP", "e.textproto"},
    {"idx_cut_download", kRefused, "the compressed file ends early"},
    {"idx_gz_zero_padding", kRead, "train: "},
    {"idx_int_labels", kRefused, "its elements are integers of 32 bits"},
    {"npz_default_names", kRefused, "it has arr_0, arr_1"},
    {"npz_default_names", kRead, "train: ", "n.textproto"},
    {"npz_float_class_labels", kRefused, "integer labels are classes, float labels are numbers"},
    {"npz_fortran", kRefused, "numpy.ascontiguousarray"},
    {"npz_object_labels", kRefused, "y has elements of the type |O"},
    {"npz_python2", kRead, "train: "},
    {"npz_string_labels", kRefused,
     "y has elements of the type <U3, which is not read; numbers and booleans are; integers are classes"},
    {"st_duplicate_key", kRefused, "named twice"},
    {"st_empty_metadata", kRead, "warm start from "},
    {"st_fp8_beside", kRead, "warm start from "},
    {"st_misaligned", kRead, "warm start from "},
    {"st_only_metadata", kRefused, "has none of the model's variables"},
    {"st_reversed_offsets", kRefused, "tensor logits/kernel: in bytes 24 to 0"},
    {"st_scalar_and_empty", kRead, "warm start from "},
    {"st_torch_names", kRefused, "logits/kernel for one; it has fc.bias, fc.weight"},
    {"st_torch_square", kRefused, "fc.weight[3,3] for fc/kernel[3,3]: it fits as it is, and in PyTorch's order"},
    {"st_trailing_bytes", kRefused, "its tensors end at byte 176 of 276"},
    {"st_truncated", kRefused, "in bytes 0 to 24 of 22"},
    {"svm_comments", kRead, "train: 21 examples"},
    {"svm_huge_index", kRefused, "d.libsvm:21: "},
    {"svm_instance_weight", kRefused, "the label \"0:0.5\" is not a finite number"},
    {"svm_multilabel", kRefused, "d.libsvm:1: the label \"0,2\""},
    {"svm_qid", kRead, "train: "},
    {"svm_unsorted", kRead, "train: "},
    {"svm_zero_based", kRefused, "if the file's begin at 0, set zero_based: true"},
    {"tfr_cut", kRefused, "record 19 at byte 1007"},
    {"tfr_empty_shard", kRead, "train: 20 examples"},
    {"tfr_first_shard_empty", kRead, "train: 20 examples"},
    {"tfr_gzip", kRead, "train: 20 examples"},
    {"tfr_sequence", kRefused,
     "the example has no feature \"x\"; it is no tf.train.Example, perhaps a SequenceExample"},
};

// A writable copy of a case's folder.
class DataCases : public ::testing::TestWithParam<Case> {
 protected:
  struct Result {
    int exit_code;
    std::string out, err;
  };

  void Copy(const std::string& name) {
    directory_ = absl::StrCat(getenv("TEST_TMPDIR"), "/", name);
    std::filesystem::remove_all(directory_);
    std::filesystem::copy(absl::StrCat("tests/cases/data/", name), directory_,
                          std::filesystem::copy_options::recursive);
  }
  std::string Path(const std::string& name) const { return JoinPath(directory_, name); }

  Result Call(int (*command)(FileSystem*, const std::vector<std::string>&, std::ostream&, std::ostream&),
              const std::vector<std::string>& words) {
    std::ostringstream out, err;
    const int exit_code = command(FileSystem::Real(), words, out, err);
    return {exit_code, out.str(), err.str()};
  }

  std::string directory_;
};

TEST_P(DataCases, AreReadOrRefusedAlikeByEachCommand) {
  Copy(GetParam().name);
  const Result check = Call(CheckCommand, {Path(GetParam().config)});
  EXPECT_EQ(check.exit_code, GetParam().exit_code) << check.err;
  EXPECT_THAT(GetParam().exit_code == kRead ? check.out : check.err, HasSubstr(GetParam().says));
  const Result local = Call(LocalCommand, {Path(GetParam().config), absl::StrCat("--logdir=", Path("run"))});
  EXPECT_EQ(local.exit_code, GetParam().exit_code) << local.err;
  if (GetParam().exit_code != kRead) {
    EXPECT_THAT(local.err, HasSubstr(GetParam().says));
  }
}

INSTANTIATE_TEST_SUITE_P(All, DataCases, ::testing::ValuesIn(kCases));

TEST_F(DataCases, DamageHasOneExitCode) {
  Copy("st_truncated");
  EXPECT_EQ(Call(Inspect, {Path("w.safetensors")}).exit_code, kRefused);
  EXPECT_EQ(Call(ExportCommand, {Path("w.safetensors"), absl::StrCat("--out=", Path("w.npz"))}).exit_code, kRefused);
  Copy("tfr_cut");
  const std::string damaged = Path("d.tfrecord");
  EXPECT_EQ(Call(LookCommand, {Path("c.textproto")}).exit_code, kRefused);
  Copy("tfr_first_shard_empty");
  const std::string logdir = absl::StrCat("--logdir=", Path("run"));
  ASSERT_EQ(Call(LocalCommand, {Path("c.textproto"), logdir}).exit_code, kRead);
  const Result predict = Call(PredictCommand, {logdir, "--split=train", absl::StrCat("--file=", damaged),
                                               absl::StrCat("--output=", Path("p.csv"))});
  EXPECT_EQ(predict.exit_code, kRefused);
  EXPECT_THAT(predict.err, HasSubstr("record 19 at byte 1007"));
  std::filesystem::copy_file(damaged, Path("d2.tfrecord"), std::filesystem::copy_options::overwrite_existing);
  const Result eval = Call(EvalCommand, {logdir, "--split=train"});
  EXPECT_EQ(eval.exit_code, kRefused);
  EXPECT_THAT(eval.err, HasSubstr("record 19 at byte 1007"));
}

TEST_F(DataCases, InspectShowsATypeThatIsNotRead) {
  Copy("st_fp8_beside");
  const Result inspected = Call(Inspect, {Path("w.safetensors")});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("F8_E4M3"));
  const Result exported = Call(ExportCommand, {Path("w.safetensors"), absl::StrCat("--out=", Path("w.npz"))});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(exported.err, "lockstep export: left out, its type cannot be written: other\n");
  Copy("st_only_metadata");
  EXPECT_EQ(Call(Inspect, {Path("w.safetensors")}).exit_code, 0);
}

TEST_F(DataCases, ShowsControlCharactersAsNumbers) {
  Copy("csv_bom_no_header");
  ASSERT_EQ(WriteFileAtomically(FileSystem::Real(), Path("data.csv"), "\x1b[2J,1,0\n"), absl::OkStatus());
  const Result check = Call(CheckCommand, {Path("c.textproto")});
  EXPECT_EQ(check.exit_code, kRefused);
  EXPECT_THAT(check.err, HasSubstr("column \"a\" is \"\\x1b[2J\", expected a finite number"));
}

TEST_F(DataCases, APipeIsRefusedWithoutWaiting) {
  Copy("data_is_a_pipe");
  ASSERT_EQ(mkfifo(Path("d.csv").c_str(), 0600), 0);
  const Result check = Call(CheckCommand, {Path("c.textproto")});
  EXPECT_EQ(check.exit_code, kRefused);
  EXPECT_THAT(check.err, HasSubstr("d.csv: it is a pipe, not a regular file"));
}

TEST_F(DataCases, PredictAnswersForEachRow) {
  Copy("predict_rows_lost");
  const std::string logdir = absl::StrCat("--logdir=", Path("run"));
  const Result local = Call(LocalCommand, {Path("c.textproto"), logdir});
  ASSERT_EQ(local.exit_code, 0) << local.err;
  const Result predict = Call(PredictCommand, {logdir, "--split=train", absl::StrCat("--file=", Path("new.csv")),
                                               absl::StrCat("--output=", Path("p.csv"))});
  ASSERT_EQ(predict.exit_code, 0) << predict.err;
  EXPECT_THAT(predict.out, HasSubstr("3 examples; 2 damaged rows without an answer"));
  const std::vector<std::string> lines = absl::StrSplit(*ReadFile(FileSystem::Real(), Path("p.csv")), '\n');
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_THAT(lines[1], StartsWith("0,"));
  EXPECT_THAT(lines[2], ::testing::MatchesRegex("1,+"));
  EXPECT_THAT(lines[3], StartsWith("2,"));
  EXPECT_THAT(lines[4], ::testing::MatchesRegex("3,+"));
  EXPECT_THAT(lines[5], StartsWith("4,"));
}

}  // namespace
}  // namespace lockstep
