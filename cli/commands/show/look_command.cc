#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/look/contact_sheet.h"
#include "lockstep/cli/look/data_summary.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/config_flags.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/report/quantity.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/train/evaluation/prediction_settings.h"
#include "lockstep/worker/data/formats/open_dataset.h"

namespace lockstep {
namespace {

struct LookFlags {
  ConfigFlags config;
  std::string split = "train";
  int64_t examples = 20;
  int64_t most = 100'000;
  std::string output;
};

// Returns the class names from the configuration or, if it has none, from the data.
absl::StatusOr<std::vector<std::string>> NamesOf(FileSystem* fs, const config::v1::RunSpec& config,
                                                 const std::string& split, const Dataset& dataset) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, ClassNames(fs, config, split));
  if (!names.empty()) return names;
  const v1::DataDigest digest = dataset.digest();
  for (const config::v1::InputConfig::Csv::Prepared& column : digest.prepared()) {
    if (column.type() == config::v1::InputConfig::Csv::LABEL || column.column() == "label") {
      names.assign(column.category().begin(), column.category().end());
    }
  }
  return names;
}

// Draws the examples as they are in the data, before input.normalization.
absl::Status WriteSheet(FileSystem* fs, const LookFlags& flags, const config::v1::InputConfig& input,
                        const Dataset& dataset, const std::vector<int64_t>& examples, const DataSummary& summary,
                        std::ostream& out) {
  const Shape& shape = dataset.spec().features_shape;
  if (dataset.spec().features_dtype != v1::DT_FLOAT || !IsImage(shape)) {
    return absl::InvalidArgumentError(absl::StrCat("--output draws images, [height, width, 1 or 3]; the examples are ",
                                                   NameOf(dataset.spec().features_dtype), shape.ToString()));
  }
  Batch batch;
  RETURN_IF_ERROR(dataset.Read(examples, &batch));
  std::vector<int64_t> labels;
  if (dataset.spec().classes > 0) {
    const auto classes = batch.labels.flat<int32_t>();
    labels.assign(classes.begin(), classes.end());
  }
  const float mean = input.normalization().mean();
  const float stddev = input.has_normalization() ? input.normalization().stddev() : 1.0f;
  float black = (0.0f - mean) / stddev, white = (1.0f - mean) / stddev;
  // If the values are not those of images, they are scaled from the minimum to the maximum.
  const float slack = 0.01f * (white - black);
  if (summary.features.least < black - slack || summary.features.greatest > white + slack) {
    black = static_cast<float>(summary.features.least);
    white = static_cast<float>(summary.features.greatest);
  }
  ASSIGN_OR_RETURN(const std::string png, ContactSheet(shape, batch.features.flat<float>(), labels, black, white));
  RETURN_IF_ERROR(WriteFileAtomically(fs, flags.output, png));
  out << "\nwrote " << flags.output << ": " << CountText(static_cast<int64_t>(examples.size()), "image")
      << ", row by row, with " << (labels.empty() ? "no labels" : "their classes") << "; black is " << black
      << ", white " << white << "\n";
  return absl::OkStatus();
}

absl::Status Look(FileSystem* fs, const LookFlags& flags, std::ostream& out) {
  std::unique_ptr<ConfigSource> source;
  ASSIGN_OR_RETURN(const config::v1::RunSpec config, flags.config.Load(fs, &source));
  DatasetOptions options;
  options.fs = fs;
  options.labels_optional = true;
  ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> dataset,
                   OpenDataset(config.input(), flags.split, config.training().seed(), options));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOf(fs, config, flags.split, *dataset));
  out << flags.split << ": " << CountText(dataset->size(), "example") << " of "
      << NameOf(dataset->spec().features_dtype) << dataset->spec().features_shape.ToString();
  if (dataset->rows() > dataset->size()) out << " in " << CountText(dataset->rows(), "row");
  if (!dataset->has_labels()) out << ", without labels";
  const std::vector<int64_t> examples = SpreadExamples(dataset->size(), flags.examples);
  ASSIGN_OR_RETURN(const std::string table, ExampleTable(*dataset, examples, names));
  out << "\n" << CountText(static_cast<int64_t>(examples.size()), "example") << ", spread evenly:\n\n" << table;
  ASSIGN_OR_RETURN(const DataSummary summary, Summarize(*dataset, flags.most));
  out << "\n"
      << (summary.examples == dataset->size() ? "all " : "") << CountText(summary.examples, "example")
      << ", as a model gets them:\n\n"
      << SummaryText(summary, names);
  if (!flags.output.empty()) return WriteSheet(fs, flags, config.input(), *dataset, examples, summary, out);
  if (IsImage(dataset->spec().features_shape)) out << "\n--output=FILE.png draws these examples\n";
  return absl::OkStatus();
}

}  // namespace

int LookCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  LookFlags flags;
  CommandLine command_line(
      "lockstep look", "Shows examples of a split, the number of each label, and the range of the numbers.",
      "Exit codes: 0 done; 2 wrong arguments or configuration, or damaged data; 1 a file cannot be read or written.\n"
      "Example: lockstep look examples/cnn.textproto --split=test --output=sheet.png");
  flags.config.Declare(&command_line);
  command_line.AddFlag("split", "NAME", "the split to look at", &flags.split);
  command_line.AddFlag("examples", "N", "how many examples are shown, spread evenly over the split", &flags.examples);
  command_line.AddFlag("most", "N", "how many examples are counted and measured, spread evenly", &flags.most);
  command_line.AddFlag("output", "FILE", "draws the shown examples, which must be images, in this PNG file",
                       &flags.output);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  if (flags.examples < 1 || flags.most < 1) {
    return PrintError("lockstep look", "--examples and --most must be 1 or more", kExitBadConfiguration, err);
  }
  const absl::Status status = Look(fs, flags, out);
  return status.ok() ? kExitDone : PrintError("lockstep look", status.message(), ExitCodeOfInput(status), err);
}

}  // namespace lockstep
