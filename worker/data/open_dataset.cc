#include "worker/data/open_dataset.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/data/csv.h"
#include "worker/data/idx.h"
#include "worker/data/libsvm.h"
#include "worker/data/normalization.h"
#include "worker/data/record_dataset.h"
#include "worker/data/synthetic.h"
#include "worker/data/tf_example.h"

namespace lockstep {
namespace {

std::string Path(const std::string& name, const DatasetOptions& options) {
  return JoinPath(options.base_directory, name);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenRecords(std::unique_ptr<RecordFormat> format,
                                                     std::vector<RecordFile> files, const InputConfig& config,
                                                     const DatasetOptions& options) {
  return OpenRecordDataset(options.fs, std::move(format), std::move(files),
                           {options.index_directory, {config.on_damage(), options.progress}});
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenTfRecords(const InputConfig::TfRecord& tfrecord, const InputConfig& config,
                                                       const DatasetOptions& options) {
  std::vector<std::string> paths;
  for (const std::string& name : tfrecord.file()) paths.push_back(Path(name, options));
  ASSIGN_OR_RETURN(std::unique_ptr<RecordFormat> format,
                   OpenTfExampleFormat(options.fs, paths, tfrecord, config.on_damage()));
  std::vector<RecordFile> files;
  for (const std::string& path : paths) files.push_back({path});
  return OpenRecords(std::move(format), std::move(files), config, options);
}

absl::StatusOr<InputConfig::Split> FindSplit(const InputConfig& config, absl::string_view name) {
  std::vector<std::string> names;
  for (const InputConfig::Split& split : config.split()) {
    if (split.name() == name) return split;
    names.push_back(absl::StrCat("\"", split.name(), "\""));
  }
  return absl::NotFoundError(
      absl::StrCat("input has no split \"", name, "\", it has ", names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const InputConfig& config, absl::string_view split_name,
                                                     uint64_t seed, const DatasetOptions& options) {
  ASSIGN_OR_RETURN(const InputConfig::Split split, FindSplit(config, split_name));
  ASSIGN_OR_RETURN(const Normalization normalization, Normalization::Create(config.normalization()));
  std::unique_ptr<Dataset> dataset;
  switch (split.source_case()) {
    case InputConfig::Split::kIdx:
      return OpenIdxDataset(options.fs, Path(split.idx().images(), options), Path(split.idx().labels(), options),
                            {normalization, {options.index_directory, options.progress}});
    case InputConfig::Split::kSynthetic: {
      ASSIGN_OR_RETURN(dataset, CreateSyntheticDataset(split.synthetic(), seed));
      break;
    }
    case InputConfig::Split::kCsv: {
      ASSIGN_OR_RETURN(CsvFile csv, OpenCsv(options.fs, Path(split.csv().file(), options), split.csv()));
      ASSIGN_OR_RETURN(dataset, OpenRecords(std::move(csv.format), {csv.file}, config, options));
      break;
    }
    case InputConfig::Split::kLibsvm: {
      ASSIGN_OR_RETURN(std::unique_ptr<RecordFormat> format, CreateLibsvmFormat(split.libsvm()));
      ASSIGN_OR_RETURN(dataset,
                       OpenRecords(std::move(format), {{Path(split.libsvm().file(), options)}}, config, options));
      break;
    }
    case InputConfig::Split::kTfrecord: {
      ASSIGN_OR_RETURN(dataset, OpenTfRecords(split.tfrecord(), config, options));
      break;
    }
    default:
      return absl::InvalidArgumentError(absl::StrCat("input split \"", split_name, "\" has no source"));
  }
  return NormalizeFeatures(std::move(dataset), normalization);
}

}  // namespace lockstep
