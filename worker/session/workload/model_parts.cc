#include "lockstep/worker/session/workload/model_parts.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "lockstep/common/base/philox.h"

namespace lockstep {
namespace {

// The same bytes for equal messages.
std::string Bytes(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  CHECK(message.SerializeToCodedStream(&coded));
  coded.Trim();
  return bytes;
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
  input.clear_split();  // the data's digest
  add("input", Bytes(input));
  config::v1::TrainingConfig training;
  training.set_seed(config.training().seed());
  training.set_replicas_to_aggregate(config.training().replicas_to_aggregate());
  add("training", Bytes(training));
  config::v1::OptimizerConfig optimizer;
  *optimizer.mutable_multipliers() = config.optimizer().multipliers();
  if (config.optimizer().has_clip()) *optimizer.mutable_clip() = config.optimizer().clip();
  add("multipliers and clips", Bytes(optimizer));
  add("compression", Bytes(config.compression()));
  return parts;
}

}  // namespace lockstep
