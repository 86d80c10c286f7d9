#ifndef LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_TRAINING_EXCHANGE_H_
#define LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_TRAINING_EXCHANGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/tests/benchmark/exchange/lockstep_session.h"

namespace lockstep {
namespace benchmark {

// Trains a network with ReLU layers on 784-pixel images of 10 classes, with plain SGD and softmax cross-entropy.
struct TrainingSpec {
  // Units of the hidden layers. If empty, the model is softmax regression.
  std::vector<int64_t> hidden;
  // Number of examples that each worker contributes to a step.
  int64_t batch = 64;
  // IDX files written by WriteImages.
  std::string images;
  std::string labels;
  // If true, the worker digests every gradient, as it does for tokens that request digests.
  bool digests = false;
  // AuditConfig.fraction. If absent, nothing is audited.
  absl::optional<double> audit;
  // TrainingConfig.record_order. Needs a logdir, and another policy than DETERMINISTIC.
  bool record_order = false;
  Follower follower = Follower::kNone;
  // FIRST_ARRIVALS uses the defaults of SyncReplicasOptimizer: as many total replicas and initial tokens as workers.
  config::v1::TrainingConfig::PolicyCase policy = config::v1::TrainingConfig::POLICY_NOT_SET;
};

constexpr int64_t kPixels = 784;
constexpr int64_t kClasses = 10;

// Writes `count` random images and labels, gzipped like MNIST's, to directory/images and directory/labels.
void WriteImages(const std::string& directory, int count);

// Returns the run's configuration: SGD, no end, no checkpoints.
config::v1::RunSpec TrainingConfig(const TrainingSpec& spec, int slots);

// The following exchanges ignore ExchangeSpec::model.
//
// A chief with a gRPC server, and workers that compute one slot each. Under ASYNC, ExchangeWorker::Step counts the
// worker's own contributions, each of which makes a step of the run.
Exchange TrainingExchange(const TrainingSpec& spec);
// A chief and one worker in one process, without a socket.
Exchange InProcessExchange(const TrainingSpec& spec);
// The arithmetic of InProcessExchange as a plain loop over Eigen matrices: forward, cross-entropy, backward, SGD. The
// batches are prepared in memory.
Exchange EigenExchange(const TrainingSpec& spec);

// Returns a server that does nothing, for workers that need none.
absl::StatusOr<std::unique_ptr<ExchangeServer>> ServeNothing(const ExchangeSpec& spec);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_TRAINING_EXCHANGE_H_
