#include "lockstep/worker/data/formats/open_dataset.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/run_spec.h"
#include "lockstep/common/io/file_pattern.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/worker/data/concatenated.h"
#include "lockstep/worker/data/formats/csv.h"
#include "lockstep/worker/data/formats/idx.h"
#include "lockstep/worker/data/formats/image_folder.h"
#include "lockstep/worker/data/formats/libsvm.h"
#include "lockstep/worker/data/formats/numpy.h"
#include "lockstep/worker/data/formats/synthetic.h"
#include "lockstep/worker/data/formats/tf_example.h"
#include "lockstep/worker/data/images/image_list.h"
#include "lockstep/worker/data/normalization.h"
#include "lockstep/worker/data/records/record_dataset.h"
#include "lockstep/worker/data/registry/dataset_registry.h"
#include "lockstep/worker/data/row_subset.h"

namespace lockstep {
namespace {

std::string Path(const std::string& name, const DatasetOptions& options) {
  return JoinPath(options.base_directory, name);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenRecords(std::unique_ptr<RecordFormat> format,
                                                     std::vector<RecordFile> files,
                                                     const config::v1::InputConfig& config,
                                                     const DatasetOptions& options) {
  return OpenRecordDataset(options.fs, std::move(format), std::move(files),
                           {options.index_directory, {config.on_damage(), options.progress}});
}

std::vector<RecordFile> AsRecordFiles(const std::vector<std::string>& paths) {
  std::vector<RecordFile> files;
  for (const std::string& path : paths) {
    files.emplace_back();
    files.back().path = path;
  }
  return files;
}

// Returns the paths of all files, with patterns resolved. Refuses a file that would be read twice.
template <typename Names>
absl::StatusOr<std::vector<std::string>> Paths(const Names& names, const DatasetOptions& options) {
  std::vector<std::string> paths;
  std::map<std::string, std::string> name_of;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const std::vector<std::string> matching, MatchFiles(options.fs, Path(name, options)));
    for (const std::string& path : matching) {
      const auto [earlier, is_new] = name_of.emplace(path, name);
      if (!is_new) {
        return absl::InvalidArgumentError(absl::StrCat(path, " is named twice, by \"", earlier->second, "\" and by \"",
                                                       name, "\"; its examples would be read twice"));
      }
      paths.push_back(path);
    }
  }
  return paths;
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenTfRecords(const config::v1::InputConfig::TfRecord& tfrecord,
                                                       const config::v1::InputConfig& config,
                                                       const DatasetOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, Paths(tfrecord.file(), options));
  std::vector<RecordFile> files = AsRecordFiles(paths);
  ASSIGN_OR_RETURN(std::unique_ptr<RecordFormat> format,
                   OpenTfExampleFormat(options.fs, &files, tfrecord, config.on_damage(), options.labels_optional));
  return OpenRecords(std::move(format), std::move(files), config, options);
}

struct FileField {
  absl::string_view name;
  std::string value;
};

// Returns the paths of all fields for each part of a split. A pattern makes one part of each matching file, and all
// patterns of a split must match the same number of files. An empty field stays empty.
absl::StatusOr<std::vector<std::vector<std::string>>> PartsOf(const std::vector<FileField>& fields,
                                                              const DatasetOptions& options) {
  std::vector<std::vector<std::string>> parts;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].value.empty()) continue;
    ASSIGN_OR_RETURN(const std::vector<std::string> paths, MatchFiles(options.fs, Path(fields[i].value, options)));
    if (parts.empty()) parts.assign(paths.size(), std::vector<std::string>(fields.size()));
    if (paths.size() != parts.size()) {
      return absl::InvalidArgumentError(absl::StrCat(fields[0].name, " stands for ", parts.size(), " files, ",
                                                     fields[i].name, " for ", paths.size()));
    }
    for (size_t part = 0; part < parts.size(); ++part) parts[part][i] = paths[part];
  }
  return parts;
}

