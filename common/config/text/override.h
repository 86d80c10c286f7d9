#ifndef LOCKSTEP_COMMON_CONFIG_TEXT_OVERRIDE_H_
#define LOCKSTEP_COMMON_CONFIG_TEXT_OVERRIDE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace lockstep {

// Sets one field of a configuration from "path=value", as a flag gives it:
//   training.steps=500                        a number, true/false, an enum's name, a string without quotes
//   optimizer.adam.beta1=0.8                  missing blocks are created; a field of a oneof replaces the others
//   optimizer={adam {} learning_rate { initial: 0.1 }}   a whole block in text format, replaced
//   model.layer[2].dense.units=64             an element; the index one past the end appends
//   evaluation.metric[]=auc                   appends
//   optimizer.learning_rate.piecewise.boundaries=10,30   a whole list of scalars, replaced; "" empties it
//   model.parameter[depth]=3                  an entry of a map, also written model.parameter.depth=3
// InvalidArgument is one line that names the field, the type it takes and an example; `message` is then unchanged.
absl::Status ApplyOverride(absl::string_view override, google::protobuf::Message* message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_TEXT_OVERRIDE_H_
