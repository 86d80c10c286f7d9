#include "lockstep/worker/data/formats/synthetic.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/crc32c.h"

namespace lockstep {
namespace {

// 2^28 floats, which limits the cluster centers to 1 GiB.
constexpr int64_t kMaxElements = int64_t{1} << 28;
constexpr int kTableBits = 16;

// Returns a uniform number in [0, n) from 32 random bits. `n` must be at most 2^32.
int64_t UniformInt(uint32_t bits, int64_t n) {
  return static_cast<int64_t>((static_cast<uint64_t>(bits) * static_cast<uint64_t>(n)) >> 32);
}

std::vector<float> DrawNormal(uint64_t seed, absl::string_view use, int64_t count) {
  std::vector<float> values(count);
  Philox(seed, StableHash(use)).FillNormal(absl::MakeSpan(values));
  return values;
}

// A fast source of normal random numbers for many examples. Each number is selected with 16 random bits from a fixed
// sample of 65536.
class NormalTable {
 public:
  explicit NormalTable(uint64_t seed) : values_(DrawNormal(seed, "synthetic normal table", int64_t{1} << kTableBits)) {}

  absl::Span<const float> values() const { return values_; }

  // Fills `out` using the blocks of `philox` that start at `first`.
  void Fill(const Philox& philox, uint64_t first, absl::Span<float> out) const {
    for (size_t i = 0; i < out.size(); i += 8) {
      const Philox::Block block = philox.At(first++);
      const size_t count = std::min<size_t>(8, out.size() - i);
      for (size_t lane = 0; lane < count; ++lane) {
        out[i + lane] = values_[block[lane / 2] >> (lane % 2 * 16) & 0xFFFF];
      }
    }
  }

 private:
  std::vector<float> values_;
};

// Returns the checksum of the data from which the examples are generated, since there may be too many examples to
// generate them all for a comparison.
uint32_t Checksum(const ExampleSpec& spec, const config::v1::InputConfig::Synthetic& config, uint64_t seed,
                  std::initializer_list<absl::Span<const float>> tables) {
  uint32_t crc32c = StartOfDigest(spec, /*has_weights=*/false);
  crc32c = ExtendCrc32c(crc32c, absl::StrCat(" ", seed, " ", config.SerializeAsString()));
  for (const absl::Span<const float> table : tables) {
    crc32c = ExtendCrc32c(crc32c, {reinterpret_cast<const char*>(table.data()), table.size() * sizeof(float)});
  }
  return crc32c;
}

class SyntheticDataset : public Dataset {
 public:
  SyntheticDataset(const ExampleSpec& spec, const config::v1::InputConfig::Synthetic& config, uint64_t seed,
                   uint32_t crc32c)
      : Dataset(spec, config.examples(), /*has_weights=*/false, crc32c),
        seed_(seed),
        stream_(config.stream()),
        noise_(config.has_noise() ? config.noise() : 1.0f) {}

 protected:
  // Writes an example, which depends only on `philox`, to position `place` of the batch.
  virtual void Generate(const Philox& philox, int64_t place, Batch* out) const = 0;
  float noise() const { return noise_; }

 private:
  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const final {
    for (size_t i = 0; i < indices.size(); ++i) {
      Generate(Philox::ForSlot(seed_, "synthetic example", stream_, indices[i]), static_cast<int64_t>(i), out);
    }
    return absl::OkStatus();
  }

  const uint64_t seed_;
  const int64_t stream_;
  const float noise_;
};

class Classification : public SyntheticDataset {
 public:
  Classification(const ExampleSpec& spec, const config::v1::InputConfig::Synthetic& config, uint64_t seed,
                 NormalTable normal, std::vector<float> centres)
      : SyntheticDataset(spec, config, seed, Checksum(spec, config, seed, {normal.values(), centres})),
        normal_(std::move(normal)),
        centres_(std::move(centres)) {}

 private:
  void Generate(const Philox& philox, int64_t place, Batch* out) const override {
    const int64_t elements = spec().features_shape.num_elements();
    const int64_t label = UniformInt(philox.At(0)[0], spec().classes);
    absl::Span<float> example = out->features.flat<float>().subspan(place * elements, elements);
    normal_.Fill(philox, 1, example);
    const float* centre = &centres_[label * elements];
    for (int64_t e = 0; e < elements; ++e) example[e] = centre[e] + noise() * example[e];
    out->labels.flat<int32_t>()[place] = static_cast<int32_t>(label);
  }

  const NormalTable normal_;
  const std::vector<float> centres_;
};

class Regression : public SyntheticDataset {
 public:
  Regression(const ExampleSpec& spec, const config::v1::InputConfig::Synthetic& config, uint64_t seed,
             NormalTable normal, std::vector<float> weights)
      : SyntheticDataset(spec, config, seed, Checksum(spec, config, seed, {normal.values(), weights})),
        normal_(std::move(normal)),
        weights_(std::move(weights)) {}

