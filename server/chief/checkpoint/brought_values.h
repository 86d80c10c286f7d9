#ifndef LOCKSTEP_SERVER_CHIEF_CHECKPOINT_BROUGHT_VALUES_H_
#define LOCKSTEP_SERVER_CHIEF_CHECKPOINT_BROUGHT_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/tensor.pb.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// The initial values that a worker brings for a new run (SetInitialValues in proto/lockstep/v1/chief.proto). Holds the
// values of one worker at a time. Pure: the caller passes the time, and draws the ids.
//
//   state      Begin by its worker  Begin by others  Add        Add with `end`  Take   Expire, unused for kExpiry
//   empty      receiving            receiving        Aborted    Aborted         -      -
//   receiving  unchanged            Unavailable      unchanged  whole           -      empty
//   whole      unchanged            Unavailable      unchanged  unchanged       empty  empty
//
// An Add that returns InvalidArgument drops the values.
class BroughtValues {
 public:
  static constexpr absl::Duration kExpiry = absl::Seconds(10);

  // Returns Unavailable if another worker is bringing values. Counts as a call of the worker that brings them.
  absl::Status CheckFree(const v1::OpenSessionRequest& request, const std::string& peer, absl::Time now);
  // Returns the id for Add. Returns 0 if the request brings no values, or if its values are whole. The request's model
  // must be valid. `peer` is the identity that the caller has proved; only it may add values. `fresh_id` is not 0 if
  // the request brings values.
  absl::StatusOr<uint64_t> Begin(const v1::OpenSessionRequest& request, const std::string& peer, uint64_t fresh_id,
                                 absl::Time now);
  // Adds the pieces, except those that were added before. The errors are those of SetInitialValues.
  absl::Status Add(const v1::SetInitialValuesRequest& request, const std::string& peer, absl::Time now);

  struct Whole {
    std::string digest;
    // The worker and its host, for display.
    std::string worker;
    std::vector<AssignedValue> values;
  };
  // Returns the values if they are whole, and holds none afterwards.
  absl::optional<Whole> Take();
  // Drops values for which no call has come for kExpiry.
  void Expire(absl::Time now);

 private:
  struct Held {
    uint64_t id = 0;
    std::string worker;
    uint64_t incarnation = 0;
    std::string peer;
    std::string digest;
    // The worker and its host, for display.
    std::string identity;
    absl::Time last_used;
    // The model's variables in the byte order of their names. places[i] is the place of the model's variable i.
    std::vector<v1::VariableSpec> variables;
    std::vector<size_t> places;
    // The values so far. The last one belongs to the variable at `place`, and has `received` of its bytes.
    std::vector<AssignedValue> values;
    size_t place = 0;
    size_t received = 0;
    VariablesDigest hash;
    bool whole = false;
  };

  static Held NewHeld(const v1::OpenSessionRequest& request, const std::string& peer, uint64_t id);
  // Adds what is new. Errors: InvalidArgument.
  static absl::Status AddTo(Held* held, const v1::SetInitialValuesRequest& request);
  static absl::Status AddPiece(Held* held, const v1::TensorPiece& piece);
  static absl::Status BeginVariable(Held* held, size_t place);
  static absl::Status CheckComplete(const Held& held);

  absl::optional<Held> held_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHECKPOINT_BROUGHT_VALUES_H_
