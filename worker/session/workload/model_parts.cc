#include "lockstep/worker/session/workload/model_parts.h"

#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/worker/data/images/decode_image.h"

namespace lockstep {
namespace {

// Serializes a message. Equal messages have the same bytes.
std::string Bytes(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  CHECK(message.SerializeToCodedStream(&coded));
  coded.Trim();
  return bytes;
}

bool DecodesImages(const config::v1::InputConfig& input) {
  return absl::c_any_of(input.split(), [](const config::v1::InputConfig::Split& split) {
    return split.name() == "train" && (split.has_images() || split.tfrecord().has_image());
  });
}

}  // namespace

std::vector<v1::NamedDigest> ModelParts(const config::v1::RunSpec& config, const Model& model) {
  std::vector<v1::NamedDigest> parts;
  const auto add = [&](const std::string& name, const std::string& content) {
    v1::NamedDigest& part = parts.emplace_back();
    part.set_name(name);
    part.set_digest(StableHash(content));
  };
  for (const Model::Part& part : model.Fingerprint()) add(part.name, part.content);
  if (!config.model().registered().empty()) {
    config::v1::ModelConfig own;
    own.set_registered(config.model().registered());
    *own.mutable_parameter() = config.model().parameter();
    add(absl::StrCat("model ", own.registered()), Bytes(own));
  }
  config::v1::InputConfig input = config.input();
  input.clear_split();  // the data's digest covers it
  add("input", Bytes(input));
  if (DecodesImages(config.input())) add(absl::StrCat("image decoder ", ImageDecoderVersion()), "");
  config::v1::TrainingConfig training;
  training.set_seed(config.training().seed());
  training.set_replicas_to_aggregate(config.training().replicas_to_aggregate());
  add("training", Bytes(training));
  if (ReadsStreams(config.training())) add("input streams", "");
  config::v1::OptimizerConfig optimizer;
  *optimizer.mutable_multipliers() = config.optimizer().multipliers();
  if (config.optimizer().has_clip()) *optimizer.mutable_clip() = config.optimizer().clip();
  if (optimizer.clip().mean_by_global_norm() != 0) {  // the chief applies it
    optimizer.mutable_clip()->clear_mean_by_global_norm();
    if (optimizer.clip().ByteSizeLong() == 0) optimizer.clear_clip();
  }
  add("multipliers and clips", Bytes(optimizer));
  add("compression", Bytes(config.compression()));
  return parts;
}

}  // namespace lockstep
