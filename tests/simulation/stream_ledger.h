#ifndef LOCKSTEP_TESTS_SIMULATION_STREAM_LEDGER_H_
#define LOCKSTEP_TESTS_SIMULATION_STREAM_LEDGER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/tests/simulation/roles/reference.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {
namespace simulation {

// The values that the steps of a run may have if its workers read input streams. Each version follows from the previous
// one by the contributions that counted, in order. The ledger does not see this order, so it tries every order of the
// batches that workers have computed, until a version has the values that a worker, a reader or a checkpoint shows. An
// order is valid only if each batch counts at most once, and only in the life of its own chief. Under ASYNC, no batch
// of a stream may be left out; under FIRST_ARRIVALS, a contribution must carry the step that it counts for.
class StreamLedger {
 public:
  StreamLedger(const config::v1::RunSpec& config, const RunRules& rules);

  // Called when another chief takes over, starting from `checkpoint` or, if that is null, from the initial values of
  // the run.
  absl::Status Begin(const BundleReader* checkpoint);
  // Called when the chief of the newest life issues this token.
  void OnToken(const v1::Token& token);
  // Called when a worker begins to compute a batch with these values, which may also be the canary's. In `key`, the
  // step is the position in a stream and the slot is the stream.
  absl::Status OnComputing(const SlotKey& key, VariableValues values);
  absl::Status CheckNamed(int64_t step, absl::Span<const train::NamedTensor> values);
  absl::Status CheckCheckpoint(const BundleReader& reader);

 private:
  struct Node {
    int64_t step = 0;
    Reference::State state;
    // Position of the next batch in each stream. Under FIRST_ARRIVALS, discarded batches are not included.
    std::vector<int64_t> positions;
    std::shared_ptr<const Node> before;  // null at step 0
  };
  using NodePtr = std::shared_ptr<const Node>;
  using Address = std::pair<int64_t, int64_t>;  // stream, position
  struct Token {
    std::set<int64_t> steps;         // the steps it carried
    std::set<int64_t> values_steps;  // the steps of the values sent with it
  };
  // A batch that a worker has computed, and the version that the worker used.
  struct Computed {
    Address address;
    NodePtr base;
    std::shared_ptr<const Reference::Gradient> gradient;
  };
  // The time between two starts of a chief.
  struct Life {
    // The newest versions seen. There are several if more than one version fits the values that were seen.
    std::vector<NodePtr> newest;
    std::map<Address, Token> tokens;
    std::vector<Computed> computed;
  };
  using Matches = std::function<bool(const Node&)>;

  // Returns a version at `step` in this life that satisfies `matches`, or null if there is none.
  NodePtr Find(Life* life, int64_t step, const Matches& matches);
  static bool IsSame(const Node& a, const Node& b);
  // Returns the versions that may follow `node`.
  std::vector<NodePtr> Following(const Life& life, const NodePtr& node) const;
  // Appends the versions that may result if the contributions in `chosen` and `missing` further ones count.
  void Choose(const Life& life, const NodePtr& node, int64_t missing, std::vector<int64_t> positions,
              std::vector<const Computed*>* chosen, std::vector<NodePtr>* following) const;
  bool MayCount(const Life& life, const Node& node, const std::vector<int64_t>& positions,
                const Computed& computed) const;
  // Forgets contributions that can no longer count.
  void Prune(Life* life) const;
  // Returns true if the checkpoint may have these positions at this version.
  bool ArePositions(const Life& life, const Node& node, absl::Span<const int64_t> positions) const;
  struct Found {
    NodePtr node;
    std::vector<int64_t> positions;
  };
  absl::StatusOr<Found> FindCheckpoint(const BundleReader& reader);

  const bool is_async_;
  const int64_t wanted_;  // contributions per step
  const Reference reference_;
  const RunChanges::Settings settings_;
  const uint64_t seed_;
  std::vector<Life> lives_;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_STREAM_LEDGER_H_