// Returns the number of bytes that each part may hold in memory, so that together they hold at most
// `options.held_bytes`.
uint64_t HeldBytes(const std::vector<std::vector<std::string>>& parts, const DatasetOptions& options) {
  if (parts.size() == 1) return options.held_bytes;
  uint64_t bytes = 0;
  for (const std::vector<std::string>& paths : parts) {
    const auto file = options.fs->NewRandomAccessFile(paths[0]);
    // If the file cannot be opened, opening the part reports the error.
    if (file.ok()) bytes += (*file)->size();
  }
  return bytes <= options.held_bytes ? options.held_bytes : 0;
}

// A function that opens one part. Its arguments are the paths of the part's fields, with the features first, and the
// number of bytes that the part may hold in memory.
using OpenPart =
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<Dataset>>(const std::vector<std::string>& paths, uint64_t)>;
absl::StatusOr<std::unique_ptr<Dataset>> OpenParts(const std::vector<FileField>& fields, const DatasetOptions& options,
                                                   OpenPart open) {
  ASSIGN_OR_RETURN(const auto parts, PartsOf(fields, options));
  if (parts.empty()) return absl::InvalidArgumentError(absl::StrCat(fields[0].name, " is missing"));
  const uint64_t held_bytes = HeldBytes(parts, options);
  std::vector<std::unique_ptr<Dataset>> datasets;
  std::vector<std::string> names;
  for (const std::vector<std::string>& paths : parts) {
    ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, open(paths, held_bytes));
    datasets.push_back(std::move(dataset));
    names.push_back(paths[0]);
  }
  return Concatenate(std::move(datasets), names);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenIdx(const config::v1::InputConfig::Idx& idx,
                                                 const Normalization& normalization, const DatasetOptions& options) {
  const std::vector<FileField> fields = {{"idx.images", idx.images()}, {"idx.labels", idx.labels()}};
  return OpenParts(fields, options, [&](const auto& paths, uint64_t held_bytes) {
    return OpenIdxDataset(options.fs, paths[0], paths[1],
                          {normalization, {options.index_directory, options.progress}, held_bytes});
  });
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenNumpy(const config::v1::InputConfig::Split& split,
                                                   const DatasetOptions& options) {
  NumpyOptions numpy;
  numpy.checksum = {options.index_directory, options.progress};
  numpy.labels_optional = options.labels_optional;
  if (split.has_npz()) {
    return OpenParts({{"npz.file", split.npz().file()}}, options, [&](const auto& paths, uint64_t) {
      config::v1::InputConfig::Npz npz = split.npz();
      npz.set_file(paths[0]);
      return OpenNpzDataset(options.fs, npz, numpy);
    });
  }
  const std::vector<FileField> fields = {{"npy.features", split.npy().features()},
                                         {"npy.labels", split.npy().labels()},
                                         {"npy.weights", split.npy().weights()}};
  return OpenParts(fields, options, [&](const auto& paths, uint64_t held_bytes) {
    config::v1::InputConfig::Npy npy;
    npy.set_features(paths[0]);
    npy.set_labels(paths[1]);
    npy.set_weights(paths[2]);
    numpy.held_bytes = held_bytes;
    return OpenNpyDataset(options.fs, npy, numpy);
  });
}

// The built-in formats always pass this check, but a program's own input can fail it.
absl::Status CheckMade(const std::string& name, const Dataset* dataset) {
  const auto refuse = [&](const auto&... says) {
    return absl::InvalidArgumentError(absl::StrCat("the registered input \"", name, "\" ", says...));
  };
  if (dataset == nullptr) return refuse("made nothing");
  const ExampleSpec& spec = dataset->spec();
  if (dataset->size() < 1) return refuse("has ", dataset->size(), " examples, must have 1 or more");
  if (spec.features_dtype != v1::DT_FLOAT && spec.features_dtype != v1::DT_INT32) {
    return refuse("has ", NameOf(spec.features_dtype), " features, must have float32 or int32");
  }
  const bool has_classes = spec.labels_dtype == v1::DT_INT32 && spec.labels_shape.rank() == 0 && spec.classes > 0;
  const bool has_targets = spec.labels_dtype == v1::DT_FLOAT && spec.labels_shape.rank() == 1 && spec.classes == 0;
  if (has_classes || has_targets) return absl::OkStatus();
  return refuse("has ", NameOf(spec.labels_dtype), spec.labels_shape.ToString(), " labels and ", spec.classes,
                " classes, must have int32[] and 1 or more, or float32[outputs] and 0");
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenRegistered(const config::v1::InputConfig::Split& split,
                                                        const config::v1::InputConfig& config, uint64_t seed,
                                                        const DatasetOptions& options) {
  DatasetRequest request = {split.registered(), split.name(), seed, config.on_damage(), options};
  for (std::string& file : *request.source.mutable_file()) file = Path(file, options);
  ASSIGN_OR_RETURN(const DatasetFactory factory, FindDataset(request.source.name()));
  ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, factory(request));
  RETURN_IF_ERROR(CheckMade(request.source.name(), dataset.get()));
  return dataset;
}

constexpr char kTrain[] = "train";
constexpr char kTest[] = "test";

const config::v1::InputConfig::Split* FindSplit(const config::v1::InputConfig& config, absl::string_view name) {
  const auto found = absl::c_find_if(
      config.split(), [name](const config::v1::InputConfig::Split& split) { return split.name() == name; });
  return found == config.split().end() ? nullptr : &*found;
}

bool IsDivided(const config::v1::InputConfig& config) { return config.test_fraction() > 0; }

// Returns the split that contains the rows of the split with this name.
absl::StatusOr<config::v1::InputConfig::Split> SourceOfSplit(const config::v1::InputConfig& config,
                                                             absl::string_view name) {
  const config::v1::InputConfig::Split* found = FindSplit(config, name);
  if (found == nullptr && IsDivided(config) && name == kTest) found = FindSplit(config, kTrain);
  if (found != nullptr) return *found;
  std::vector<std::string> names;
  for (const config::v1::InputConfig::Split& split : config.split()) {
    names.push_back(absl::StrCat("\"", split.name(), "\""));
  }
  if (IsDivided(config)) names.push_back(absl::StrCat("\"", kTest, "\""));
  return absl::NotFoundError(
      absl::StrCat("input has no split \"", name, "\", it has ", names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenCsvSplit(const config::v1::InputConfig::Split& split,
                                                      const config::v1::InputConfig& config, uint64_t seed,
                                                      const DatasetOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, Paths(split.csv().file(), options));
  CsvOptions csv_options;
  csv_options.labels_optional = options.labels_optional;
  csv_options.labels_unchecked = options.labels_unchecked;
  csv_options.survey.scan = {config.on_damage(), options.progress};
  if (IsDivided(config)) {
    csv_options.survey.counts = [seed, fraction = config.test_fraction()](int64_t row) {
      return !IsTestRow(seed, row, fraction);
    };
  }
  const config::v1::InputConfig::Split* const train = FindSplit(config, kTrain);
  if (train != nullptr && train->has_csv() && split.name() != kTrain) {
    csv_options.train = &train->csv();
    // If there are none, OpenCsv reports the error.
    const auto train_paths = Paths(train->csv().file(), options);
    if (train_paths.ok()) csv_options.train_paths = *train_paths;
  }
  ASSIGN_OR_RETURN(CsvFiles csv, OpenCsv(options.fs, paths, split.csv(), csv_options));
  return OpenRecords(std::move(csv.format), std::move(csv.files), config, options);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenImages(const config::v1::InputConfig::Split& split,
                                                    const config::v1::InputConfig& config,
                                                    const DatasetOptions& options) {
  config::v1::InputConfig::Images images = split.images();
  images.set_folder(Path(images.folder(), options));
  ImageFolderOptions folder;
  folder.checksum = {options.index_directory, options.progress};
  folder.on_damage = config.on_damage();
  folder.labels_optional = options.labels_optional;
  const config::v1::InputConfig::Split* const train = FindSplit(config, kTrain);
  if (images.class_name().empty() && train != nullptr && train->has_images() && split.name() != kTrain) {
    folder.train_classes = {train->images().class_name().begin(), train->images().class_name().end()};
    if (folder.train_classes.empty()) {
      // If the training split is absent, this split's own classes are used.
      const auto classes = ListClasses(options.fs, Path(train->images().folder(), options));
      if (classes.ok()) folder.train_classes = *classes;
    }
  }
  return OpenImageFolder(options.fs, images, folder);
}

// Opens all rows of the split, normalized.
absl::StatusOr<std::unique_ptr<Dataset>> OpenRows(const config::v1::InputConfig& config,
                                                  const config::v1::InputConfig::Split& split, uint64_t seed,
                                                  const DatasetOptions& options) {
  ASSIGN_OR_RETURN(const Normalization normalization, Normalization::Create(config.normalization()));
  std::unique_ptr<Dataset> dataset;
  switch (split.source_case()) {
    case config::v1::InputConfig::Split::kIdx:
      return OpenIdx(split.idx(), normalization, options);
    case config::v1::InputConfig::Split::kSynthetic: {
      ASSIGN_OR_RETURN(dataset, CreateSyntheticDataset(split.synthetic(), seed));
      break;
    }
    case config::v1::InputConfig::Split::kCsv: {
      ASSIGN_OR_RETURN(dataset, OpenCsvSplit(split, config, seed, options));
      break;
    }
    case config::v1::InputConfig::Split::kLibsvm: {
      ASSIGN_OR_RETURN(std::unique_ptr<RecordFormat> format, CreateLibsvmFormat(split.libsvm()));
      ASSIGN_OR_RETURN(const std::vector<std::string> paths, Paths(split.libsvm().file(), options));
      ASSIGN_OR_RETURN(dataset, OpenRecords(std::move(format), AsRecordFiles(paths), config, options));
      break;
    }
    case config::v1::InputConfig::Split::kTfrecord: {
      ASSIGN_OR_RETURN(dataset, OpenTfRecords(split.tfrecord(), config, options));
      break;
    }
    case config::v1::InputConfig::Split::kNpz:
    case config::v1::InputConfig::Split::kNpy: {
      ASSIGN_OR_RETURN(dataset, OpenNumpy(split, options));
      break;
    }
    case config::v1::InputConfig::Split::kImages: {
      ASSIGN_OR_RETURN(dataset, OpenImages(split, config, options));
      break;
    }
    case config::v1::InputConfig::Split::kRegistered: {
      ASSIGN_OR_RETURN(dataset, OpenRegistered(split, config, seed, options));
      break;
    }
    default:
      return absl::InvalidArgumentError(absl::StrCat("input split \"", split.name(), "\" has no source"));
  }
  return NormalizeFeatures(std::move(dataset), normalization);
}

// Adds to the error of a missing file whether its directory is missing as well.
absl::Status WithReason(const absl::Status& status, const config::v1::InputConfig::Split& split,
                        const DatasetOptions& options) {
  if (!absl::IsNotFound(status)) return status;
  for (const std::string& name : InputFilesOf(split)) {
    const std::string path = Path(name, options);
    const absl::StatusOr<bool> exists = options.fs->Exists(path);
    if (IsFilePattern(path) || !exists.ok() || *exists) continue;
    return absl::NotFoundError(absl::StrCat(status.message(), WhyAbsent(options.fs, path)));
  }
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const config::v1::InputConfig& config,
                                                     absl::string_view split_name, uint64_t seed,
                                                     const DatasetOptions& options) {
  ASSIGN_OR_RETURN(const config::v1::InputConfig::Split split, SourceOfSplit(config, split_name));
  absl::StatusOr<std::unique_ptr<Dataset>> rows = OpenRows(config, split, seed, options);
  if (!rows.ok()) return WithReason(rows.status(), split, options);
  std::unique_ptr<Dataset> dataset = *std::move(rows);
  if (!IsDivided(config) || split.name() != kTrain) return dataset;
  const bool wants_test = split_name == kTest;
  return SelectRows(std::move(dataset), [seed, wants_test, fraction = config.test_fraction()](int64_t row) {
    return IsTestRow(seed, row, fraction) == wants_test;
  });
}

}  // namespace lockstep
