#include "lockstep/common/flags/command_line.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/version.h"
#include "lockstep/common/flags/nearest_name.h"

namespace lockstep {
namespace {

constexpr size_t kColumns = 100;
// The column where descriptions of flags start.
constexpr size_t kIndent = 28;
constexpr char kVersionFlag[] = "version";
constexpr char kVariablePrefix[] = "LOCKSTEP_";

// Parser and printer for one type of flag. kType completes the message "--steps takes ...".
template <typename T>
struct FlagType;

template <>
struct FlagType<std::string> {
  static constexpr const char* kType = "a string";
  static bool Read(absl::string_view text, std::string* value) {
    *value = std::string(text);
    return true;
  }
  static std::string Default(const std::string& value) { return value; }
};

template <typename T>
struct IntegerFlag {
  static bool Read(absl::string_view text, T* value) {
    T parsed;
    if (!absl::SimpleAtoi(text, &parsed)) return false;
    *value = parsed;
    return true;
  }
  static std::string Default(T value) { return absl::StrCat(value); }
};

template <>
struct FlagType<int> : IntegerFlag<int> {
  static constexpr const char* kType = "an integer";
};
template <>
struct FlagType<int64_t> : IntegerFlag<int64_t> {
  static constexpr const char* kType = "an integer";
};
template <>
struct FlagType<uint64_t> : IntegerFlag<uint64_t> {
  static constexpr const char* kType = "an integer of at least 0";
};

template <>
struct FlagType<double> {
  static constexpr const char* kType = "a number";
  static bool Read(absl::string_view text, double* value) {
    double parsed;
    if (!absl::SimpleAtod(text, &parsed) || !std::isfinite(parsed)) return false;
    *value = parsed;
    return true;
  }
  static std::string Default(double value) { return absl::StrCat(value); }
};

template <>
struct FlagType<bool> {
  static constexpr const char* kType = "true or false";
  static bool Read(absl::string_view text, bool* value) { return absl::SimpleAtob(text, value); }
  static std::string Default(bool value) { return value ? "true" : ""; }
};

template <>
struct FlagType<absl::Duration> {
  static constexpr const char* kType = "a time such as 30s, 500ms or 2m";
  static bool Read(absl::string_view text, absl::Duration* value) {
    double seconds;
    absl::Duration parsed;
    if (FlagType<double>::Read(text, &seconds)) {
      parsed = absl::Seconds(seconds);
    } else if (!absl::ParseDuration(std::string(text), &parsed)) {
      return false;
    }
    if (parsed < absl::ZeroDuration()) return false;
    *value = parsed;
    return true;
  }
  static std::string Default(absl::Duration value) { return absl::FormatDuration(value); }
};

template <>
struct FlagType<std::vector<std::string>> {
  static constexpr const char* kType = "a string";
  static bool Read(absl::string_view text, std::vector<std::string>* value) {
    value->emplace_back(text);
    return true;
  }
};

template <typename T>
struct FlagType<absl::optional<T>> {
  static constexpr const char* kType = FlagType<T>::kType;
  static bool Read(absl::string_view text, absl::optional<T>* value) {
    T parsed;
    if (!FlagType<T>::Read(text, &parsed)) return false;
    *value = std::move(parsed);
    return true;
  }
  static std::string Default(const absl::optional<T>& value) {
    return value.has_value() ? FlagType<T>::Default(*value) : "";
  }
};

template <typename T>
std::string Remark(const T& value) {
  const std::string text = FlagType<T>::Default(value);
  return text.empty() ? "" : absl::StrCat("(default ", text, ")");
}

std::string Remark(const std::vector<std::string>&) { return "(may be repeated)"; }

// "max-restarts" to "max_restarts".
std::string Normalized(absl::string_view name) { return absl::StrReplaceAll(name, {{"-", "_"}}); }

// Returns `head` and then `text`, which starts at column `indent` and is wrapped at kColumns. A head that is too long
// gets its own line.
std::string Entry(absl::string_view head, absl::string_view text, size_t indent) {
  std::string out(head);
  size_t column = head.size();
  if (column + 2 > indent && column > 0) {
    out += '\n';
    column = 0;
  }
  bool first = true;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!first && column + 1 + word.size() > kColumns) {
      out += '\n';
      column = 0;
      first = true;
    }
    if (first) {
      out.append(indent - column, ' ');
      column = indent;
    } else {
      out += ' ';
      ++column;
    }
    absl::StrAppend(&out, word);
    column += word.size();
    first = false;
  }
  return out + '\n';
}

}  // namespace