 private:
  void Generate(const Philox& philox, int64_t place, Batch* out) const override {
    const int64_t elements = spec().features_shape.num_elements();
    absl::Span<float> example = out->features.flat<float>().subspan(place * elements, elements);
    normal_.Fill(philox, 1, example);
    double sum = 0;
    for (int64_t e = 0; e < elements; ++e) sum += static_cast<double>(example[e]) * weights_[e];
    float noise;
    normal_.Fill(philox, 0, absl::MakeSpan(&noise, 1));
    out->labels.flat<float>()[place] =
        static_cast<float>(sum / std::sqrt(static_cast<double>(elements)) + this->noise() * noise);
  }

  const NormalTable normal_;
  const std::vector<float> weights_;
};

class Sequence : public SyntheticDataset {
 public:
  Sequence(const ExampleSpec& spec, const config::v1::InputConfig::Synthetic& config, uint64_t seed)
      : SyntheticDataset(spec, config, seed, Checksum(spec, config, seed, {})), vocabulary_(config.vocabulary()) {}

 private:
  void Generate(const Philox& philox, int64_t place, Batch* out) const override {
    const int64_t length = spec().features_shape.num_elements();
    const int64_t frequent = UniformInt(philox.At(0)[0], spec().classes);
    int32_t* ids = &out->features.flat<int32_t>()[place * length];
    std::vector<int64_t> count(spec().classes);
    for (int64_t i = 0; i < length; ++i) {
      const Philox::Block block = philox.At(1 + i);
      const int64_t id = block[0] & 1 ? frequent : UniformInt(block[1], vocabulary_);
      ids[i] = static_cast<int32_t>(id);
      if (id < spec().classes) ++count[id];
    }
    out->labels.flat<int32_t>()[place] =
        static_cast<int32_t>(std::max_element(count.begin(), count.end()) - count.begin());
  }

  const int64_t vocabulary_;
};

absl::Status Invalid(absl::string_view field, absl::string_view expected, int64_t actual) {
  return absl::InvalidArgumentError(
      absl::StrCat("input.split.synthetic.", field, " is ", actual, ", must be ", expected));
}

absl::Status CheckConfig(const config::v1::InputConfig::Synthetic& config) {
  if (config.examples() <= 0) return Invalid("examples", "positive", config.examples());
  if (config.shape_size() == 0) return absl::InvalidArgumentError("input.split.synthetic.shape is empty");
  int64_t elements = 1;
  for (const int64_t dim : config.shape()) {
    if (dim <= 0 || dim > kMaxElements / elements) {
      return Invalid("shape", absl::StrCat("positive numbers with a product of at most ", kMaxElements), dim);
    }
    elements *= dim;
  }
  if (config.has_noise() && !(std::isfinite(config.noise()) && config.noise() >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.split.synthetic.noise is ", config.noise(), ", must be finite and not negative"));
  }
  if (config.kind() == config::v1::InputConfig::Synthetic::REGRESSION) return absl::OkStatus();
  const bool sequence = config.kind() == config::v1::InputConfig::Synthetic::SEQUENCE;
  const int64_t max_classes = sequence ? kMaxElements : kMaxElements / elements;
  if (config.classes() <= 0 || config.classes() > max_classes) {
    return Invalid("classes", absl::StrCat("in [1, ", max_classes, "]"), config.classes());
  }
  if (!sequence) return absl::OkStatus();
  if (config.shape_size() != 1) return Invalid("shape", "one number, the length", config.shape_size());
  if (config.vocabulary() < config.classes() || config.vocabulary() > INT32_MAX) {
    return Invalid("vocabulary", absl::StrCat("in [classes, 2^31), and classes is ", config.classes()),
                   config.vocabulary());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> CreateSyntheticDataset(const config::v1::InputConfig::Synthetic& config,
                                                                uint64_t seed) {
  RETURN_IF_ERROR(CheckConfig(config));
  ExampleSpec spec;
  ASSIGN_OR_RETURN(spec.features_shape,
                   Shape::Create({config.shape().data(), static_cast<size_t>(config.shape_size())}));
  spec.classes = config.classes();
  switch (config.kind()) {
    case config::v1::InputConfig::Synthetic::CLASSIFICATION:
      return std::make_unique<Classification>(
          spec, config, seed, NormalTable(seed),
          DrawNormal(seed, "synthetic centres", spec.classes * spec.features_shape.num_elements()));
    case config::v1::InputConfig::Synthetic::REGRESSION:
      spec.labels_dtype = v1::DT_FLOAT;
      spec.labels_shape = Shape({1});
      spec.classes = 0;
      return std::make_unique<Regression>(spec, config, seed, NormalTable(seed),
                                          DrawNormal(seed, "synthetic weights", spec.features_shape.num_elements()));
    case config::v1::InputConfig::Synthetic::SEQUENCE:
      spec.features_dtype = v1::DT_INT32;
      return std::make_unique<Sequence>(spec, config, seed);
    default:
      return Invalid("kind", "CLASSIFICATION, REGRESSION or SEQUENCE", config.kind());
  }
}

}  // namespace lockstep
