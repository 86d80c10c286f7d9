#include "lockstep/worker/data/concatenated.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

// Describes the form that all parts must share.
std::string FormOf(const Dataset& part) {
  const ExampleSpec& spec = part.spec();
  return absl::StrCat(NameOf(spec.features_dtype), spec.features_shape.ToString(), " features, ",
                      !part.has_labels()
                          ? "no labels"
                          : absl::StrCat(NameOf(spec.labels_dtype), spec.labels_shape.ToString(), " labels"),
                      part.has_weights() ? ", weights" : "");
}

// Copies row `from` of one tensor to row `to` of another. Their rows have the same type and shape.
void CopyRow(const Tensor& source, int64_t rows, size_t from, size_t to, Tensor* target) {
  const size_t row_bytes = source.bytes().size() / static_cast<size_t>(rows);
  if (row_bytes > 0) std::memcpy(target->data() + to * row_bytes, source.bytes().data() + from * row_bytes, row_bytes);
}

class Concatenated : public Dataset {
 public:
  // `ends[i]` is the number of examples in all parts up to and including part i.
  Concatenated(const ExampleSpec& spec, uint32_t crc32c, std::vector<std::unique_ptr<Dataset>> parts,
               std::vector<int64_t> ends)
      : Dataset(spec, ends.back(), parts[0]->has_weights(), crc32c, parts[0]->has_labels()),
        parts_(std::move(parts)),
        ends_(std::move(ends)) {}

 private:
  // Reads the examples of each part with a single call.
  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const override {
    struct Wanted {
      std::vector<int64_t> examples;
      std::vector<size_t> places;
    };
    std::vector<Wanted> wanted(parts_.size());
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto part = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), indices[i]) - ends_.begin());
      wanted[part].examples.push_back(indices[i] - (part == 0 ? 0 : ends_[part - 1]));
      wanted[part].places.push_back(i);
    }
    for (size_t part = 0; part < parts_.size(); ++part) {
      if (wanted[part].examples.empty()) continue;
      Batch read;
      RETURN_IF_ERROR(parts_[part]->Read(wanted[part].examples, &read));
      for (size_t i = 0; i < wanted[part].places.size(); ++i) {
        const size_t place = wanted[part].places[i];
        CopyRow(read.features, read.size, i, place, &out->features);
        CopyRow(read.labels, read.size, i, place, &out->labels);
        if (has_weights()) CopyRow(read.weights, read.size, i, place, &out->weights);
      }
    }
    return absl::OkStatus();
  }

  const std::vector<std::unique_ptr<Dataset>> parts_;
  const std::vector<int64_t> ends_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> Concatenate(std::vector<std::unique_ptr<Dataset>> parts,
                                                     const std::vector<std::string>& names) {
  if (parts.size() == 1) return std::move(parts[0]);
  ExampleSpec spec = parts[0]->spec();
  uint32_t crc32c = StartOfDigest(spec, parts[0]->has_weights());
  std::vector<int64_t> ends;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Dataset& part = *parts[i];
    if (FormOf(part) != FormOf(*parts[0])) {
      return absl::InvalidArgumentError(
          absl::StrCat(names[i], " has ", FormOf(part), "; ", names[0], " has ", FormOf(*parts[0])));
    }
    spec.classes = std::max(spec.classes, part.spec().classes);
    ends.push_back((ends.empty() ? 0 : ends.back()) + part.size());
    std::string bytes;
    AppendLittleEndian<uint64_t>(&bytes, static_cast<uint64_t>(part.size()));
    AppendLittleEndian<uint32_t>(&bytes, part.digest().crc32c());
    crc32c = ExtendCrc32c(crc32c, bytes);
  }
  return std::make_unique<Concatenated>(spec, crc32c, std::move(parts), std::move(ends));
}

}  // namespace lockstep
