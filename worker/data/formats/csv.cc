#include "lockstep/worker/data/formats/csv.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/data/csv/csv_column.h"
#include "lockstep/worker/data/csv/csv_fields.h"
#include "lockstep/worker/data/csv/csv_order.h"
#include "lockstep/worker/data/csv/csv_records.h"
#include "lockstep/worker/data/csv/csv_source.h"
#include "lockstep/worker/data/records/data_file.h"
#include "lockstep/worker/data/records/decimal.h"

namespace lockstep {
namespace {

using Csv = config::v1::InputConfig::Csv;
using PreparedColumns = std::vector<Csv::Prepared>;

// Maximum number of elements of an example. A longer example indicates a mistaken one_hot.
constexpr int64_t kMaxFeatures = int64_t{1} << 24;

struct Layout {
  std::vector<CsvColumn> columns;
  ExampleSpec spec;
  bool has_weights = false;
  bool has_labels = true;
};

void StoreUnknown(const CsvColumn& column, const ExampleSlot& out) {
  if (column.type == Csv::LABEL) *out.label = -1;
  if (column.type == Csv::TARGET) out.targets[column.place] = 0;
  if (column.type == Csv::WEIGHT) *out.weight = 1;
}

class CsvFormat : public CsvRecords {
 public:
  CsvFormat(Layout layout, char separator, bool labels_unchecked, PreparedColumns prepared, std::string fingerprint)
      : CsvRecords(layout.spec, layout.has_weights, std::move(fingerprint), layout.has_labels, separator),
        columns_(std::move(layout.columns)),
        labels_unchecked_(labels_unchecked),
        prepared_(std::move(prepared)) {}

  absl::Status Parse(absl::string_view record, const ExampleSlot& out) const override {
    if (!has_labels()) *out.label = 0;
    return ForEachCsvField(record, separator(), columns_.size(), [&](size_t i, absl::string_view field) {
      absl::Status status = ParseCsvField(columns_[i], field, out);
      if (status.ok() || !labels_unchecked_ || !columns_[i].is_answer()) return status;
      StoreUnknown(columns_[i], out);
      return absl::OkStatus();
    });
  }

  std::string id_name() const override {
    const CsvColumn* const id = Id();
    return id == nullptr ? "" : id->name.empty() ? "id" : id->name;
  }

  std::string IdOf(absl::string_view record) const override {
    const CsvColumn* const id = Id();
    CsvFields fields(record, separator());
    absl::string_view field;
    for (const CsvColumn& column : columns_) {
      if (!fields.Next(&field)) break;
      if (&column == id) return FromUtf8OrLatin1(absl::StripAsciiWhitespace(field));
    }
    return "";
  }

  void AddPreparation(v1::DataDigest* digest) const override {
    *digest->mutable_prepared() = {prepared_.begin(), prepared_.end()};
  }

 private:
  // Returns null if no column identifies rows.
  const CsvColumn* Id() const {
    const auto found =
        std::find_if(columns_.begin(), columns_.end(), [](const CsvColumn& column) { return column.type == Csv::ID; });
    return found == columns_.end() ? nullptr : &*found;
  }

