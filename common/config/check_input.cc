#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/config/checks.h"

namespace lockstep {
namespace {

void CheckCsv(const std::string& field, const InputConfig::Csv& csv, ConfigProblems* problems) {
  problems->RequireText(field + ".file", csv.file());
  if (csv.separator().size() > 1) {
    problems->Add(field + ".separator", absl::StrCat("is \"", csv.separator(), "\", must be one character"));
  }
  int labels = 0, weights = 0, features = 0;
  for (int i = 0; i < csv.column_size(); ++i) {
    const auto& column = csv.column(i);
    const std::string name = absl::StrCat(field, ".column[", i, "]");
    if (!csv.no_header()) problems->RequireText(name + ".name", column.name());
    const bool is_category = column.type() == InputConfig::Csv::CATEGORY;
    // A label may be a text, too.
    const bool may_be_text = is_category || column.type() == InputConfig::Csv::LABEL;
    if (is_category && column.category().empty()) problems->Add(name, "is a CATEGORY, must list its categories");
    if (!may_be_text && !column.category().empty()) problems->Add(name, "lists categories, must be a CATEGORY");
    labels += column.type() == InputConfig::Csv::LABEL;
    weights += column.type() == InputConfig::Csv::WEIGHT;
    features += is_category || column.type() == InputConfig::Csv::FLOAT || column.type() == InputConfig::Csv::INT;
  }
  problems->Require(absl::StrCat(field, "'s number of feature columns"), features, features > 0, "above 0");
  problems->Require(absl::StrCat(field, "'s number of LABEL columns"), labels, labels <= 1, "at most 1");
  problems->Require(absl::StrCat(field, "'s number of WEIGHT columns"), weights, weights <= 1, "at most 1");
}

template <typename Dims>
void CheckDims(const std::string& field, const Dims& dims, ConfigProblems* problems) {
  if (dims.empty()) problems->Add(field, "is empty");
  for (int i = 0; i < dims.size(); ++i) problems->RequirePositive(absl::StrCat(field, "[", i, "]"), dims[i]);
}

void CheckTfRecord(const std::string& field, const InputConfig::TfRecord& tfrecord, ConfigProblems* problems) {
  if (tfrecord.file().empty()) problems->Add(field + ".file", "is empty, must name one file at least");
  for (const std::string& file : tfrecord.file()) problems->RequireText(field + ".file", file);
  problems->RequireText(field + ".feature_key", tfrecord.feature_key());
  CheckDims(field + ".feature_shape", tfrecord.feature_shape(), problems);
}

void CheckSynthetic(const std::string& field, const InputConfig::Synthetic& synthetic, ConfigProblems* problems) {
  problems->RequirePositive(field + ".examples", synthetic.examples());
  CheckDims(field + ".shape", synthetic.shape(), problems);
  problems->RequireNotNegative(field + ".noise", synthetic.noise());
  const std::string classes = field + ".classes";
  switch (synthetic.kind()) {
    case InputConfig::Synthetic::CLASSIFICATION:
      return problems->RequirePositive(classes, synthetic.classes());
    case InputConfig::Synthetic::SEQUENCE:
      problems->RequirePositive(classes, synthetic.classes());
      problems->Require(field + ".vocabulary", synthetic.vocabulary(), synthetic.vocabulary() >= synthetic.classes(),
                        absl::StrCat("at least the number of classes, ", synthetic.classes()));
      problems->Require(field + ".shape's number of dimensions", synthetic.shape_size(), synthetic.shape_size() == 1,
                        "1, the length of a sequence");
      return;
    default:
      return;
  }
}

void CheckSplit(const std::string& field, const InputConfig::Split& split, ConfigProblems* problems) {
  problems->RequireText(field + ".name", split.name());
  switch (split.source_case()) {
    case InputConfig::Split::kIdx:
      problems->RequireText(field + ".idx.images", split.idx().images());
      return problems->RequireText(field + ".idx.labels", split.idx().labels());
    case InputConfig::Split::kCsv:
      return CheckCsv(field + ".csv", split.csv(), problems);
    case InputConfig::Split::kLibsvm:
      problems->RequireText(field + ".libsvm.file", split.libsvm().file());
      return problems->RequirePositive(field + ".libsvm.features", split.libsvm().features());
    case InputConfig::Split::kTfrecord:
      return CheckTfRecord(field + ".tfrecord", split.tfrecord(), problems);
    case InputConfig::Split::kSynthetic:
      return CheckSynthetic(field + ".synthetic", split.synthetic(), problems);
    case InputConfig::Split::SOURCE_NOT_SET:
      return problems->Add(field, "has no source, must have one of idx, csv, libsvm, tfrecord, synthetic");
  }
}

}  // namespace

void CheckInput(const InputConfig& input, ConfigProblems* problems) {
  std::set<std::string> names;
  for (int i = 0; i < input.split_size(); ++i) {
    const std::string field = absl::StrCat("input.split[", i, "]");
    CheckSplit(field, input.split(i), problems);
    if (!names.insert(input.split(i).name()).second) {
      problems->Add(field + ".name", absl::StrCat("is \"", input.split(i).name(), "\", as that of another split"));
    }
  }
  if (names.count("train") == 0) problems->Add("input", "has no split named \"train\"");
  problems->Require("input.batch_size", input.batch_size(), input.batch_size() > 0, "above 0, such as 64");
  problems->RequireNotNegative("input.augmentation.crop_padding", input.augmentation().crop_padding());
  problems->RequireFinite("input.normalization.mean", input.normalization().mean());
  if (input.normalization().has_stddev()) {
    problems->RequirePositive("input.normalization.stddev", input.normalization().stddev());
  }
}

}  // namespace lockstep
