#include "lockstep/worker/data/formats/tf_example.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/v1/example.pb.h"
#include "lockstep/worker/data/images/image_form.h"
#include "lockstep/worker/data/normalization.h"
#include "lockstep/worker/data/records/data_file.h"

namespace lockstep {
namespace {

constexpr uint64_t kMaxPayload = uint64_t{1} << 30;
constexpr int64_t kMaxElements = int64_t{1} << 30;
constexpr size_t kLengthBytes = 12;
constexpr size_t kChecksumBytes = 4;
// Maximum number of keys shown in an error, and of bytes of each.
constexpr size_t kShownKeys = 8;
constexpr size_t kShownBytes = 40;

absl::string_view NameOf(v1::Feature::KindCase kind) {
  switch (kind) {
    case v1::Feature::kBytesList:
      return "bytes";
    case v1::Feature::kFloatList:
      return "floats";
    case v1::Feature::kInt64List:
      return "integers";
    default:
      return "empty";
  }
}

// Returns the feature's number of elements. For bytes, this is the length of its only value.
int64_t Elements(const v1::Feature& feature) {
  switch (feature.kind_case()) {
    case v1::Feature::kBytesList:
      return feature.bytes_list().value_size() == 1 ? feature.bytes_list().value(0).size() : 0;
    case v1::Feature::kFloatList:
      return feature.float_list().value_size();
    case v1::Feature::kInt64List:
      return feature.int64_list().value_size();
    default:
      return 0;
  }
}

// Returns the names of the example's features, sorted, for an error.
std::string KeysOf(const v1::Example& example) {
  if (!example.GetReflection()->GetUnknownFields(example).empty())
    return "it is no tf.train.Example, perhaps a SequenceExample";
  std::vector<std::string> keys;
  for (const auto& [key, feature] : example.features().feature()) {
    keys.push_back(absl::StrCat("\"", absl::CHexEscape(key.substr(0, kShownBytes)), "\""));
  }
  std::sort(keys.begin(), keys.end());
  if (keys.empty()) return "it has none";
  const size_t count = keys.size();
  keys.resize(std::min(count, kShownKeys));
  return absl::StrCat("it has ", count, ": ", absl::StrJoin(keys, ", "), count > kShownKeys ? ", ..." : "");
}

absl::StatusOr<const v1::Feature*> Find(const v1::Example& example, const std::string& key) {
  const auto found = example.features().feature().find(key);
  if (found != example.features().feature().end()) return &found->second;
  return absl::DataLossError(absl::StrCat("the example has no feature \"", key, "\"; ", KeysOf(example)));
}

absl::Status CopyFloats(const std::string& key, const v1::FloatList& list, float* out) {
  for (const float value : list.value()) {
    if (!std::isfinite(value)) return absl::DataLossError(absl::StrCat("feature \"", key, "\" holds ", value));
    *out++ = value;
  }
  return absl::OkStatus();
}

absl::Status CopyIntegers(const std::string& key, const v1::Int64List& list, int64_t least, int32_t* out) {
  for (const int64_t value : list.value()) {
    if (value < least || value > std::numeric_limits<int32_t>::max()) {
      return absl::DataLossError(absl::StrCat("feature \"", key, "\" holds ", value, ", expected an integer from ",
                                              least, " to ", std::numeric_limits<int32_t>::max()));
    }
    *out++ = static_cast<int32_t>(value);
  }
  return absl::OkStatus();
}

absl::Status CheckImage(const std::string& key, const v1::Feature& feature) {
  if (feature.kind_case() == v1::Feature::kBytesList && feature.bytes_list().value_size() == 1) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("feature \"", key, "\" has ", Elements(feature), " ",
                                          NameOf(feature.kind_case()), ", expected the bytes of one image"));
}

// The value types of the feature and the label, determined by the first record.
struct Kinds {
  v1::Feature::KindCase feature = v1::Feature::KIND_NOT_SET;
  v1::Feature::KindCase label = v1::Feature::KIND_NOT_SET;
};

class TfExampleFormat : public RecordFormat {
 public:
  TfExampleFormat(const ExampleSpec& spec, const config::v1::InputConfig::TfRecord& config, const Kinds& kinds,
                  absl::optional<ImageForm> image)
      : RecordFormat(spec, /*has_weights=*/false,
                     absl::StrCat("tfrecord 1 ", kinds.feature, " ", kinds.label, " ", spec.labels_shape.ToString(),
                                  " ", spec.features_shape.ToString(), " ", config.feature_key(), "\n",
                                  config.label_key(), image ? absl::StrCat("\n", image->Fingerprint()) : ""),
                     /*has_labels=*/kinds.label != v1::Feature::KIND_NOT_SET),
        feature_key_(config.feature_key()),
        label_key_(config.label_key()),
        kinds_(kinds),
        image_(std::move(image)) {}

  bool is_text() const override { return false; }

