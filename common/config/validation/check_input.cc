#include <cstdint>
#include <limits>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "lockstep/common/config/validation/checks.h"

namespace lockstep {
namespace {

using Csv = config::v1::InputConfig::Csv;

template <typename Files>
void CheckFiles(const std::string& field, const Files& files, ConfigProblems* problems) {
  if (files.empty()) problems->Add(field + ".file", "is empty, must name one file at least");
  for (const std::string& file : files) problems->RequireText(field + ".file", file);
}

// A one-hot column has a feature for each category, so a larger number would be a mistake.
constexpr int64_t kMaxOneHot = 65536;

// Checks the settings that turn a column's fields into features.
void CheckColumnReading(const std::string& name, const Csv::Column& column, ConfigProblems* problems) {
  const bool is_category = column.type() == Csv::CATEGORY;
  const bool is_number = column.type() == Csv::FLOAT || column.type() == Csv::INT;
  if (column.one_hot() && !is_category) problems->Add(name + ".one_hot", "is true, must be that of a CATEGORY");
  if (column.standardize() && !is_number) problems->Add(name + ".standardize", "is true, must be that of FLOAT or INT");
  if (column.hash_buckets() != 0) {
    const int64_t most = column.one_hot() ? kMaxOneHot : std::numeric_limits<int32_t>::max();
    problems->Require(name + ".hash_buckets", column.hash_buckets(),
                      column.hash_buckets() > 0 && column.hash_buckets() <= most, absl::StrCat("in [1, ", most, "]"));
    if (!is_category || !column.category().empty()) {
      problems->Add(name + ".hash_buckets", "is set, must be that of a CATEGORY without a list");
    }
  }
  if (!column.has_missing()) return;
  switch (column.missing().kind_case()) {
    case Csv::Missing::kMean:
      if (!column.missing().mean()) problems->Add(name + ".missing.mean", "is false; leave it out");
      if (!is_number) problems->Add(name + ".missing.mean", "is true, must be that of FLOAT or INT");
      return;
    case Csv::Missing::kSkip:
      if (!column.missing().skip()) problems->Add(name + ".missing.skip", "is false; leave it out");
      return;
    case Csv::Missing::kDefault:
      return problems->RequireText(name + ".missing.default", column.missing().default_());
    default:
      return problems->Add(name + ".missing", "is empty, must have one of default, mean, skip");
  }
}

void CheckPrepared(const std::string& field, const Csv::Prepared& prepared, ConfigProblems* problems) {
  problems->RequireText(field + ".column", prepared.column());
  problems->RequireFinite(field + ".mean", prepared.mean());
  problems->RequirePositive(field + ".stddev", prepared.stddev());
}

void CheckCsv(const std::string& field, const Csv& csv, ConfigProblems* problems) {
  CheckFiles(field, csv.file(), problems);
  if (csv.separator().size() > 1) {
    problems->Add(field + ".separator", absl::StrCat("is \"", csv.separator(), "\", must be one character"));
  }
  int labels = 0, weights = 0, features = 0, ids = 0;
  for (int i = 0; i < csv.prepared_size(); ++i) {
    CheckPrepared(absl::StrCat(field, ".prepared[", i, "]"), csv.prepared(i), problems);
  }
  for (int i = 0; i < csv.column_size(); ++i) {
    const auto& column = csv.column(i);
    const std::string name = absl::StrCat(field, ".column[", i, "]");
    if (!csv.no_header()) problems->RequireText(name + ".name", column.name());
    CheckColumnReading(name, column, problems);
    const bool is_category = column.type() == Csv::CATEGORY;
    // A label may also be a string.
    const bool may_be_text = is_category || column.type() == Csv::LABEL;
    if (!may_be_text && !column.category().empty()) problems->Add(name, "lists categories, must be a CATEGORY");
    if (column.has_count()) problems->RequirePositive(name + ".count", column.count());
    if (!column.last().empty() && (csv.no_header() || column.has_count())) {
      problems->Add(name + ".last", csv.no_header() ? "needs a header line; without one use count"
                                                    : "is set, and so is count; use one of them");
    }
    const bool is_range = !column.last().empty() || column.count() > 1;
    const bool is_single = column.type() == Csv::LABEL || column.type() == Csv::WEIGHT || column.type() == Csv::ID;
    if (is_range && is_single) problems->Add(name, "is a range of columns, must be a single LABEL, WEIGHT or ID");
    labels += column.type() == Csv::LABEL;
    weights += column.type() == Csv::WEIGHT;
    ids += column.type() == Csv::ID;
    features += is_category || column.type() == Csv::FLOAT || column.type() == Csv::INT;
  }
  problems->Require(absl::StrCat(field, "'s number of feature columns"), features, features > 0, "above 0");
  problems->Require(absl::StrCat(field, "'s number of LABEL columns"), labels, labels <= 1, "at most 1");
  problems->Require(absl::StrCat(field, "'s number of WEIGHT columns"), weights, weights <= 1, "at most 1");
  problems->Require(absl::StrCat(field, "'s number of ID columns"), ids, ids <= 1, "at most 1");
}

template <typename Dims>
void CheckDims(const std::string& field, const Dims& dims, ConfigProblems* problems) {
  if (dims.empty()) problems->Add(field, "is empty");
  for (int i = 0; i < dims.size(); ++i) problems->RequirePositive(absl::StrCat(field, "[", i, "]"), dims[i]);
}

constexpr int64_t kMaxImageSide = 65536;

void CheckImageForm(const std::string& field, const config::v1::InputConfig::ImageForm& form,
                    ConfigProblems* problems) {
  const std::string range = absl::StrCat("in [1, ", kMaxImageSide, "], in pixels, such as 224");
  problems->Require(field + ".height", form.height(), form.height() >= 1 && form.height() <= kMaxImageSide, range);
  problems->Require(field + ".width", form.width(), form.width() >= 1 && form.width() <= kMaxImageSide, range);
  if (!form.has_channels()) return;
  problems->Require(field + ".channels", form.channels(), form.channels() == 1 || form.channels() == 3,
                    "3 (colours) or 1 (grey)");
}

void CheckTfRecord(const std::string& field, const config::v1::InputConfig::TfRecord& tfrecord,
                   ConfigProblems* problems) {
  CheckFiles(field, tfrecord.file(), problems);
  problems->RequireText(field + ".feature_key", tfrecord.feature_key());
  if (!tfrecord.has_image()) return CheckDims(field + ".feature_shape", tfrecord.feature_shape(), problems);
  CheckImageForm(field + ".image", tfrecord.image(), problems);
  if (!tfrecord.feature_shape().empty()) {
    problems->Add(field + ".feature_shape", "is set, and so is image, which has the shape; use one of them");
  }
}

void CheckImages(const std::string& field, const config::v1::InputConfig::Images& images, ConfigProblems* problems) {
  problems->RequireText(field + ".folder", images.folder());
  CheckImageForm(field + ".form", images.form(), problems);
  std::set<std::string> names;
  for (int i = 0; i < images.class_name_size(); ++i) {
    const std::string name = absl::StrCat(field, ".class_name[", i, "]");
    problems->RequireText(name, images.class_name(i));
    if (!names.insert(images.class_name(i)).second) {
      problems->Add(name, absl::StrCat("is \"", images.class_name(i), "\", as that of another class"));
    }
  }
}

void CheckSynthetic(const std::string& field, const config::v1::InputConfig::Synthetic& synthetic,
                    ConfigProblems* problems) {
  problems->RequirePositive(field + ".examples", synthetic.examples());
  CheckDims(field + ".shape", synthetic.shape(), problems);
  problems->RequireNotNegative(field + ".noise", synthetic.noise());
  const std::string classes = field + ".classes";
  switch (synthetic.kind()) {
    case config::v1::InputConfig::Synthetic::CLASSIFICATION:
      return problems->RequirePositive(classes, synthetic.classes());
    case config::v1::InputConfig::Synthetic::SEQUENCE:
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

void CheckRegistered(const std::string& field, const config::v1::InputConfig::Registered& registered,
                     ConfigProblems* problems) {
  problems->RequireText(field + ".name", registered.name());
  for (int i = 0; i < registered.file_size(); ++i) {
    problems->RequireText(absl::StrCat(field, ".file[", i, "]"), registered.file(i));
  }
}

void CheckSplit(const std::string& field, const config::v1::InputConfig::Split& split, ConfigProblems* problems) {
  problems->RequireText(field + ".name", split.name());
  switch (split.source_case()) {
    case config::v1::InputConfig::Split::kIdx:
      problems->RequireText(field + ".idx.images", split.idx().images());
      return problems->RequireText(field + ".idx.labels", split.idx().labels());
    case config::v1::InputConfig::Split::kCsv:
      return CheckCsv(field + ".csv", split.csv(), problems);
    case config::v1::InputConfig::Split::kLibsvm:
      CheckFiles(field + ".libsvm", split.libsvm().file(), problems);
      return problems->RequirePositive(field + ".libsvm.features", split.libsvm().features());
    case config::v1::InputConfig::Split::kTfrecord:
      return CheckTfRecord(field + ".tfrecord", split.tfrecord(), problems);
    case config::v1::InputConfig::Split::kSynthetic:
      return CheckSynthetic(field + ".synthetic", split.synthetic(), problems);
    case config::v1::InputConfig::Split::kNpz:
      return problems->RequireText(field + ".npz.file", split.npz().file());
    case config::v1::InputConfig::Split::kNpy:
      problems->RequireText(field + ".npy.features", split.npy().features());
      return problems->RequireText(field + ".npy.labels", split.npy().labels());
    case config::v1::InputConfig::Split::kImages:
      return CheckImages(field + ".images", split.images(), problems);
    case config::v1::InputConfig::Split::kRegistered:
      return CheckRegistered(field + ".registered", split.registered(), problems);
    case config::v1::InputConfig::Split::SOURCE_NOT_SET:
      return problems->Add(
          field, "has no source, must have one of idx, csv, libsvm, tfrecord, npz, npy, images, synthetic, registered");
  }
}

}  // namespace

void CheckInput(const config::v1::InputConfig& input, bool needs_split, ConfigProblems* problems) {
  std::set<std::string> names;
  for (int i = 0; i < input.split_size(); ++i) {
    const std::string field = absl::StrCat("input.split[", i, "]");
    CheckSplit(field, input.split(i), problems);
    if (!names.insert(input.split(i).name()).second) {
      problems->Add(field + ".name", absl::StrCat("is \"", input.split(i).name(), "\", as that of another split"));
    }
  }
  const bool reads = needs_split || input.split_size() > 0;
  if (reads && names.count("train") == 0) problems->Add("input", "has no split named \"train\"");
  problems->Require("input.batch_size", input.batch_size(), input.batch_size() > 0, "above 0, such as 64");
  problems->RequireNotNegative("input.epochs", input.epochs());
  problems->Require("input.test_fraction", input.test_fraction(),
                    input.test_fraction() >= 0 && input.test_fraction() < 1, "in [0, 1)");
  if (input.test_fraction() > 0 && names.count("test") > 0) {
    problems->Add("input.test_fraction",
                  "is set, so the split \"test\" is a part of \"train\" and must have no source");
  }
  problems->RequireNotNegative("input.augmentation.crop_padding", input.augmentation().crop_padding());
  problems->RequireFinite("input.normalization.mean", input.normalization().mean());
  if (input.normalization().has_stddev()) {
    problems->RequirePositive("input.normalization.stddev", input.normalization().stddev());
  }
}

}  // namespace lockstep
