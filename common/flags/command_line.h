#ifndef LOCKSTEP_COMMON_FLAGS_COMMAND_LINE_H_
#define LOCKSTEP_COMMON_FLAGS_COMMAND_LINE_H_

#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace lockstep {

// The flags and arguments of one program or subcommand, its --help and --version included. Declare, then Parse once:
//
//   std::string config, logdir = "runs"; bool json = false; std::vector<std::string> overrides;
//   CommandLine command_line("lockstep run", "Trains a model on this machine.");
//   command_line.AddArgument("CONFIG", "the run's configuration, a textproto", &config);
//   command_line.AddFlag("logdir", "DIR", "checkpoints and summaries go here", &logdir);
//   command_line.AddFlag("set", "PATH=VALUE", "sets a field of the configuration", &overrides);
//   if (auto exit_code = command_line.Parse(CommandLine::Words(argc, argv), std::cout, std::cerr)) return *exit_code;
//
// The variables must outlive the last call. Until Parse they hold the defaults, which --help shows. Not thread-safe.
class CommandLine {
 public:
  // `name` is what the user types; `summary` is one sentence. `details`, such as exit codes and examples, ends the
  // help.
  CommandLine(std::string name, std::string summary, std::string details = "");

  // Declares positional arguments, in the order of the calls. A required argument must not follow an optional one.
  enum Presence { kRequired, kOptional };
  void AddArgument(const std::string& name, const std::string& description, std::string* value,
                   Presence presence = kRequired);

  // Declares --name=VALUE or --name VALUE; "-" and "_" in a name are equivalent. `placeholder` stands for the value in
  // the help. T is one of: std::string, int, int64_t, uint64_t, double; absl::Duration (a bare number is seconds);
  // absl::optional of std::string, int64_t, uint64_t or double (absent unless given); bool (--name alone is true, a
  // value must follow an "=", and the placeholder is not used); std::vector<std::string>, which may be repeated and
  // gets one element for each value, including its commas. A repeated flag of any other type replaces its first value.
  template <typename T>
  void AddFlag(const std::string& name, const std::string& placeholder, const std::string& description, T* value);

  // Returns nullopt if the program can continue. Otherwise returns its exit code: 0 after --help or --version, printed
  // to `out`; 2 after one line to `err` that names the flag or argument, what is wrong with it and what would be right.
  // "--" ends the flags. If a flag is absent from the words, the value of its environment variable is used, unless that
  // is empty. A repeatable flag gets one value from each line of the variable.
  absl::optional<int> Parse(const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

  // Returns true if the flag was on the parsed command line; its environment variable does not count.
  bool IsGiven(const std::string& flag) const { return given_.count(flag) > 0; }

  // Returns "LOCKSTEP_MAX_RESTARTS" for "max_restarts".
  static std::string VariableOf(absl::string_view flag);

  // Returns the text of --help. Lines have at most 100 columns, unless one word is longer.
  std::string Help() const;

  // Returns the last value of a string flag in `words`, for a program whose other flags depend on it. Absent if the
  // flag is not given.
  static absl::optional<std::string> ValueOf(const std::string& flag, const std::vector<std::string>& words);

  // Returns the words after the program's name.
  static std::vector<std::string> Words(int argc, char** argv) { return {argv + 1, argv + argc}; }

 private:
  struct Argument {
    std::string name;
    std::string description;
    Presence presence;
    std::string* value;
  };
  struct Flag {
    std::string name;
    std::string placeholder;
    std::string description;
    // "(default ...)" or "(may be repeated)" for the help; empty if neither applies.
    std::string remark;
    bool is_bool;
    bool is_repeated;
    // The required type of the value: "an integer".
    std::string type;
    std::function<bool(absl::string_view)> set;
  };

  // Errors: InvalidArgument, whose message is the line to show; Cancelled, whose message is the name of the flag (help
  // or version) that ends the program.
  absl::Status ParseWords(const std::vector<std::string>& words);
  // Parses a word that starts a flag, and the next one if that is its value; moves `index` to the last word used.
  absl::Status ParseFlag(const std::vector<std::string>& words, size_t* index);
  const Flag* FindFlag(const std::string& name) const;
  // Sets each flag that is absent from the command line from its environment variable.
  absl::Status ReadEnvironment() const;
  absl::Status UnknownFlag(absl::string_view name) const;

  const std::string name_;
  const std::string summary_;
  const std::string details_;
  std::vector<Argument> arguments_;
  std::vector<Flag> flags_;
  // Flags on the parsed command line.
  std::set<std::string> given_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FLAGS_COMMAND_LINE_H_
