#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/commands/starting_configuration.h"
#include "lockstep/cli/guess/csv_guess.h"
#include "lockstep/cli/guess/csv_sample.h"
#include "lockstep/cli/guess/image_guess.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/report/quantity.h"

namespace lockstep {
namespace {

constexpr char kFileName[] = "run.textproto";

struct NewFlags {
  std::string directory;
  std::string csv;
  std::string label;
  std::string images;
  std::string net;
  // 0 means the net's default.
  int64_t image_size = 0;
  int64_t classes = 10;
  double width = 1;

  bool is_for_images() const { return !images.empty() || !net.empty(); }
};

constexpr int64_t kSmallImage = 64, kNetImage = 224;

absl::StatusOr<std::string> WriteConfiguration(FileSystem* fs, const std::string& directory,
                                               const std::string& configuration) {
  const std::string path = JoinPath(directory, kFileName);
  ASSIGN_OR_RETURN(const bool exists, fs->Exists(path));
  if (exists) {
    return absl::AlreadyExistsError(absl::StrCat(path, " exists already; it is not overwritten"));
  }
  RETURN_IF_ERROR(fs->CreateDirectory(directory));
  RETURN_IF_ERROR(WriteFileAtomically(fs, path, configuration));
  return path;
}

// Returns the path of `file` relative to `directory`, which contains the configuration.
std::string NameIn(const std::string& directory, const std::string& file) {
  const std::filesystem::path path(file);
  if (path.is_absolute()) return file;
  const std::filesystem::path relative =
      path.lexically_normal().lexically_relative(std::filesystem::path(directory).lexically_normal());
  return relative.empty() ? std::filesystem::absolute(path).string() : relative.string();
}

// Returns the name of a file without its directory and its extensions, e.g. "iris" for "data/iris.csv.gz".
std::string StemOf(const std::string& file) {
  const absl::string_view name = Basename(absl::StripSuffix(file, "/"));
  return std::string(name.substr(0, name.find('.', 1)));
}

void PrintGuess(const CsvSample& sample, const CsvGuess& guess, std::ostream& out) {
  out << "looked at " << (sample.is_whole ? "all " : "the first ")
      << CountText(static_cast<int64_t>(sample.rows.size()), "row") << ", separated by "
      << (sample.separator == '\t' ? std::string("tabs") : absl::StrCat("\"", std::string(1, sample.separator), "\""))
      << (sample.has_header ? ", with a header line" : ", without a header line") << "; guessed:\n";
  if (sample.damaged > 0) {
    out << "  " << CountText(sample.damaged, "line") << " with another number of fields: on_damage leaves them out\n";
  }
  for (size_t i = 0; i < guess.columns.size(); ++i) {
    const std::string& name = sample.names[i];
    out << "  " << (name.empty() ? absl::StrCat("column ", i) : name) << ": " << guess.columns[i].reason << "\n";
  }
  out << (sample.file_rows < kLeastRowsToDivide ? "  too few rows for a split \"test\"\n"
                                                : "  a fifth of the rows is the split \"test\"\n");
}

// Writes a configuration for the csv file, prints the guesses to `out`, and returns the configuration's path.
absl::StatusOr<std::string> WriteForCsv(FileSystem* fs, const NewFlags& flags, std::ostream& out) {
  ASSIGN_OR_RETURN(const CsvSample sample, SampleCsv(fs, flags.csv));
  ASSIGN_OR_RETURN(const CsvGuess guess, GuessColumns(sample, flags.label));
  const std::string text = ConfigurationFor(sample, guess, NameIn(flags.directory, flags.csv));
  ASSIGN_OR_RETURN(const std::string path, WriteConfiguration(fs, flags.directory, text));
  PrintGuess(sample, guess, out);
  return path;
}

// Writes a configuration for a net, or for a small network on a folder of images, prints the findings to `out`, and
// returns the configuration's path.
absl::StatusOr<std::string> WriteForImages(FileSystem* fs, const NewFlags& flags, std::ostream& out) {
  ImageConfiguration options;
  options.net = flags.net;
  options.width = flags.width;
  options.image_size = flags.image_size > 0 ? flags.image_size : flags.net.empty() ? kSmallImage : kNetImage;
  options.classes = flags.classes;
  options.train = "images/train";
  options.test = "images/test";
  if (!flags.images.empty()) {
    ASSIGN_OR_RETURN(const ImageGuess guess, GuessImages(fs, flags.images));
    options.train = NameIn(flags.directory, guess.train);
    options.test = guess.test.empty() ? "" : NameIn(flags.directory, guess.test);
    options.classes = static_cast<int64_t>(guess.classes.size());
    options.images = guess.images;
    out << "found " << CountText(guess.images, "image") << " of " << options.classes << " classes in " << guess.train
        << "; "
        << (!guess.test.empty()                   ? absl::StrCat("the split \"test\" is ", guess.test)
            : guess.images < kLeastImagesToDivide ? "they are too few for a split \"test\""
                                                  : "a fifth of them is the split \"test\"")
        << "\n";
  }
  ASSIGN_OR_RETURN(const std::string text, ConfigurationFor(options));
  ASSIGN_OR_RETURN(std::string path, WriteConfiguration(fs, flags.directory, text));
  if (flags.images.empty()) {
    out << "put the images into " << JoinPath(flags.directory, options.train) << "/CLASS and "
        << JoinPath(flags.directory, options.test) << "/CLASS, for " << options.classes << " classes\n";
  }
  return path;
}

absl::StatusOr<std::string> Write(FileSystem* fs, const NewFlags& flags, std::ostream& out) {
  if (flags.is_for_images()) return WriteForImages(fs, flags, out);
  if (!flags.csv.empty()) return WriteForCsv(fs, flags, out);
  return WriteConfiguration(fs, flags.directory, kStartingConfiguration);
}

// Describes the first error in the flags, or returns an empty string if there is none.
std::string ProblemOf(const NewFlags& flags) {
  if (!flags.csv.empty() && flags.is_for_images()) return "--csv excludes --images and --net";
  if (flags.directory.empty()) return "DIR is missing, the directory to write to; try --help";
  if (flags.csv.empty() && !flags.label.empty()) return "--label is the column of a --csv, which is missing";
  return "";
}

}  // namespace

int NewCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  NewFlags flags;
  CommandLine command_line(
      "lockstep new", "Writes DIR/run.textproto, a configuration with comments to start from.",
      "With --csv it is one for this file: a perceptron that predicts a column from the others. Columns, types and\n"
      "classes are guessed, and the guesses are printed.\n"
      "With --images it is one for a folder of PNG and JPEG files: FOLDER/CLASS/IMAGE, or FOLDER/train/CLASS/IMAGE\n"
      "and FOLDER/test (or val). With --net the model is one of tf-slim's: vgg_16, inception_v1, resnet_v1_50,\n"
      "mobilenet_v1.\n"
      "Exit codes: 0 written; 1 it cannot be written; 2 wrong arguments, a file that is no table, or it exists.\n"
      "Example: lockstep new --csv=iris.csv --label=species");
  command_line.AddArgument("DIR",
                           "a directory, which is made when it is absent; by default the name of the --csv or the "
                           "--net, or that of the --images and -run",
                           &flags.directory, CommandLine::kOptional);
  command_line.AddFlag("csv", "FILE", "the table to train on; it may be gzipped", &flags.csv);
  command_line.AddFlag("label", "NAME",
                       "the column to predict, without a header line its number from 0; by default a column called "
                       "label, class, target or the like, or the last one",
                       &flags.label);
  command_line.AddFlag("images", "FOLDER", "the images to train on", &flags.images);
  command_line.AddFlag("net", "NAME", "the model, for images; a small convolutional network when absent", &flags.net);
  command_line.AddFlag("image_size", "N",
                       "height and width that images get; 224 for a --net, otherwise 64, when absent",
                       &flags.image_size);
  command_line.AddFlag("width", "X", "multiplies the filters of every layer of a --net", &flags.width);
  command_line.AddFlag("classes", "N", "the number of classes when there are no --images", &flags.classes);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  if (flags.directory.empty()) {
    // The directory must not be inside the folder of images, where every folder is a class.
    flags.directory = !flags.csv.empty()      ? StemOf(flags.csv)
                      : !flags.images.empty() ? absl::StrCat(StemOf(flags.images), "-run")
                                              : flags.net;
  }
  const std::string problem = ProblemOf(flags);
  if (!problem.empty()) return PrintError("lockstep new", problem, kExitBadConfiguration, err);
  const auto path = Write(fs, flags, out);
  if (!path.ok()) {
    return PrintError("lockstep new", path.status().message(), ExitCodeOfInput(path.status()), err);
  }
  out << "wrote " << *path << (flags.csv.empty() && !flags.is_for_images() ? ", a perceptron for Fashion-MNIST" : "")
      << "\n"
      << "  edit it, then   ./lockstep check " << *path << "\n"
      << "  train           ./lockstep run " << *path << " --logdir=" << JoinPath(flags.directory, "logdir") << "\n";
  return kExitDone;
}

}  // namespace lockstep