  // A piece consists of the payload and its checksum, which Parse verifies.
  absl::optional<Piece> NextPiece(absl::string_view data, bool at_end) const override {
    Piece piece;
    piece.next = absl::string_view::npos;
    piece.kind = Kind::kDamaged;
    piece.damage = "the file ends inside the record";
    if (data.size() < kLengthBytes) return at_end ? absl::make_optional(piece) : absl::nullopt;
    const uint64_t length = LoadLittleEndian<uint64_t>(data.data());
    if (MaskCrc32c(Crc32c(data.substr(0, 8))) != LoadLittleEndian<uint32_t>(data.data() + 8)) {
      piece.damage = "the checksum of the record's length is wrong; the rest of the file cannot be read";
      return piece;
    }
    if (length > kMaxPayload) {
      piece.damage = absl::StrCat("a record of ", length, " bytes, more than ", kMaxPayload);
      return piece;
    }
    if (data.size() < kLengthBytes + length + kChecksumBytes) {
      return at_end ? absl::make_optional(piece) : absl::nullopt;
    }
    piece.kind = Kind::kRecord;
    piece.begin = kLengthBytes;
    piece.size = static_cast<size_t>(length) + kChecksumBytes;
    piece.next = piece.begin + piece.size;
    return piece;
  }

  absl::Status Parse(absl::string_view record, const ExampleSlot& out) const override {
    if (record.size() < kChecksumBytes) return absl::DataLossError("the record is too short");
    const absl::string_view payload = record.substr(0, record.size() - kChecksumBytes);
    if (MaskCrc32c(Crc32c(payload)) != LoadLittleEndian<uint32_t>(payload.data() + payload.size())) {
      return absl::DataLossError("the checksum of the record is wrong");
    }
    v1::Example example;
    if (!example.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
      return absl::DataLossError("the record is not a tf.train.Example");
    }
    RETURN_IF_ERROR(FillFeatures(example, out));
    return FillLabel(example, out);
  }

 private:
  static absl::Status Check(const std::string& key, const v1::Feature& feature, v1::Feature::KindCase kind,
                            int64_t elements) {
    if (feature.kind_case() == kind && Elements(feature) == elements) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("feature \"", key, "\" has ", Elements(feature), " ",
                                            NameOf(feature.kind_case()), ", expected ", elements, " ", NameOf(kind)));
  }

