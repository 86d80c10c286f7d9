#ifndef LOCKSTEP_CLI_GUESS_IMAGE_GUESS_H_
#define LOCKSTEP_CLI_GUESS_IMAGE_GUESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// With fewer images, no split "test" is made of them: a part could be empty.
inline constexpr int64_t kLeastImagesToDivide = 10;

// A folder's images, and the classes of the training images.
struct ImageGuess {
  // The folder with a subfolder for each class, and a folder with other examples, which is empty if there is none.
  std::string train;
  std::string test;
  std::vector<std::string> classes;
  int64_t images = 0;
};

// Guesses what `folder` contains: a subfolder for each class, or a folder "train" that has them and optionally one
// called test, val, valid or validation. Returns errors from ListImages.
absl::StatusOr<ImageGuess> GuessImages(FileSystem* fs, const std::string& folder);

struct ImageConfiguration {
  // The names of the folders in the configuration. `test` may be empty.
  std::string train;
  std::string test;
  int64_t classes = 10;
  // Number of training images, or 0 if unknown.
  int64_t images = 0;
  // Height and width to which images are resized.
  int64_t image_size = 64;
  // A name from slim::nets::NetNames, or empty for a small convolutional network, and the factor by which its number of
  // filters is multiplied.
  std::string net;
  double width = 1;
};

// Returns a complete configuration, in text format with comments. Returns errors from NetByName, and InvalidArgument if
// image_size is too small.
absl::StatusOr<std::string> ConfigurationFor(const ImageConfiguration& options);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_GUESS_IMAGE_GUESS_H_
