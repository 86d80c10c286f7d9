#include "lockstep/worker/data/formats/image_folder.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/worker/data/images/exif_orientation.h"
#include "lockstep/worker/data/images/image_checksums.h"
#include "lockstep/worker/data/images/image_form.h"
#include "lockstep/worker/data/images/image_list.h"
#include "lockstep/worker/data/records/record_format.h"

namespace lockstep {
namespace {

constexpr uint64_t kMaxFileBytes = 256 << 20;
constexpr uint64_t kProgressFiles = 1000;
constexpr int64_t kLoggedDamages = 10;
constexpr char kLabel[] = "label";

// A reader that turns the image files of a folder into examples.
class ImageReader {
 public:
  ImageReader(FileSystem* fs, std::string folder, ImageForm form) : fs_(fs), folder_(std::move(folder)), form_(form) {}

  const ImageForm& form() const { return form_; }
  std::string PathOf(const ImageFile& file) const { return JoinPath(folder_, file.name); }

  // Sets `*turned` to true if an image viewer would rotate or mirror the image, unless `turned` is null.
  //
  // Errors: DataLoss "<path>: <damage>"; errors from the file.
  absl::Status Read(const RandomAccessFile& contents, const ImageFile& file, const ExampleSlot& slot,
                    bool* turned = nullptr) const {
    if (contents.size() > kMaxFileBytes) {
      return absl::DataLossError(
          absl::StrCat(PathOf(file), ": has ", contents.size(), " bytes, more than ", kMaxFileBytes));
    }
    std::string encoded(static_cast<size_t>(contents.size()), '\0');
    RETURN_IF_ERROR(contents.Read(0, encoded.size(), &encoded[0]));
    const absl::Status status = form_.Fill(encoded, slot.features);
    if (!status.ok()) return absl::DataLossError(absl::StrCat(PathOf(file), ": ", status.message()));
    *slot.label = file.label;
    if (turned != nullptr) *turned = ExifOrientation(encoded) != 1;
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> Open(const ImageFile& file) const {
    return fs_->NewRandomAccessFile(PathOf(file));
  }

 private:
  FileSystem* const fs_;
  const std::string folder_;
  const ImageForm form_;
};

// A file that holds an example, and the example's ParsedCrc32c.
struct FoundImage {
  int64_t row;
  uint32_t crc32c;
};

class ImageFolder : public Dataset {
 public:
  ImageFolder(const ExampleSpec& spec, uint32_t crc32c, ImageReader reader, ImageList list,
              std::vector<FoundImage> images)
      : Dataset(spec, static_cast<int64_t>(images.size()), /*has_weights=*/false, crc32c,
                /*has_labels=*/!list.classes.empty()),
        reader_(std::move(reader)),
        list_(std::move(list)),
        images_(std::move(images)) {}

  int64_t rows() const override { return static_cast<int64_t>(list_.files.size()); }

  Row RowAt(int64_t i) const override {
    const auto found = std::lower_bound(images_.begin(), images_.end(), i,
                                        [](const FoundImage& image, int64_t row) { return image.row < row; });
    return {i, found != images_.end() && found->row == i ? found - images_.begin() : -1};
  }

  std::string id_name() const override { return "file"; }
  absl::StatusOr<std::string> ReadId(int64_t i) const override { return list_.files[i].name; }

  void AddPreparation(v1::DataDigest* digest) const override {
    if (list_.classes.empty()) return;
    config::v1::InputConfig::Csv::Prepared* const label = digest->add_prepared();
    label->set_column(kLabel);
    label->set_stddev(1);
    label->set_type(config::v1::InputConfig::Csv::LABEL);
    for (const std::string& name : list_.classes) label->add_category(name);
  }

 private:
  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      const FoundImage& image = images_[indices[i]];
      const ImageFile& file = list_.files[image.row];
      const ExampleSlot slot = SlotOf(spec(), static_cast<int64_t>(i), out);
      ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> contents, reader_.Open(file));
      RETURN_IF_ERROR(reader_.Read(*contents, file, slot));
      if (ParsedCrc32c(spec(), slot) != image.crc32c) {
        return absl::DataLossError(absl::StrCat(reader_.PathOf(file),
                                                ": is no longer the image that was there when "
                                                "the folder was opened"));
      }
    }
    return absl::OkStatus();
  }

  const ImageReader reader_;
  const ImageList list_;
  // In row order.
  const std::vector<FoundImage> images_;
};

