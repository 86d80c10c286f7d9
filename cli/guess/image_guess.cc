#include "lockstep/cli/guess/image_guess.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/slim/nets/nets.h"
#include "lockstep/worker/data/images/image_list.h"

namespace lockstep {
namespace {

constexpr int64_t kBatch = 32;
constexpr int64_t kSlots = 2;
constexpr int64_t kEpochs = 20;
constexpr int64_t kLeastSteps = 200, kMostSteps = 20000;
constexpr int64_t kUnknownSteps = 10000;
constexpr double kTestFraction = 0.2;
// Minimum length of a run in time constants of batch norm's moving averages. After 10, e^-10 of their initial values is
// left.
constexpr double kTimeConstants = 10;
// The small network halves the image size three times.
constexpr int64_t kLeastSize = 8;

std::string Quoted(absl::string_view text) { return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\""); }

// Formats a message on one line.
std::string OneLine(const google::protobuf::Message& message) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(message, &text);
  return std::string(absl::StripSuffix(text, " "));
}

std::string SmallModel(int64_t classes) {
  std::string text;
  for (int i = 1; i <= 3; ++i) {
    absl::StrAppend(&text, "  layer { name: \"conv", i, "\" conv2d { filters: ", 8 << i,
                    " kernel: 3 no_bias: true } }\n", "  layer { name: \"norm", i,
                    "\" batch_norm { decay: 0.95 activation: RELU } }\n", "  layer { name: \"pool", i,
                    "\" max_pool { window: 2 } }\n");
  }
  return absl::StrCat(text, "  layer { name: \"mean\" global_average_pool {} }\n",
                      "  layer { name: \"drop\" dropout { rate: 0.2 } }\n",
                      "  layer { name: \"logits\" dense { units: ", classes, " } }\n",
                      "  loss { softmax_cross_entropy {} }\n", "  regularizer { variables: \"kernel$\" l2: 0.0001 }\n");
}

int64_t StepsFor(const ImageConfiguration& options) {
  if (options.images == 0) return kUnknownSteps;
  const double share = options.test.empty() ? 1 - kTestFraction : 1;
  const auto images = static_cast<int64_t>(share * static_cast<double>(options.images));
  return std::min(kMostSteps, std::max(kLeastSteps, kEpochs * images / (kBatch * kSlots)));
}

absl::StatusOr<std::string> NetText(const ImageConfiguration& options) {
  train::slim::nets::NetOptions net;
  net.classes = options.classes;
  net.image_size = options.image_size;
  net.width = options.width;
  ASSIGN_OR_RETURN(config::v1::ModelConfig model, train::slim::nets::NetByName(options.net, net));
  // The originals' decays are for long runs. A short one would be evaluated with the initial values of the averages.
  const auto decay = static_cast<float>(1 - kTimeConstants / static_cast<double>(StepsFor(options)));
  for (auto& layer : *model.mutable_layer()) {
    if (layer.has_batch_norm() && layer.batch_norm().decay() > decay) layer.mutable_batch_norm()->set_decay(decay);
  }
  std::string text;
  for (const auto& layer : model.layer()) absl::StrAppend(&text, "  layer { ", OneLine(layer), " }\n");
  for (const auto& loss : model.loss()) absl::StrAppend(&text, "  loss { ", OneLine(loss), " }\n");
  for (const auto& regularizer : model.regularizer())
    absl::StrAppend(&text, "  regularizer { ", OneLine(regularizer), " }\n");
  return text;
}

std::string SplitText(const char* name, const std::string& folder, int64_t size) {
  return absl::StrCat("  split {\n    name: \"", name, "\"\n    images {\n      folder: ", Quoted(folder),
                      "\n      form { height: ", size, " width: ", size, " fit: CROP }\n    }\n  }\n");
}

}  // namespace

absl::StatusOr<ImageGuess> GuessImages(FileSystem* fs, const std::string& folder) {
  ImageGuess guess;
  guess.train = folder;
  ASSIGN_OR_RETURN(const std::vector<std::string> folders, ListClasses(fs, folder));
  if (std::binary_search(folders.begin(), folders.end(), "train")) {
    guess.train = JoinPath(folder, "train");
    for (const char* const name : {"test", "val", "valid", "validation"}) {
      if (guess.test.empty() && std::binary_search(folders.begin(), folders.end(), name)) {
        guess.test = JoinPath(folder, name);
      }
    }
  }
  ASSIGN_OR_RETURN(const ImageList list, ListImages(fs, guess.train, {}, /*labels_optional=*/false));
  guess.classes = list.classes;
  guess.images = static_cast<int64_t>(list.files.size());
  return guess;
}

absl::StatusOr<std::string> ConfigurationFor(const ImageConfiguration& options) {
  if (options.net.empty() && options.image_size < kLeastSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("images of ", options.image_size, " pixels are too small, must have ", kLeastSize, " or more"));
  }
  std::string model = SmallModel(options.classes);
  if (!options.net.empty()) {
    ASSIGN_OR_RETURN(model, NetText(options));
  }
  const int64_t steps = StepsFor(options);
  std::string test;
  if (!options.test.empty()) {
    test = SplitText("test", options.test, options.image_size);
  } else if (options.images >= kLeastImagesToDivide) {
    test = absl::StrCat("  # A fifth of the images, drawn from the seed, is the split \"test\".\n  test_fraction: ",
                        kTestFraction, "\n");
  }
  return absl::StrCat(
      "# proto-file: lockstep/config/v1/run_spec.proto\n# proto-message: lockstep.config.v1.RunSpec\n#\n",
      "# Made by `lockstep new`. Every field is described in proto/lockstep/config/v1/*.proto.\n", "model {\n", model,
      "}\n\ninput {\n  # One folder for each class, with PNG and JPEG files.\n",
      SplitText("train", options.train, options.image_size), test,
      "  # Examples of one slot; a step has replicas_to_aggregate slots.\n  batch_size: ", kBatch,
      "\n  # From [0, 1] to [-1, 1].\n  normalization { mean: 0.5 stddev: 0.5 }\n  augmentation { flip: true "
      "crop_padding: ",
      std::max<int64_t>(1, options.image_size / 16), " }\n}\n\n",
      "optimizer {\n  momentum { momentum: 0.9 nesterov: true }\n  learning_rate {\n    initial: 0.05\n",
      "    warmup_steps: ", steps / 20, "\n    cosine { decay_steps: ", steps, " alpha: 0.001 }\n  }\n}\n\n",
      "training {\n  steps: ", steps, "\n  replicas_to_aggregate: ", kSlots, "\n  seed: 1\n}\n",
      test.empty() ? "" : "\nevaluation { split: \"test\" metric: \"accuracy\" metric: \"mean_loss\" }\n");
}

}  // namespace lockstep
