#ifndef LOCKSTEP_COMMON_CLIENT_VALUES_RECEIVED_VALUES_H_
#define LOCKSTEP_COMMON_CLIENT_VALUES_RECEIVED_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/client/values/variable_buffers.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/parameter_layout.h"

namespace lockstep {

// The variables' values as a worker receives them, in pieces: the newest complete version and the one that is arriving
// (proto/lockstep/v1/chief.proto, StepReply.value). Allocates memory per variable when its first piece arrives, and
// holds none for a replaced version. Not thread-safe.
class ReceivedValues {
 public:
  // `layout` and `buffers`, whose elements are floats, must outlive this. Values of trainable variables travel as
  // `type`, all others as float32.
  ReceivedValues(const ParameterLayout* layout, v1::DataType type, VariableBuffers* buffers);

  // Stores a part of the version of `step`. InvalidArgument if it does not fit the model.
  absl::Status Receive(int64_t step, const StepPiece& piece);

  // Returns the address of each variable of the version of `step`, unchanged until Release or the next Take.
  // InvalidArgument if the version is incomplete or a newer one has replaced it.
  absl::StatusOr<const std::vector<const float*>*> Take(int64_t step);
  // Releases the values that Take returned.
  void Release() { taken_ = false; }

 private:
  struct Version {
    // Indexed by variable; empty before the first piece.
    std::vector<SentBuffer> memory;
    std::vector<const float*> variables;
    int64_t step = -1;
    int64_t received_elements = 0;
  };

  absl::Status CheckPiece(const StepPiece& piece) const;
  // A piece whose variable was set since it was sent arrives once more.
  bool complete(const Version& version) const { return version.received_elements >= total_elements_; }
  Version& back() { return versions_[1 - front_]; }
  // Returns the address for these elements of the arriving version.
  float* Place(int64_t variable, int64_t offset, int64_t elements);
  // Replaces the front version, which is no longer read, with the version that has arrived.
  void Flip();

  const ParameterLayout& layout_;
  const v1::DataType type_;
  VariableBuffers& buffers_;
  int64_t total_elements_ = 0;
  Version versions_[2];
  // Index of the complete version; the other one is arriving.
  int front_ = 0;
  // True while the worker computes with the front version.
  bool taken_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_VALUES_RECEIVED_VALUES_H_
