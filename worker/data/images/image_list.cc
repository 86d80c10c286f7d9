#include "lockstep/worker/data/images/image_list.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/file_pattern.h"

namespace lockstep {
namespace {

// Files in unsupported formats yield no examples, but are listed, because silently ignoring them would lose data.
constexpr absl::string_view kSuffixes[] = {".png", ".jpg",  ".jpeg", ".jpe",  ".jfif", ".gif",
                                           ".bmp", ".webp", ".tif",  ".tiff", ".heic", ".avif"};
// Maximum number of classes named in an error.
constexpr size_t kShownClasses = 10;

bool IsHidden(absl::string_view name) { return absl::StartsWith(name, "."); }

bool IsImageName(absl::string_view name) {
  return std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                     [name](absl::string_view suffix) { return absl::EndsWithIgnoreCase(name, suffix); });
}

bool IsFolder(FileSystem* fs, const std::string& path) { return fs->ListDirectory(path).ok(); }

absl::StatusOr<std::vector<std::string>> List(FileSystem* fs, const std::string& folder) {
  absl::StatusOr<std::vector<std::string>> names = fs->ListDirectory(folder);
  if (!absl::IsNotFound(names.status())) return names;
  return absl::NotFoundError(absl::StrCat(names.status().message(), WhyAbsent(fs, folder)));
}

std::string Shown(absl::Span<const std::string> classes) {
  return absl::StrCat(absl::StrJoin(classes.subspan(0, kShownClasses), ", "),
                      classes.size() > kShownClasses ? ", ..." : "");
}

// Adds the images of one folder. `prefix` is the name of the class folder followed by a slash, or empty.
absl::Status AddImages(FileSystem* fs, const std::string& folder, const std::string& prefix, int32_t label,
                       std::vector<ImageFile>* files) {
  const std::string path = JoinPath(folder, prefix);
  ASSIGN_OR_RETURN(const std::vector<std::string> names, fs->ListDirectory(prefix.empty() ? folder : path));
  size_t others = 0;
  for (const std::string& name : names) {
    if (IsHidden(name)) continue;
    if (IsImageName(name)) {
      files->push_back({absl::StrCat(prefix, name), label});
    } else if (!prefix.empty() && IsFolder(fs, JoinPath(path, name))) {
      return absl::InvalidArgumentError(absl::StrCat(path, name, " is a folder, expected only images in ", path,
                                                     ": each class has one folder without others in it"));
    } else {
      ++others;
    }
  }
  if (others > 0) LOG(INFO) << path << ": " << others << " files without an image's name left out";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListClasses(FileSystem* fs, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, List(fs, folder));
  std::vector<std::string> classes;
  for (const std::string& name : names) {
    if (!IsHidden(name) && !IsImageName(name) && IsFolder(fs, JoinPath(folder, name))) classes.push_back(name);
  }
  std::sort(classes.begin(), classes.end());
  return classes;
}

absl::StatusOr<ImageList> ListImages(FileSystem* fs, const std::string& folder, absl::Span<const std::string> classes,
                                     bool labels_optional) {
  ASSIGN_OR_RETURN(const std::vector<std::string> folders, ListClasses(fs, folder));
  ImageList list;
  if (folders.empty()) {
    RETURN_IF_ERROR(AddImages(fs, folder, "", 0, &list.files));
    if (labels_optional && !list.files.empty()) return list;
    return absl::NotFoundError(
        absl::StrCat(folder, list.files.empty() ? " has no images" : " has images outside of a folder",
                     ", expected a folder for each class, with PNG or JPEG files: ", folder, "/CLASS/IMAGE.jpg"));
  }
  list.classes.assign(classes.begin(), classes.end());
  if (classes.empty()) list.classes = folders;
  for (const std::string& name : folders) {
    if (std::find(list.classes.begin(), list.classes.end(), name) == list.classes.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(JoinPath(folder, name), " is the folder of no class; the classes are ", Shown(list.classes)));
    }
  }
  std::vector<std::string> empty;
  for (size_t i = 0; i < list.classes.size(); ++i) {
    const std::string& name = list.classes[i];
    if (!std::binary_search(folders.begin(), folders.end(), name)) {
      LOG(WARNING) << folder << " has no folder " << name << ": no images of that class";
      continue;
    }
    const size_t before = list.files.size();
    RETURN_IF_ERROR(AddImages(fs, folder, absl::StrCat(name, "/"), static_cast<int32_t>(i), &list.files));
    if (classes.empty() && list.files.size() == before) empty.push_back(name);
  }
  if (!list.files.empty() && !empty.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, " has folders without images: ", Shown(empty),
                     "; remove them, or list the classes in images.class_name if they are classes"));
  }
  if (!list.files.empty()) return list;
  return absl::NotFoundError(absl::StrCat(folder, " has no images in its ", folders.size(), " folders"));
}

}  // namespace lockstep
