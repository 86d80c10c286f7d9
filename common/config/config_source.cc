#include "lockstep/common/config/config_source.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lockstep {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ParseInfoTree = ::google::protobuf::TextFormat::ParseInfoTree;

// Returns the field path with which the text begins: "model.layer[1].dense" for "model.layer[1].dense: 3 is too few".
absl::string_view PathAtStart(absl::string_view text) {
  const auto in_path = [](char c) { return absl::ascii_isalnum(c) || absl::StrContains("_.[]", c); };
  size_t size = 0;
  while (size < text.size() && in_path(text[size])) ++size;
  return text.substr(0, size);
}

// Parses an index such as "1]". Returns 0 if it is not a number, and -1 if the field is not repeated.
int TakeIndex(const FieldDescriptor& field, absl::string_view index) {
  if (!field.is_repeated()) return -1;
  int number = 0;
  return absl::SimpleAtoi(absl::StripSuffix(index, "]"), &number) ? number : 0;
}

// Returns true if the paths are equal or `inner` is below `outer`.
bool Contains(absl::string_view outer, absl::string_view inner) {
  return absl::StartsWith(inner, outer) &&
         (inner.size() == outer.size() || inner[outer.size()] == '.' || inner[outer.size()] == '[');
}

}  // namespace

ConfigSource::ConfigSource(std::string file, const Descriptor* root, absl::Span<const std::string> overrides)
    : file_(std::move(file)), root_(root) {
  for (const std::string& override : overrides) overridden_.push_back(override.substr(0, override.find('=')));
}

absl::Status ConfigSource::Locate(const absl::Status& status) const {
  if (status.ok()) return status;
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    lines.push_back(absl::StrCat(PlaceOf(line), line));
  }
  return absl::Status(status.code(), absl::StrJoin(lines, "\n"));
}

std::string ConfigSource::PlaceOf(absl::string_view text) const {
  const absl::string_view path = PathAtStart(text);
  if (file_.empty() || IsOverridden(path)) return "";
  const Descriptor* message = root_;
  const ParseInfoTree* tree = &lines_;
  int line = -1;
  bool is_field = false;
  for (absl::string_view part : absl::StrSplit(path, '.')) {
    const std::pair<absl::string_view, absl::string_view> name_index = absl::StrSplit(part, absl::MaxSplits('[', 1));
    const FieldDescriptor* field =
        message == nullptr ? nullptr : message->FindFieldByName(std::string(name_index.first));
    if (field == nullptr) break;
    is_field = true;
    const int index = TakeIndex(*field, name_index.second);
    const int field_line = tree->GetLocation(field, index).line;
    if (field_line < 0) break;
    line = field_line;
    message = field->message_type();
    tree = message == nullptr ? nullptr : tree->GetTreeForNested(field, index);
    if (tree == nullptr) break;
  }
  if (!is_field) return "";
  return line < 0 ? absl::StrCat(file_, ": ") : absl::StrCat(file_, ":", line + 1, ": ");
}

bool ConfigSource::IsOverridden(absl::string_view path) const {
  for (const std::string& overridden : overridden_) {
    if (Contains(overridden, path)) return true;
  }
  return false;
}

absl::Status InField(absl::string_view field, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(field, ": ", status.message()));
}

}  // namespace lockstep