  const std::vector<CsvColumn> columns_;
  const bool labels_unchecked_;
  const PreparedColumns prepared_;
};

absl::StatusOr<Layout> MakeLayout(std::vector<CsvColumn> columns, bool labels_optional) {
  Layout layout;
  int64_t features = 0, floats = 0, labels = 0, targets = 0, weights = 0;
  for (CsvColumn& column : columns) {
    floats += column.type == Csv::FLOAT || column.makes_floats();
    labels += column.type == Csv::LABEL;
    weights += column.type == Csv::WEIGHT;
    if (column.type == Csv::TARGET) column.place = targets++;
    if (column.is_feature()) {
      column.place = features;
      features += column.width();
    }
    if (column.type == Csv::LABEL) layout.spec.classes = static_cast<int64_t>(column.category.size());
  }
  layout.has_labels = !labels_optional || labels + targets > 0;
  if (features == 0 || weights > 1 || labels > 1 || (layout.has_labels && (labels == 0) == (targets == 0))) {
    return absl::InvalidArgumentError(
        absl::StrCat("csv has ", features, " feature, ", labels, " LABEL, ", targets, " TARGET and ", weights,
                     " WEIGHT columns; it needs features, one LABEL or else some TARGET, and at most one WEIGHT"));
  }
  if (features > kMaxFeatures) {
    return absl::InvalidArgumentError(
        absl::StrCat("csv has ", features, " features with those of one_hot, at most ", kMaxFeatures, " are read"));
  }
  if (floats == 0) layout.spec.features_dtype = v1::DT_INT32;
  layout.spec.features_shape = Shape({features});
  if (targets > 0) {
    layout.spec.labels_dtype = v1::DT_FLOAT;
    layout.spec.labels_shape = Shape({targets});
  }
  if (!layout.has_labels) layout.spec.classes = 1;
  layout.has_weights = weights > 0;
  layout.columns = std::move(columns);
  return layout;
}

CsvOrder OrderOf(const std::string& path, const Csv& config, const std::vector<CsvColumn>& columns) {
  Csv configured;
  *configured.mutable_column() = config.column();
  CsvOrder order = {path, configured.SerializeAsString()};
  for (const CsvColumn& column : columns) {
    if (column.is_feature()) order.features.push_back(column.name);
    if (column.type == Csv::TARGET) order.targets.push_back(column.name);
  }
  return order;
}

// Sets the columns' places so that features and targets follow `order` instead of the order in the file.
absl::Status Reorder(const std::string& path, const Csv& config, const CsvOrder& order,
                     std::vector<CsvColumn>* columns) {
  const CsvOrder own = OrderOf(path, config, *columns);
  ASSIGN_OR_RETURN(const std::vector<int64_t> features, PlacesLike(order, own, &CsvOrder::features, "feature"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> targets, PlacesLike(order, own, &CsvOrder::targets, "target"));
  // Columns have different widths.
  std::vector<CsvColumn*> in_order(features.size());
  size_t feature = 0, target = 0;
  for (CsvColumn& column : *columns) {
    if (column.is_feature()) in_order[static_cast<size_t>(features[feature++])] = &column;
    if (column.type == Csv::TARGET) column.place = targets[target++];
  }
  int64_t place = 0;
  for (CsvColumn* const column : in_order) {
    column->place = place;
    place += column->width();
  }
  return absl::OkStatus();
}

bool NeedsSurvey(const std::vector<CsvColumn>& columns) {
  return std::any_of(columns.begin(), columns.end(),
                     [](const CsvColumn& column) { return column.needs_moments() || column.needs_categories(); });
}

// Returns `prepared` with all feature and target columns added, in the model's order, so that this order is known even
// if the training split's files are absent. Returns `prepared` unchanged if the result would be too large.
PreparedColumns WithOrder(const std::vector<CsvColumn>& columns, const PreparedColumns& prepared) {
  const std::vector<std::string> keys = PreparedKeys(columns);
  PreparedColumns all;
  size_t bytes = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool has_place = columns[i].is_feature() || columns[i].type == Csv::TARGET;
    const auto found = std::find_if(prepared.begin(), prepared.end(),
                                    [&](const Csv::Prepared& candidate) { return candidate.column() == keys[i]; });
    if (found == prepared.end() && !has_place) continue;
    Csv::Prepared column = found == prepared.end() ? Csv::Prepared() : *found;
    column.set_column(keys[i]);
    column.set_type(columns[i].type);
    if (found == prepared.end()) column.set_stddev(1);
    bytes += column.ByteSizeLong();
    all.push_back(std::move(column));
  }
  return bytes <= kMaxPreparedBytes ? all : prepared;
}

// Returns the column order recorded in `prepared`, or nullopt if it does not cover these columns.
absl::optional<CsvOrder> OrderOfPrepared(const PreparedColumns& prepared, const CsvOrder& own) {
  CsvOrder order = {"the run's record", own.configured};
  for (const Csv::Prepared& column : prepared) {
    CsvColumn typed;
    typed.type = column.type();
    if (typed.is_feature()) order.features.push_back(column.column());
    if (typed.type == Csv::TARGET) order.targets.push_back(column.column());
  }
  if (order.features.size() != own.features.size()) return absl::nullopt;
  return order;
}

// Returns the properties of the training split that its columns need (see SurveyCsv).
absl::StatusOr<PreparedColumns> Survey(const CsvSource& source, const std::vector<CsvColumn>& columns,
                                       const CsvSurveyOptions& options) {
  const bool has_unlisted_label = std::any_of(columns.begin(), columns.end(), [](const CsvColumn& column) {
    return column.type == Csv::LABEL && column.category.empty();
  });
  bool lists_labels = false;
  if (has_unlisted_label) {
    ASSIGN_OR_RETURN(const std::string label, FirstCsvLabel(source.files, columns, source.separator));
    // If the first label is not a number, the labels are class names. Otherwise they are class numbers; 1.0 counts as
    // an integer.
    double number = 0;
    lists_labels = !label.empty() && !ParseDecimal(label, &number);
  }
  PreparedColumns prepared;
  if (lists_labels || NeedsSurvey(columns)) {
    ASSIGN_OR_RETURN(prepared, SurveyCsv(source.files, columns, source.separator, lists_labels, options));
  }
  return WithOrder(columns, prepared);
}

// Sets the training split's properties in the columns.
absl::Status Apply(const PreparedColumns& prepared, std::vector<CsvColumn>* columns) {
  const std::vector<std::string> keys = PreparedKeys(*columns);
  for (size_t i = 0; i < columns->size(); ++i) {
    CsvColumn& column = (*columns)[i];
    const std::string& key = keys[i];
    const auto found = std::find_if(prepared.begin(), prepared.end(),
                                    [&](const Csv::Prepared& candidate) { return candidate.column() == key; });
    if (found != prepared.end() && column.type != Csv::SKIP) {
      column.mean = found->mean();
      column.stddev = found->stddev();
      if (column.needs_categories() || (column.type == Csv::LABEL && column.category.empty())) {
        const std::vector<std::string> categories(found->category().begin(), found->category().end());
        RETURN_IF_ERROR(SetCategories(categories, &column));
      }
    }
    const bool lacks_moments = column.needs_moments() && found == prepared.end();
    if (!lacks_moments && !column.needs_categories()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "csv column \"", key, "\" needs the ", lacks_moments ? "mean and standard deviation" : "categories",
        " of the training split, which are not known here; a run's logdir or export has them, in lockstep.textproto"));
  }
  return absl::OkStatus();
}

// The order and the properties of the training split, for use when a different split is opened.
struct Train {
  CsvOrder order;
  PreparedColumns prepared;
};

absl::StatusOr<Train> ReadTrain(FileSystem* fs, const CsvOptions& options, bool wants_survey) {
  Train train;
  if (options.train_paths.empty()) return absl::NotFoundError("no file of the train split");
  ASSIGN_OR_RETURN(const CsvSource source, OpenCsvSource(fs, options.train_paths, *options.train));
  ASSIGN_OR_RETURN(const std::vector<CsvColumn> columns, ColumnsOf(source, *options.train, /*labels_optional=*/false));
  train.order = OrderOf(options.train_paths.front(), *options.train, columns);
  if (wants_survey) {
    ASSIGN_OR_RETURN(train.prepared, Survey(source, columns, options.survey));
  }
  return train;
}

std::string Fingerprint(const Csv& config, const Layout& layout, bool labels_unchecked,
                        const PreparedColumns& prepared) {
  Csv all = config;
  *all.mutable_prepared() = {prepared.begin(), prepared.end()};
  return absl::StrCat("csv 2 ", layout.has_labels ? "" : "without labels ", labels_unchecked ? "unchecked " : "",
                      all.SerializeAsString());
}

}  // namespace