// A pass over all files of a list, which returns those that hold an example.
class Survey {
 public:
  Survey(FileSystem* fs, const std::string& folder, const ExampleSpec& spec, const ImageFolderOptions& options)
      : spec_(spec),
        folder_(folder),
        options_(options),
        features_(spec.features_dtype, spec.features_shape),
        labels_(spec.labels_dtype, spec.labels_shape) {
    slot_.features = features_.flat<float>().data();
    slot_.label = labels_.flat<int32_t>().data();
  }

  absl::StatusOr<std::vector<FoundImage>> Run(const ImageReader& reader, const std::vector<ImageFile>& files,
                                              ImageChecksums* checksums) {
    std::vector<FoundImage> images;
    int64_t damaged = 0;
    for (size_t row = 0; row < files.size(); ++row) {
      const absl::StatusOr<uint32_t> crc32c = ChecksumOf(reader, files[row], checksums);
      if (crc32c.ok()) {
        images.push_back({static_cast<int64_t>(row), *crc32c});
      } else if (options_.on_damage == config::v1::InputConfig::FAIL || !absl::IsDataLoss(crc32c.status())) {
        return crc32c.status();
      } else if (++damaged <= kLoggedDamages) {
        LOG(WARNING) << crc32c.status().message() << "; left out";
      }
      const bool at_end = row + 1 == files.size();
      if (options_.checksum.progress && (at_end || row % kProgressFiles == kProgressFiles - 1)) {
        options_.checksum.progress({folder_, row + 1, files.size()});
      }
    }
    if (damaged > 0) {
      LOG(WARNING) << folder_ << ": " << damaged << " damaged images left out, " << images.size() << " good ones";
    }
    if (turned_ > 0) {
      LOG(WARNING) << folder_ << ": " << turned_ << " images have an EXIF orientation, which is not applied; "
                   << "`mogrify -auto-orient` of ImageMagick turns the files";
    }
    return images;
  }

 private:
  absl::StatusOr<uint32_t> ChecksumOf(const ImageReader& reader, const ImageFile& file, ImageChecksums* checksums) {
    ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> contents, reader.Open(file));
    // The key includes the label, because the checksum covers it.
    const std::string key = absl::StrCat(file.label, " ", file.name);
    const absl::optional<uint32_t> known = checksums->Find(key, *contents);
    if (known.has_value()) return *known;
    bool turned = false;
    RETURN_IF_ERROR(reader.Read(*contents, file, slot_, &turned));
    turned_ += turned;
    const uint32_t crc32c = ParsedCrc32c(spec_, slot_);
    checksums->Set(key, *contents, crc32c);
    return crc32c;
  }

  const ExampleSpec& spec_;
  const std::string& folder_;
  const ImageFolderOptions& options_;
  Tensor features_;
  Tensor labels_;
  ExampleSlot slot_;
  // Number of images read whose EXIF orientation is not upright.
  int64_t turned_ = 0;
};

uint32_t DigestOf(const ExampleSpec& spec, const std::vector<FoundImage>& images) {
  uint32_t crc32c = StartOfDigest(spec, /*has_weights=*/false);
  for (const FoundImage& image : images) {
    std::string checksum;
    AppendLittleEndian<uint32_t>(&checksum, image.crc32c);
    crc32c = ExtendCrc32c(crc32c, checksum);
  }
  return crc32c;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenImageFolder(FileSystem* fs, const config::v1::InputConfig::Images& config,
                                                         const ImageFolderOptions& options) {
  ASSIGN_OR_RETURN(ImageForm form, ImageForm::Create(config.form()));
  std::vector<std::string> classes(config.class_name().begin(), config.class_name().end());
  if (classes.empty()) classes = options.train_classes;
  ASSIGN_OR_RETURN(ImageList list, ListImages(fs, config.folder(), classes, options.labels_optional));
  ExampleSpec spec;
  spec.features_shape = form.shape();
  spec.classes = std::max<int64_t>(1, static_cast<int64_t>(list.classes.size()));
  ImageChecksums checksums(fs, options.checksum.directory, config.folder(),
                           StableHash(absl::StrCat(config.folder(), "\n", form.Fingerprint())));
  ImageReader reader(fs, config.folder(), form);
  ASSIGN_OR_RETURN(std::vector<FoundImage> images,
                   Survey(fs, config.folder(), spec, options).Run(reader, list.files, &checksums));
  if (images.empty()) {
    return absl::DataLossError(
        absl::StrCat(config.folder(), ": none of its ", list.files.size(), " images can be read"));
  }
  const absl::Status kept = checksums.Keep();
  if (!kept.ok()) LOG(WARNING) << "the checksums of " << config.folder() << " are not kept: " << kept;
  const uint32_t crc32c = DigestOf(spec, images);
  return std::make_unique<ImageFolder>(spec, crc32c, std::move(reader), std::move(list), std::move(images));
}

}  // namespace lockstep
