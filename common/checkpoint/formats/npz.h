#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMATS_NPZ_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMATS_NPZ_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/checkpoint/formats/npy.h"
#include "lockstep/common/checkpoint/formats/zip_reader.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Reader of the output of numpy.savez and savez_compressed: a ZIP archive with a member NAME.npy for each array.
class NpzReader : public TensorReader {
 public:
  // Errors: those of ZipReader::Open; DataLoss for a member that is not a .npy file or whose length contradicts its
  // header. An array that ParseNpyHeader does not support can be neither described nor read.
  static absl::StatusOr<std::unique_ptr<NpzReader>> Open(FileSystem* fs, const std::string& path);

  const std::string& prefix() const override { return zip_->path(); }
  std::vector<std::string> names() const override;
  bool Contains(absl::string_view name) const override;
  absl::StatusOr<Entry> Describe(absl::string_view name) const override;
  absl::Status ReadInto(absl::string_view name, absl::Span<char> out) const override;

 private:
  struct Array {
    const ZipReader::Member* member = nullptr;
    absl::StatusOr<NpyHeader> header;
  };

  explicit NpzReader(std::unique_ptr<ZipReader> zip) : zip_(std::move(zip)) {}
  // Returns NotFound for an unknown name, and the error of its header for an array whose header was not accepted.
  absl::StatusOr<const Array*> Find(absl::string_view name) const;

  const std::unique_ptr<ZipReader> zip_;
  std::map<std::string, Array> arrays_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_NPZ_H_