absl::StatusOr<CsvFiles> OpenCsv(FileSystem* fs, const std::vector<std::string>& paths, const Csv& config,
                                 const CsvOptions& options) {
  ASSIGN_OR_RETURN(CsvSource source, OpenCsvSource(fs, paths, config));
  ASSIGN_OR_RETURN(std::vector<CsvColumn> columns, ColumnsOf(source, config, options.labels_optional));
  PreparedColumns prepared(config.prepared().begin(), config.prepared().end());
  absl::optional<CsvOrder> order;
  if (options.train == nullptr) {
    if (prepared.empty()) {
      ASSIGN_OR_RETURN(prepared, Survey(source, columns, options.survey));
    }
  } else {
    auto train = ReadTrain(fs, options, /*wants_survey=*/prepared.empty());
    if (train.ok()) {
      order = std::move(train->order);
      if (prepared.empty()) prepared = std::move(train->prepared);
    } else {
      order = OrderOfPrepared(prepared, OrderOf(paths.front(), config, columns));
    }
    if (!train.ok() && !order) {
      LOG(WARNING) << "columns are taken in the order of " << paths.front()
                   << ", not in that of the train split: " << train.status().message();
    }
  }
  RETURN_IF_ERROR(Apply(prepared, &columns));
  ASSIGN_OR_RETURN(Layout layout, MakeLayout(std::move(columns), options.labels_optional));
  if (order) RETURN_IF_ERROR(Reorder(paths.front(), config, *order, &layout.columns));
  CsvFiles result;
  const std::string fingerprint = Fingerprint(config, layout, options.labels_unchecked, prepared);
  result.format = std::make_unique<CsvFormat>(std::move(layout), source.separator, options.labels_unchecked,
                                              std::move(prepared), fingerprint);
  result.files = std::move(source.files);
  return result;
}

}  // namespace lockstep