  absl::Status FillFeatures(const v1::Example& example, const ExampleSlot& out) const {
    ASSIGN_OR_RETURN(const v1::Feature* feature, Find(example, feature_key_));
    if (image_) {
      RETURN_IF_ERROR(CheckImage(feature_key_, *feature));
      const absl::Status status = image_->Fill(feature->bytes_list().value(0), out.features);
      return status.ok() ? status
                         : absl::DataLossError(absl::StrCat("feature \"", feature_key_, "\": ", status.message()));
    }
    RETURN_IF_ERROR(Check(feature_key_, *feature, kinds_.feature, spec().features_shape.num_elements()));
    if (kinds_.feature == v1::Feature::kFloatList) return CopyFloats(feature_key_, feature->float_list(), out.features);
    if (kinds_.feature == v1::Feature::kInt64List) {
      return CopyIntegers(feature_key_, feature->int64_list(), std::numeric_limits<int32_t>::min(), out.ids);
    }
    const std::string& bytes = feature->bytes_list().value(0);
    Normalization().FromBytes({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, out.features);
    return absl::OkStatus();
  }

  absl::Status FillLabel(const v1::Example& example, const ExampleSlot& out) const {
    if (!has_labels()) {
      *out.label = 0;
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const v1::Feature* label, Find(example, label_key_));
    RETURN_IF_ERROR(Check(label_key_, *label, kinds_.label, spec().labels_shape.num_elements()));
    if (kinds_.label == v1::Feature::kFloatList) return CopyFloats(label_key_, label->float_list(), out.targets);
    return CopyIntegers(label_key_, label->int64_list(), 0, out.label);
  }

  const std::string feature_key_;
  const std::string label_key_;
  const Kinds kinds_;
  // Set if the feature is an encoded image.
  const absl::optional<ImageForm> image_;
};

// Returns a hint for an error message if the bytes are an encoded image, because its length says nothing about its
// shape.
absl::string_view EncodedText(const v1::Feature& feature) {
  if (feature.bytes_list().value_size() != 1) return "";
  const absl::string_view bytes = feature.bytes_list().value(0);
  const bool is_encoded = absl::StartsWith(bytes, "\x89PNG") || absl::StartsWith(bytes, "\xff\xd8\xff");
  return is_encoded ? "; it is an encoded image: give `image { height: ... width: ... }` instead of the shape" : "";
}

absl::StatusOr<Shape> FeatureShape(const config::v1::InputConfig::TfRecord& config) {
  int64_t elements = 1;
  for (const int64_t dim : config.feature_shape()) {
    if (dim <= 0 || dim > kMaxElements / elements) {
      return absl::InvalidArgumentError(absl::StrCat("input.split.tfrecord.feature_shape has ", dim,
                                                     "; dimensions are positive, their product at most ",
                                                     kMaxElements));
    }
    elements *= dim;
  }
  return Shape::Create({config.feature_shape().data(), static_cast<size_t>(config.feature_shape_size())});
}

// The expected form of a feature.
struct FeatureForm {
  Shape shape;
  absl::optional<ImageForm> image;
};

absl::StatusOr<FeatureForm> FormOf(const config::v1::InputConfig::TfRecord& config) {
  FeatureForm form;
  if (config.has_image()) {
    ASSIGN_OR_RETURN(form.image, ImageForm::Create(config.image()));
    form.shape = form.image->shape();
  } else {
    ASSIGN_OR_RETURN(form.shape, FeatureShape(config));
  }
  return form;
}

// Returns the format for records whose features are of the same kinds as those of `payload`.
absl::StatusOr<std::unique_ptr<RecordFormat>> FormatOf(const std::string& payload, const FeatureForm& form,
                                                       const config::v1::InputConfig::TfRecord& config,
                                                       bool labels_optional) {
  v1::Example example;
  if (!example.ParseFromString(payload)) return absl::DataLossError("the record is not a tf.train.Example");
  ASSIGN_OR_RETURN(const v1::Feature* feature, Find(example, config.feature_key()));
  const absl::StatusOr<const v1::Feature*> found = Find(example, config.label_key());
  const bool has_labels = found.ok() || !labels_optional;
  if (has_labels) RETURN_IF_ERROR(found.status());
  const v1::Feature& label = has_labels ? **found : v1::Feature::default_instance();
  const Kinds kinds = {feature->kind_case(), label.kind_case()};
  if (form.image) {
    RETURN_IF_ERROR(CheckImage(config.feature_key(), *feature));
  } else if (Elements(*feature) != form.shape.num_elements()) {
    return absl::DataLossError(absl::StrCat("feature \"", config.feature_key(), "\" has ", Elements(*feature), " ",
                                            NameOf(kinds.feature), ", its shape ", form.shape.ToString(), " needs ",
                                            form.shape.num_elements(), EncodedText(*feature)));
  }
  const bool has_class = kinds.label == v1::Feature::kInt64List;
  const bool is_label =
      has_class ? Elements(label) == 1 : kinds.label == v1::Feature::kFloatList && Elements(label) > 0;
  if (has_labels && !is_label) {
    return absl::DataLossError(absl::StrCat("label \"", config.label_key(), "\" has ", Elements(label), " ",
                                            NameOf(kinds.label), ", expected one integer, or floats"));
  }
  ExampleSpec spec;
  spec.features_dtype = kinds.feature == v1::Feature::kInt64List ? v1::DT_INT32 : v1::DT_FLOAT;
  spec.features_shape = form.shape;
  if (!has_labels) {
    spec.classes = 1;
  } else if (!has_class) {
    spec.labels_dtype = v1::DT_FLOAT;
    spec.labels_shape = Shape({Elements(label)});
  }
  return std::make_unique<TfExampleFormat>(spec, config, kinds, form.image);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordFormat>> OpenTfExampleFormat(FileSystem* fs, std::vector<RecordFile>* files,
                                                                  const config::v1::InputConfig::TfRecord& config,
                                                                  config::v1::InputConfig::OnDamage on_damage,
                                                                  bool labels_optional) {
  if (files->empty()) return absl::InvalidArgumentError("input.split.tfrecord.file is empty");
  ASSIGN_OR_RETURN(const FeatureForm form, FormOf(config));
  absl::Status first_error = absl::DataLossError(absl::StrCat(files->front().path, ": holds no record"));
  bool failed = false;
  for (RecordFile& file : *files) {
    const std::string& path = file.path;
    ASSIGN_OR_RETURN(file.contents, OpenDataFile(fs, path, DataFileKind::kTfRecord));
    const std::unique_ptr<RecordReader> reader = RecordReader::FromFile(path, file.contents, kMaxPayload);
    for (uint64_t offset = 0; offset < reader->size();) {
      std::string payload;
      const absl::StatusOr<RecordReader::Position> position = reader->SkipAt(offset);
      absl::Status status = reader->ReadAt(offset, &payload).status();
      if (status.ok()) {
        auto format = FormatOf(payload, form, config, labels_optional);
        if (format.ok()) return format;
        status = absl::DataLossError(absl::StrCat(path, ": record at byte ", offset, ": ", format.status().message()));
      }
      if (!failed) first_error = status;
      failed = true;
      if (on_damage == config::v1::InputConfig::FAIL) return first_error;
      if (!position.ok()) break;
      offset = position->next;
    }
  }
  return first_error;
}

}  // namespace lockstep
