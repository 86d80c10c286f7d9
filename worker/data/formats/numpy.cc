#include "lockstep/worker/data/formats/numpy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/formats/npy.h"
#include "lockstep/common/checkpoint/formats/npz.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/rounding.h"
#include "lockstep/worker/data/normalization.h"

namespace lockstep {
namespace {

// Number of rows converted at a time to check an array in memory.
constexpr int64_t kRowsAtOnce = 256;
constexpr char kNumberClasses[] = "; numpy.unique(classes, return_inverse=True)[1] numbers them from 0";

struct Array {
  std::string name;  // for errors
  v1::DataType dtype = v1::DT_INVALID;
  Shape shape;
  ArrayRows rows;

  int64_t row_elements() const { return shape.num_elements() / shape.dim(0); }
  bool is_float() const { return dtype == v1::DT_FLOAT || dtype == v1::DT_DOUBLE || dtype == v1::DT_HALF; }
};

template <typename T>
T Load(const uint8_t* bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

// These functions write n numbers. They return false if the result type cannot represent one of them.
bool ToFloats(v1::DataType dtype, const uint8_t* bytes, int64_t n, float* out) {
  switch (dtype) {
    case v1::DT_FLOAT:
      std::memcpy(out, bytes, static_cast<size_t>(n) * sizeof(float));
      break;
    case v1::DT_DOUBLE:
      for (int64_t i = 0; i < n; ++i) {
        const double value = Load<double>(bytes, i);
        if (!(std::abs(value) <= std::numeric_limits<float>::max())) return false;
        out[i] = static_cast<float>(value);
      }
      return true;
    case v1::DT_HALF:
      Decode16(v1::DT_HALF, n, reinterpret_cast<const char*>(bytes), out);
      break;
    case v1::DT_BOOL:
      for (int64_t i = 0; i < n; ++i) out[i] = bytes[i] != 0 ? 1.0f : 0.0f;
      return true;
    default:
      Normalization().FromBytes({bytes, static_cast<size_t>(n)}, out);
      return true;
  }
  return std::all_of(out, out + n, [](float value) { return std::isfinite(value); });
}

template <typename T>
bool CastInts(const uint8_t* bytes, int64_t n, int32_t* out) {
  for (int64_t i = 0; i < n; ++i) {
    const T value = Load<T>(bytes, i);
    out[i] = static_cast<int32_t>(value);
    if (static_cast<T>(out[i]) != value || (value > 0) != (out[i] > 0)) return false;
  }
  return true;
}
bool ToInts(v1::DataType dtype, const uint8_t* bytes, int64_t n, int32_t* out) {
  switch (dtype) {
    case v1::DT_BOOL:
    case v1::DT_UINT8:
      return CastInts<uint8_t>(bytes, n, out);
    case v1::DT_INT8:
      return CastInts<int8_t>(bytes, n, out);
    case v1::DT_INT16:
      return CastInts<int16_t>(bytes, n, out);
    case v1::DT_UINT16:
      return CastInts<uint16_t>(bytes, n, out);
    case v1::DT_INT32:
      return CastInts<int32_t>(bytes, n, out);
    case v1::DT_UINT32:
      return CastInts<uint32_t>(bytes, n, out);
    case v1::DT_INT64:
      return CastInts<int64_t>(bytes, n, out);
    default:
      return CastInts<uint64_t>(bytes, n, out);
  }
}

// Returns true if features become floats rather than ids.
bool IsFloatFeature(const Array& array) {
  return array.is_float() || array.dtype == v1::DT_BOOL || array.dtype == v1::DT_UINT8;
}

// Returns the error for the first row that contains an invalid element. The search starts at row `row`, whose bytes are
// at `bytes`; there must be such a row.
absl::Status NotAllowed(const Array& array, const uint8_t* bytes, int64_t row, bool floats) {
  const int64_t elements = array.row_elements();
  std::vector<float> numbers(floats ? static_cast<size_t>(elements) : 0);
  std::vector<int32_t> integers(floats ? 0 : static_cast<size_t>(elements));
  while (floats ? ToFloats(array.dtype, bytes, elements, numbers.data())
                : ToInts(array.dtype, bytes, elements, integers.data())) {
    ++row;
    bytes += array.rows.row_bytes();
  }
  return absl::DataLossError(absl::StrCat(
      array.name, ": example ", row, " has a number that is not ",
      floats ? "finite in float32; numpy.nan_to_num replaces those that are not" : "an integer of 32 bits"));
}

class NumpyDataset : public Dataset {
 public:
  struct Labels {
    std::vector<int32_t> classes;
    std::vector<float> targets, weights;
    bool present = true;
  };
  NumpyDataset(const ExampleSpec& spec, uint32_t crc32c, Array features, Labels labels)
      : Dataset(spec, features.shape.dim(0), !labels.weights.empty(), crc32c, labels.present),
        features_(std::move(features)),
        labels_(std::move(labels)) {}

  // Checks features in memory; features on disk are checked when they are read.
  absl::Status CheckFeatures() const {
    if (features_.rows.memory() == nullptr) return absl::OkStatus();
    std::vector<int64_t> indices;
    Batch batch;
    for (int64_t first = 0; first < size(); first += kRowsAtOnce) {
      indices.clear();
      for (int64_t i = first; i < std::min(size(), first + kRowsAtOnce); ++i) indices.push_back(i);
      RETURN_IF_ERROR(Read(indices, &batch));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const override {
    const int64_t elements = features_.row_elements();
    const bool floats = spec().features_dtype == v1::DT_FLOAT;
    std::vector<uint8_t> read;
    int64_t done = 0;
    for (size_t i = 0, run = 0; i < indices.size(); i += run) {
      // Reads consecutive examples together.
      run = 1;
      while (i + run < indices.size() && indices[i + run] == indices[i] + static_cast<int64_t>(run)) ++run;
      const uint8_t* bytes = features_.rows.memory();
      if (bytes != nullptr) {
        bytes += static_cast<uint64_t>(indices[i]) * features_.rows.row_bytes();
      } else {
        read.resize(run * features_.rows.row_bytes());
        RETURN_IF_ERROR(features_.rows.Read(indices[i], static_cast<int64_t>(run), read.data()));
        bytes = read.data();
      }
      const int64_t n = static_cast<int64_t>(run) * elements;
      const bool allowed = floats ? ToFloats(features_.dtype, bytes, n, out->features.flat<float>().data() + done)
                                  : ToInts(features_.dtype, bytes, n, out->features.flat<int32_t>().data() + done);
      if (!allowed) return NotAllowed(features_, bytes, indices[i], floats);
      done += n;
    }
    CopyLabels(indices, out);
    return absl::OkStatus();
  }

  void CopyLabels(absl::Span<const int64_t> indices, Batch* out) const {
    const size_t outputs = static_cast<size_t>(spec().labels_shape.num_elements());
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto row = static_cast<size_t>(indices[i]);
      if (spec().labels_dtype == v1::DT_INT32) {
        out->labels.flat<int32_t>()[i] = labels_.present ? labels_.classes[row] : 0;
      } else {
        std::copy_n(&labels_.targets[row * outputs], outputs, &out->labels.flat<float>()[i * outputs]);
      }
      if (has_weights()) out->weights.flat<float>()[i] = labels_.weights[row];
    }
  }

  const Array features_;
  const Labels labels_;
};

absl::Status CheckLength(const Array& array, const Array& features) {
  if (array.shape.rank() > 0 && array.shape.dim(0) == features.shape.dim(0)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(array.name, " has the shape ", array.shape.ToString(), ", ", features.name,
                                          " has ", features.shape.dim(0), " examples"));
}

absl::Status WrongArray(const Array& array, absl::string_view needs) {
  return absl::InvalidArgumentError(
      absl::StrCat(array.name, " is ", NameOf(array.dtype), array.shape.ToString(), ", must be ", needs));
}

absl::StatusOr<std::vector<float>> AllFloats(const Array& array) {
  std::vector<uint8_t> bytes(array.rows.row_bytes() * static_cast<uint64_t>(array.shape.dim(0)));
  RETURN_IF_ERROR(array.rows.Read(0, array.shape.dim(0), bytes.data()));
  std::vector<float> values(static_cast<size_t>(array.shape.num_elements()));
  if (array.is_float()) {
    if (!ToFloats(array.dtype, bytes.data(), array.shape.num_elements(), values.data())) {
      return NotAllowed(array, bytes.data(), 0, /*floats=*/true);
    }
    return values;
  }
  std::vector<int32_t> ints(values.size());
  if (!ToInts(array.dtype, bytes.data(), array.shape.num_elements(), ints.data())) {
    return NotAllowed(array, bytes.data(), 0, /*floats=*/false);
  }
  std::transform(ints.begin(), ints.end(), values.begin(), [](int32_t value) { return static_cast<float>(value); });
  return values;
}

absl::Status ReadClasses(const Array& array, std::vector<int32_t>* classes, ExampleSpec* spec) {
  if (array.row_elements() != 1) return WrongArray(array, "a class an example, or float32 targets");
  std::vector<uint8_t> bytes(array.rows.row_bytes() * static_cast<uint64_t>(array.shape.dim(0)));
  RETURN_IF_ERROR(array.rows.Read(0, array.shape.dim(0), bytes.data()));
  classes->resize(static_cast<size_t>(array.shape.dim(0)));
  if (!ToInts(array.dtype, bytes.data(), array.shape.dim(0), classes->data())) {
    return NotAllowed(array, bytes.data(), 0, /*floats=*/false);
  }
  const auto [least, greatest] = std::minmax_element(classes->begin(), classes->end());
  if (*least < 0) {
    return absl::DataLossError(absl::StrCat(array.name, ": example ", least - classes->begin(), " has the class ",
                                            *least, ", must be 0 or greater", kNumberClasses));
  }
  spec->classes = int64_t{*greatest} + 1;
  return absl::OkStatus();
}

absl::Status ReadLabels(const Array& array, NumpyDataset::Labels* labels, ExampleSpec* spec) {
  if (!array.is_float()) return ReadClasses(array, &labels->classes, spec);
  if (array.shape.rank() > 2 || array.row_elements() < 1) return WrongArray(array, "[examples] or [examples,outputs]");
  spec->labels_dtype = v1::DT_FLOAT;
  spec->labels_shape = Shape({array.row_elements()});
  ASSIGN_OR_RETURN(labels->targets, AllFloats(array));
  return absl::OkStatus();
}

absl::Status ReadWeights(const Array& array, std::vector<float>* weights) {
  if (array.shape.rank() != 1) return WrongArray(array, "a number an example");
  ASSIGN_OR_RETURN(*weights, AllFloats(array));
  const auto least = std::min_element(weights->begin(), weights->end());
  if (*least >= 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(array.name, ": example ", least - weights->begin(), " has the weight ",
                                          *least, ", must be 0 or greater"));
}

template <typename T>
uint32_t Extend(uint32_t crc32c, const std::vector<T>& values) {
  return ExtendCrc32c(crc32c, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

absl::StatusOr<std::unique_ptr<Dataset>> MakeDataset(FileSystem* fs, Array features, absl::optional<Array> labels,
                                                     absl::optional<Array> weights, const NumpyOptions& options) {
  if (features.shape.rank() < 1 || features.shape.num_elements() == 0) {
    return WrongArray(features, "an array of examples, with one at least");
  }
  ExampleSpec spec;
  spec.features_dtype = IsFloatFeature(features) ? v1::DT_FLOAT : v1::DT_INT32;
  // An example is never a scalar: each number of a vector is an example with one feature.
  ASSIGN_OR_RETURN(spec.features_shape,
                   features.shape.rank() == 1 ? Shape::Create({1}) : Shape::Create(features.shape.dims().subspan(1)));
  NumpyDataset::Labels read;
  read.present = labels.has_value();
  spec.classes = 1;
  if (labels.has_value()) {
    RETURN_IF_ERROR(CheckLength(*labels, features));
    spec.classes = 0;
    RETURN_IF_ERROR(ReadLabels(*labels, &read, &spec));
  }
  if (weights.has_value()) {
    RETURN_IF_ERROR(CheckLength(*weights, features));
    RETURN_IF_ERROR(ReadWeights(*weights, &read.weights));
  }
  ASSIGN_OR_RETURN(const uint32_t rows_crc32c, features.rows.Checksum(fs, options.checksum));
  // The digest includes the type, because the same bytes are different numbers in another type.
  uint32_t crc32c = ExtendCrc32c(StartOfDigest(spec, weights.has_value()), NameOf(features.dtype));
  crc32c = CombineCrc32c(crc32c, rows_crc32c, features.rows.row_bytes() * static_cast<uint64_t>(features.shape.dim(0)));
  crc32c = Extend(Extend(Extend(crc32c, read.classes), read.targets), read.weights);
  auto dataset = std::make_unique<NumpyDataset>(spec, crc32c, std::move(features), std::move(read));
  RETURN_IF_ERROR(dataset->CheckFeatures());
  return dataset;
}

// Returns the number of bytes in a row, at least 1 even if the array is empty.
uint64_t RowBytes(const NpyHeader& header) {
  const int64_t rows = header.shape.rank() > 0 ? header.shape.dim(0) : 1;
  return rows > 0 ? std::max<uint64_t>(1, header.content_bytes() / static_cast<uint64_t>(rows)) : 1;
}

absl::StatusOr<Array> ReadArray(const NpzReader& archive, const std::string& name) {
  if (!archive.Contains(name)) {
    return absl::InvalidArgumentError(absl::StrCat(archive.prefix(), " has no array ", name, ", it has ",
                                                   absl::StrJoin(archive.names(), ", "),
                                                   "; npz { features labels weights } name the arrays"));
  }
  ASSIGN_OR_RETURN(const TensorReader::Entry entry, archive.Describe(name));
  std::string contents(entry.bytes, '\0');
  RETURN_IF_ERROR(archive.ReadInto(name, absl::MakeSpan(&contents[0], contents.size())));
  const uint64_t row_bytes = RowBytes({entry.dtype, entry.shape, 0});
  const std::string full_name = absl::StrCat(archive.prefix(), ": ", name);
  return Array{full_name, entry.dtype, entry.shape, ArrayRows(full_name, std::move(contents), row_bytes)};
}

absl::StatusOr<Array> OpenArray(FileSystem* fs, const std::string& path, uint64_t held_bytes) {
  ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, fs->NewRandomAccessFile(path));
  ASSIGN_OR_RETURN(NpyHeader header, ReadNpyHeader(*file, path));
  ASSIGN_OR_RETURN(ArrayRows rows,
                   ArrayRows::FromFile(path, std::move(file), header.header_bytes, RowBytes(header), held_bytes));
  return Array{path, header.dtype, std::move(header.shape), std::move(rows)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenNpzDataset(FileSystem* fs, const config::v1::InputConfig::Npz& config,
                                                        const NumpyOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<NpzReader> archive, NpzReader::Open(fs, config.file()));
  ASSIGN_OR_RETURN(Array features, ReadArray(*archive, config.features().empty() ? "x" : config.features()));
  absl::optional<Array> labels, weights;
  const std::string label_name = config.labels().empty() ? "y" : config.labels();
  if (archive->Contains(label_name) || !options.labels_optional) {
    ASSIGN_OR_RETURN(labels, ReadArray(*archive, label_name));
  }
  if (!config.weights().empty() && (archive->Contains(config.weights()) || !options.labels_optional)) {
    ASSIGN_OR_RETURN(weights, ReadArray(*archive, config.weights()));
  }
  return MakeDataset(fs, std::move(features), std::move(labels), std::move(weights), options);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenNpyDataset(FileSystem* fs, const config::v1::InputConfig::Npy& config,
                                                        const NumpyOptions& options) {
  ASSIGN_OR_RETURN(Array features, OpenArray(fs, config.features(), options.held_bytes));
  absl::optional<Array> labels, weights;
  if (!config.labels().empty() || !options.labels_optional) {
    ASSIGN_OR_RETURN(labels, OpenArray(fs, config.labels(), std::numeric_limits<uint64_t>::max()));
  }
  if (!config.weights().empty()) {
    ASSIGN_OR_RETURN(weights, OpenArray(fs, config.weights(), std::numeric_limits<uint64_t>::max()));
  }
  return MakeDataset(fs, std::move(features), std::move(labels), std::move(weights), options);
}

}  // namespace lockstep
