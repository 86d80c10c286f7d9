#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/commands/starting_configuration.h"
#include "lockstep/cli/guess/csv_guess.h"
#include "lockstep/cli/guess/csv_sample.h"
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
};

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

// Returns the name of `file` for a configuration in `directory`, whose relative names start there.
std::string NameIn(const std::string& directory, const std::string& file) {
  const std::filesystem::path path(file);
  if (path.is_absolute()) return file;
  const std::filesystem::path relative =
      path.lexically_normal().lexically_relative(std::filesystem::path(directory).lexically_normal());
  return relative.empty() ? std::filesystem::absolute(path).string() : relative.string();
}

// Returns the name of a file without its directory and its endings: "iris" for "data/iris.csv.gz".
std::string StemOf(const std::string& file) {
  const absl::string_view name = Basename(file);
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
  out << "  a fifth of the rows is the split \"test\"\n";
}

// Writes the configuration; what was guessed goes to `out`.
absl::StatusOr<std::string> WriteForCsv(FileSystem* fs, const NewFlags& flags, std::ostream& out) {
  ASSIGN_OR_RETURN(const CsvSample sample, SampleCsv(fs, flags.csv));
  ASSIGN_OR_RETURN(const CsvGuess guess, GuessColumns(sample, flags.label));
  const std::string text = ConfigurationFor(sample, guess, NameIn(flags.directory, flags.csv));
  ASSIGN_OR_RETURN(const std::string path, WriteConfiguration(fs, flags.directory, text));
  PrintGuess(sample, guess, out);
  return path;
}

}  // namespace

int NewCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  NewFlags flags;
  CommandLine command_line(
      "lockstep new", "Writes DIR/run.textproto, a configuration with comments to start from.",
      "With --csv it is one for this file: a perceptron that predicts a column from the others. Columns, types and\n"
      "classes are guessed, and the guesses are printed.\n"
      "Exit codes: 0 written; 1 it cannot be written; 2 wrong arguments, a file that is no table, or it exists.\n"
      "Example: lockstep new --csv=iris.csv --label=species");
  command_line.AddArgument("DIR", "a directory, which is made when it is absent; with --csv the file's name by default",
                           &flags.directory, CommandLine::kOptional);
  command_line.AddFlag("csv", "FILE", "the table to train on; it may be gzipped", &flags.csv);
  command_line.AddFlag("label", "NAME",
                       "the column to predict, without a header line its number from 0; by default a column called "
                       "label, class, target or the like, or the last one",
                       &flags.label);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  if (flags.directory.empty()) flags.directory = StemOf(flags.csv);
  if (flags.directory.empty() || (flags.csv.empty() && !flags.label.empty())) {
    return PrintError("lockstep new",
                      flags.directory.empty() ? "DIR is missing, the directory to write to; try --help"
                                              : "--label is the column of a --csv, which is missing",
                      kExitBadConfiguration, err);
  }
  const auto path =
      flags.csv.empty() ? WriteConfiguration(fs, flags.directory, kStartingConfiguration) : WriteForCsv(fs, flags, out);
  if (!path.ok()) {
    return PrintError("lockstep new", path.status().message(),
                      absl::IsAlreadyExists(path.status()) ? kExitBadConfiguration : ExitCodeOfCheck(path.status()),
                      err);
  }
  out << "wrote " << *path << (flags.csv.empty() ? ", a perceptron for Fashion-MNIST" : "") << "\n"
      << "  edit it, then   ./lockstep check " << *path << "\n"
      << "  train           ./lockstep run " << *path << " --logdir=" << JoinPath(flags.directory, "logdir") << "\n";
  return kExitDone;
}

}  // namespace lockstep
