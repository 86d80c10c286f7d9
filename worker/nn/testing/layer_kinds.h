#ifndef LOCKSTEP_WORKER_NN_TESTING_LAYER_KINDS_H_
#define LOCKSTEP_WORKER_NN_TESTING_LAYER_KINDS_H_

#include <set>
#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "lockstep/config/v1/model.pb.h"

namespace lockstep {

// Names of the cases of Layer.kind, such as "conv2d", and of the values of Activation, such as "RELU": both all names
// in the proto and those that a set of models uses. A test compares the two, so that it fails if a kind is not covered.

inline const google::protobuf::OneofDescriptor* LayerKindOneof() {
  return config::v1::Layer::descriptor()->FindOneofByName("kind");
}

// Returns the names of all kinds of layers.
inline std::set<std::string> AllLayerKinds() {
  std::set<std::string> kinds;
  const google::protobuf::OneofDescriptor* const oneof = LayerKindOneof();
  for (int i = 0; i < oneof->field_count(); ++i) kinds.insert(oneof->field(i)->name());
  return kinds;
}

// Adds the kinds of the model's layers.
inline void AddLayerKinds(const config::v1::ModelConfig& model, std::set<std::string>* kinds) {
  for (const config::v1::Layer& layer : model.layer()) {
    const auto* const field = layer.GetReflection()->GetOneofFieldDescriptor(layer, LayerKindOneof());
    if (field != nullptr) kinds->insert(field->name());
  }
}

// Returns the names of all activations.
inline std::set<std::string> AllActivations() {
  std::set<std::string> activations;
  const google::protobuf::EnumDescriptor* const type = config::v1::Activation_descriptor();
  for (int i = 0; i < type->value_count(); ++i) activations.insert(type->value(i)->name());
  return activations;
}

// Adds the activations of the model's layers. A layer that sets none has NONE.
inline void AddActivations(const config::v1::ModelConfig& model, std::set<std::string>* activations) {
  for (const config::v1::Layer& layer : model.layer()) {
    const auto* const kind = layer.GetReflection()->GetOneofFieldDescriptor(layer, LayerKindOneof());
    if (kind == nullptr) continue;
    const google::protobuf::Message& options = layer.GetReflection()->GetMessage(layer, kind);
    for (int i = 0; i < options.GetDescriptor()->field_count(); ++i) {
      const google::protobuf::FieldDescriptor* const field = options.GetDescriptor()->field(i);
      if (field->enum_type() != config::v1::Activation_descriptor()) continue;
      activations->insert(options.GetReflection()->GetEnum(options, field)->name());
    }
  }
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_TESTING_LAYER_KINDS_H_
