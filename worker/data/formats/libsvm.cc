#include "lockstep/worker/data/formats/libsvm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/data/records/decimal.h"

namespace lockstep {
namespace {

constexpr int64_t kMaxFeatures = int64_t{1} << 28;

// Removes and returns the next word of `*text`. Returns an empty string at the end.
absl::string_view NextWord(absl::string_view* text) {
  *text = absl::StripLeadingAsciiWhitespace(*text);
  const auto end = std::find_if(text->begin(), text->end(), [](char c) { return absl::ascii_isspace(c); });
  const absl::string_view word = text->substr(0, end - text->begin());
  text->remove_prefix(word.size());
  return word;
}

class LibsvmFormat : public RecordFormat {
 public:
  LibsvmFormat(const ExampleSpec& spec, const config::v1::InputConfig::Libsvm& config)
      : RecordFormat(spec, /*has_weights=*/false, absl::StrCat("libsvm 2 ", config.SerializeAsString())),
        features_(config.features()),
        first_(config.zero_based() ? 0 : 1),
        binary_labels_(config.binary_labels()) {}

  bool is_text() const override { return true; }

  absl::optional<Piece> NextPiece(absl::string_view data, bool at_end) const override {
    absl::optional<Piece> line = NextLine(data, at_end);
    if (!line.has_value() || line->kind != Kind::kRecord) return line;
    const absl::string_view text = absl::StripLeadingAsciiWhitespace(WithoutByteOrderMark(data.substr(0, line->size)));
    if (text.empty() || text[0] == '#') line->kind = Kind::kBlank;
    return line;
  }

  absl::Status Parse(absl::string_view record, const ExampleSlot& out) const override {
    absl::string_view rest = WithoutByteOrderMark(record.substr(0, record.find('#')));
    RETURN_IF_ERROR(ParseLabel(NextWord(&rest), out));
    std::fill_n(out.features, features_, 0.0f);
    std::vector<int64_t> indices;
    for (absl::string_view word = NextWord(&rest); !word.empty(); word = NextWord(&rest)) {
      const size_t colon = word.find(':');
      // Ignores the query id of ranking data.
      if (indices.empty() && absl::StartsWith(word, "qid:")) continue;
      int64_t index = 0;
      float value = 0;
      if (colon == absl::string_view::npos || !absl::SimpleAtoi(word.substr(0, colon), &index) ||
          !ParseDecimal(word.substr(colon + 1), &value) || !std::isfinite(value)) {
        return absl::DataLossError(absl::StrCat("\"", word.substr(0, 40), "\" is not index:value"));
      }
      if (index < first_ || index > features_ - 1 + first_) {
        const bool looks_zero_based = index == 0 && first_ == 1;
        return absl::DataLossError(
            absl::StrCat("index ", index, "; indices go from ", first_, " to ", features_ - 1 + first_,
                         looks_zero_based ? "; if the file's begin at 0, set zero_based: true" : ""));
      }
      out.features[index - first_] = value;
      indices.push_back(index);
    }
    return CheckOnce(&indices);
  }

 private:
  // Checks that no index occurs twice. Indices need not be in ascending order.
  static absl::Status CheckOnce(std::vector<int64_t>* indices) {
    if (!std::is_sorted(indices->begin(), indices->end())) std::sort(indices->begin(), indices->end());
    const auto twice = std::adjacent_find(indices->begin(), indices->end());
    if (twice == indices->end()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("index ", *twice, " is there twice"));
  }

  absl::Status ParseLabel(absl::string_view word, const ExampleSlot& out) const {
    // Many files write classes as "+1" or "1.0".
    double value = 0;
    if (!ParseDecimal(word, &value) || !std::isfinite(value)) {
      return absl::DataLossError(absl::StrCat("the label \"", word.substr(0, 40), "\" is not a finite number"));
    }
    if (out.targets != nullptr) {
      if (std::abs(value) > std::numeric_limits<float>::max()) {
        return absl::DataLossError(absl::StrCat("the label ", word.substr(0, 40), " is beyond the range of float32"));
      }
      *out.targets = static_cast<float>(value);
      return absl::OkStatus();
    }
    if (binary_labels_ ? value != 1 && value != -1 : value < 0 || value >= INT32_MAX || value != std::floor(value)) {
      return absl::DataLossError(absl::StrCat(
          "the label is ", word.substr(0, 40), ", expected ", binary_labels_ ? "-1 or +1" : "a class, 0 or greater",
          !binary_labels_ && value == -1 ? "; if the classes are -1 and +1, set binary_labels: true" : ""));
    }
    *out.label = binary_labels_ ? value > 0 : static_cast<int32_t>(value);
    return absl::OkStatus();
  }

  const int64_t features_;
  // The smallest index.
  const int64_t first_;
  const bool binary_labels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordFormat>> CreateLibsvmFormat(const config::v1::InputConfig::Libsvm& config) {
  if (config.features() <= 0 || config.features() > kMaxFeatures) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.split.libsvm.features is ", config.features(), ", must be in [1, ", kMaxFeatures, "]"));
  }
  if (config.binary_labels() && config.regression()) {
    return absl::InvalidArgumentError("input.split.libsvm has both binary_labels and regression");
  }
  ExampleSpec spec;
  spec.features_shape = Shape({config.features()});
  if (config.regression()) {
    spec.labels_dtype = v1::DT_FLOAT;
    spec.labels_shape = Shape({1});
  } else if (config.binary_labels()) {
    spec.classes = 2;
  }
  return std::make_unique<LibsvmFormat>(spec, config);
}

}  // namespace lockstep
