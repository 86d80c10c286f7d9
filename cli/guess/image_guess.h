#ifndef LOCKSTEP_CLI_GUESS_IMAGE_GUESS_H_
#define LOCKSTEP_CLI_GUESS_IMAGE_GUESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The images of a folder, and the classes of the training images.
struct ImageGuess {
  // The folder that has a folder for each class, and one with other examples; empty if there is none.
  std::string train;
  std::string test;
  std::vector<std::string> classes;
  int64_t images = 0;
};

// `folder` has a folder for each class, or a folder "train" that has them and perhaps one called test, val, valid or
// validation. Errors: those of ListImages.
absl::StatusOr<ImageGuess> GuessImages(FileSystem* fs, const std::string& folder);

struct ImageConfiguration {
  // The names of `train` and `test` in the configuration; `test` may be empty.
  std::string train;
  std::string test;
  int64_t classes = 10;
  // Number of training images; 0 if it is unknown.
  int64_t images = 0;
  // Height and width that images get.
  int64_t image_size = 64;
  // A name of slim::nets::NetNames, or empty for a small convolutional network; and the factor of its filters.
  std::string net;
  double width = 1;
};

// Returns a complete configuration, in text format with comments. Errors: those of NetByName; InvalidArgument for an
// image_size that is too small.
absl::StatusOr<std::string> ConfigurationFor(const ImageConfiguration& options);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_GUESS_IMAGE_GUESS_H_
