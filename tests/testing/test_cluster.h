#ifndef LOCKSTEP_TESTS_TESTING_TEST_CLUSTER_H_
#define LOCKSTEP_TESTS_TESTING_TEST_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/client/chief_client.h"
#include "common/io/file_system.h"
#include "common/io/memory_file_system.h"
#include "proto/config.pb.h"
#include "server/chief/chief.h"
#include "server/rpc/chief_server.h"
#include "worker/session/training_worker.h"

namespace lockstep {

// A small configuration with batch norm, dropout and Adam over synthetic data, which trains in milliseconds a step.
RunConfig SmallRunConfig(int64_t steps, int64_t slots);

// A chief with its gRPC server on port 0, and workers in threads, in this process. Checkpoints lie in a memory
// file system that outlives a chief, so that a chief can be killed and started again. For one thread.
class TestCluster {
 public:
  struct Options {
    RunConfig config;
    Clock* clock = Clock::Real();
    // Where workers read data.
    FileSystem* data = FileSystem::Real();
    // No sockets: workers call the chief directly.
    bool local = false;
    bool with_logdir = true;
    bool share_memory = false;
    absl::Duration housekeeping_period = absl::Milliseconds(20);
    // Called by a worker before it reads the batch of a slot of this step; may block.
    std::function<void(int64_t step)> before_batch;
    ChiefServer::Options server;
  };

  explicit TestCluster(Options options);
  // Stops everything.
  ~TestCluster();

  // Starts the chief, on the port of the one before.
  absl::Status StartChief();
  // Ends the chief without a save or a goodbye, as kill -9 does.
  void KillChief();
  Chief* chief() const { return chief_.get(); }

  // Returns its index.
  int StartWorker(int compute_threads = 1);
  // Cancels a worker without a goodbye and waits for its thread.
  void KillWorker(int index);

  // Waits until a worker has ended by itself and returns its status.
  absl::Status JoinWorker(int index);

  // Blocks until the chief's run has ended.
  absl::Status Wait();
  // The statuses with which the workers ended, after Wait.
  std::vector<absl::Status> JoinWorkers();

  // Of the newest checkpoint.
  absl::StatusOr<std::string> Digest();

  MemoryFileSystem* fs() { return &fs_; }
  const std::string& address() const { return address_; }
  // A client of the chief as it is now.
  std::unique_ptr<ChiefClient> NewClient();

  static constexpr char kLogdir[] = "/logdir";

 private:
  struct Worker {
    std::unique_ptr<ChiefClient> client;
    std::unique_ptr<TrainingWorker> worker;
    absl::Status status;
    std::thread thread;
  };

  const Options options_;
  MemoryFileSystem fs_;
  std::string address_;
  std::unique_ptr<Chief> chief_;
  std::unique_ptr<ChiefServer> server_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// Trains the configuration to its end in a fresh cluster with `workers` workers and returns the digest.
absl::StatusOr<std::string> TrainAndDigest(const TestCluster::Options& options, int workers);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_TEST_CLUSTER_H_
