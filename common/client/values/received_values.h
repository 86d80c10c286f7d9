#ifndef LOCKSTEP_COMMON_CLIENT_VALUES_RECEIVED_VALUES_H_
#define LOCKSTEP_COMMON_CLIENT_VALUES_RECEIVED_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/client/values/sent_buffer.h"
#include "lockstep/common/client/values/variable_buffers.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/parameter_layout.h"

namespace lockstep {

// The variables' values as a worker receives them, in pieces: the newest complete version, and the one that is coming
// in (proto/lockstep/v1/chief.proto, StepReply.value). Holds memory of what has arrived, variable by variable, and of a
// version that a newer one has replaced none. For one thread.
class ReceivedValues {
 public:
  // `layout` and `buffers`, whose elements are floats, must outlive this. Values of trainable variables travel as
  // `type`, all others as float32.
  ReceivedValues(const ParameterLayout* layout, v1::DataType type, VariableBuffers* buffers);

  // Part of the version of `step`. InvalidArgument when it is no part of any.
  absl::Status Receive(int64_t step, const StepPiece& piece);

  // Where each variable of the version of `step` lies, unchanged until Release or the next Take. InvalidArgument when
  // it has not arrived completely, or a newer one has taken its place.
  absl::StatusOr<const std::vector<const float*>*> Take(int64_t step);
  // Nobody reads what Take has returned any more.
  void Release() { taken_ = false; }

 private:
  struct Version {
    // By variable; none before the first piece.
    std::vector<SentBuffer> memory;
    std::vector<const float*> variables;
    int64_t step = -1;
    int64_t received_elements = 0;
  };

  absl::Status CheckPiece(const StepPiece& piece) const;
  bool complete(const Version& version) const { return version.received_elements == total_elements_; }
  Version& back() { return versions_[1 - front_]; }
  // Where these elements of the version that is coming in are to be put.
  float* Place(int64_t variable, int64_t offset, int64_t elements);
  // The version that has come in takes the place of the other one, which nobody reads any more.
  void Flip();

  const ParameterLayout& layout_;
  const v1::DataType type_;
  VariableBuffers& buffers_;
  int64_t total_elements_ = 0;
  Version versions_[2];
  // The complete version; the other one is coming in.
  int front_ = 0;
  // The worker computes with the front version.
  bool taken_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_VALUES_RECEIVED_VALUES_H_