CommandLine::CommandLine(std::string name, std::string summary, std::string details)
    : name_(std::move(name)), summary_(std::move(summary)), details_(std::move(details)) {}

void CommandLine::AddArgument(const std::string& name, const std::string& description, std::string* value,
                              Presence presence) {
  arguments_.push_back({name, description, presence, value});
}

template <typename T>
void CommandLine::AddFlag(const std::string& name, const std::string& placeholder, const std::string& description,
                          T* value) {
  constexpr bool kIsBool = std::is_same<T, bool>::value;
  constexpr bool kIsRepeated = std::is_same<T, std::vector<std::string>>::value;
  flags_.push_back({Normalized(name), kIsBool ? "" : placeholder, description, Remark(*value), kIsBool, kIsRepeated,
                    FlagType<T>::kType, [value](absl::string_view text) { return FlagType<T>::Read(text, value); }});
}

#define LOCKSTEP_FLAG_OF(...) \
  template void CommandLine::AddFlag(const std::string&, const std::string&, const std::string&, __VA_ARGS__*)
LOCKSTEP_FLAG_OF(std::string);
LOCKSTEP_FLAG_OF(int);
LOCKSTEP_FLAG_OF(int64_t);
LOCKSTEP_FLAG_OF(uint64_t);
LOCKSTEP_FLAG_OF(double);
LOCKSTEP_FLAG_OF(bool);
LOCKSTEP_FLAG_OF(absl::Duration);
LOCKSTEP_FLAG_OF(std::vector<std::string>);
LOCKSTEP_FLAG_OF(absl::optional<std::string>);
LOCKSTEP_FLAG_OF(absl::optional<int64_t>);
LOCKSTEP_FLAG_OF(absl::optional<uint64_t>);
LOCKSTEP_FLAG_OF(absl::optional<double>);
#undef LOCKSTEP_FLAG_OF

absl::optional<int> CommandLine::Parse(const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  const absl::Status status = ParseWords(words);
  if (status.ok()) return absl::nullopt;
  if (absl::IsCancelled(status)) {
    out << (status.message() == kVersionFlag ? BuildText(name_, ThisBuild()) : Help());
    return 0;
  }
  err << name_ << ": " << status.message() << "\n";
  return 2;
}

absl::Status CommandLine::ParseWords(const std::vector<std::string>& words) {
  size_t given = 0;
  bool flags_ended = false;
  given_.clear();
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!flags_ended && word == "--") {
      flags_ended = true;
    } else if (!flags_ended && word.size() > 1 && word[0] == '-') {
      RETURN_IF_ERROR(ParseFlag(words, &i));
    } else if (given < arguments_.size()) {
      *arguments_[given++].value = word;
    } else if (arguments_.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("takes flags only, not \"", word, "\"; try --help"));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", word, "\" is one argument too many after ", arguments_.back().name, "; try --help"));
    }
  }
  if (given < arguments_.size() && arguments_[given].presence == kRequired) {
    const Argument& missing = arguments_[given];
    return absl::InvalidArgumentError(absl::StrCat(missing.name, " is missing: ", missing.description, "; try --help"));
  }
  return ReadEnvironment();
}

std::string CommandLine::VariableOf(absl::string_view flag) {
  return absl::StrCat(kVariablePrefix, absl::AsciiStrToUpper(Normalized(flag)));
}

absl::Status CommandLine::ReadEnvironment() const {
  for (const Flag& flag : flags_) {
    const std::string variable = VariableOf(flag.name);
    const char* const text = std::getenv(variable.c_str());
    if (text == nullptr || *text == '\0' || given_.count(flag.name) > 0) continue;
    std::vector<std::string> values = {text};
    if (flag.is_repeated) values = absl::StrSplit(text, '\n', absl::SkipEmpty());
    for (const std::string& value : values) {
      if (flag.set(value)) continue;
      return absl::InvalidArgumentError(absl::StrCat(variable, " in the environment takes ", flag.type, " as --",
                                                     flag.name, " does, not \"", value, "\""));
    }
  }
  return absl::OkStatus();
}

absl::Status CommandLine::ParseFlag(const std::vector<std::string>& words, size_t* index) {
  absl::string_view word = words[*index];
  word.remove_prefix(absl::StartsWith(word, "--") ? 2 : 1);
  const size_t equals = word.find('=');
  const bool has_value = equals != absl::string_view::npos;
  const absl::string_view name = word.substr(0, equals);
  if (name == "help" || name == "h") return absl::CancelledError("help");
  if (name == kVersionFlag) return absl::CancelledError(kVersionFlag);
  const Flag* flag = FindFlag(Normalized(name));
  if (flag == nullptr) return UnknownFlag(name);

  std::string value;
  if (has_value) {
    value = std::string(word.substr(equals + 1));
  } else if (flag->is_bool) {
    value = "true";
  } else if (*index + 1 < words.size()) {
    value = words[++*index];
  } else {
    return absl::InvalidArgumentError(absl::StrCat("--", flag->name, " needs a value: --", flag->name, "=",
                                                   flag->placeholder, ", ", flag->description));
  }
  if (!flag->set(value)) {
    return absl::InvalidArgumentError(absl::StrCat("--", flag->name, " takes ", flag->type, ", not \"", value, "\""));
  }
  given_.insert(flag->name);
  return absl::OkStatus();
}

absl::optional<std::string> CommandLine::ValueOf(const std::string& flag, const std::vector<std::string>& words) {
  absl::optional<std::string> value;
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    absl::string_view word = words[i];
    if (!absl::ConsumePrefix(&word, "-")) continue;
    absl::ConsumePrefix(&word, "-");
    const size_t equals = word.find('=');
    if (Normalized(word.substr(0, equals)) != flag) continue;
    if (equals != absl::string_view::npos) {
      value = std::string(word.substr(equals + 1));
    } else if (i + 1 < words.size()) {
      value = words[++i];
    }
  }
  return value;
}

const CommandLine::Flag* CommandLine::FindFlag(const std::string& name) const {
  const auto found = std::find_if(flags_.begin(), flags_.end(), [&](const Flag& flag) { return flag.name == name; });
  return found == flags_.end() ? nullptr : &*found;
}

absl::Status CommandLine::UnknownFlag(absl::string_view name) const {
  std::vector<std::string> names = {"help", kVersionFlag};
  for (const Flag& flag : flags_) names.push_back(flag.name);
  const std::string nearest = NearestName(Normalized(name), names);
  return absl::InvalidArgumentError(absl::StrCat(
      "no flag --", name, nearest.empty() ? "; try --help" : absl::StrCat("; did you mean --", nearest, "?")));
}

std::string CommandLine::Help() const {
  std::string usage = absl::StrCat("Usage: ", name_);
  for (const Argument& argument : arguments_) {
    absl::StrAppend(&usage, argument.presence == kRequired ? absl::StrCat(" ", argument.name)
                                                           : absl::StrCat(" [", argument.name, "]"));
  }
  std::string help = absl::StrCat(usage, flags_.empty() ? "" : " [flags]", "\n\n", Entry("", summary_, 0), "\n");
  for (const Argument& argument : arguments_) {
    help += Entry(absl::StrCat("  ", argument.name), argument.description, kIndent);
  }
  for (const Flag& flag : flags_) {
    const std::string head =
        absl::StrCat("  --", flag.name, flag.placeholder.empty() ? "" : absl::StrCat("=", flag.placeholder));
    help += Entry(head, absl::StrCat(flag.description, " ", flag.remark), kIndent);
  }
  help += Entry("  --help", "shows this text", kIndent);
  help += Entry("  --version", "shows which build this is", kIndent);
  if (!flags_.empty()) {
    std::vector<std::string> variables;
    for (const Flag& flag : flags_) variables.push_back(VariableOf(flag.name));
    help += "\n" + Entry("",
                         absl::StrCat("A flag that is not given has the value of its environment variable, if that is "
                                      "set and not empty: ",
                                      absl::StrJoin(variables, ", "), "."),
                         0);
  }
  if (!details_.empty()) absl::StrAppend(&help, "\n", absl::StripSuffix(details_, "\n"), "\n");
  return help;
}

}  // namespace lockstep
