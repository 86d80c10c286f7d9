#ifndef LOCKSTEP_TESTS_TESTING_TEST_CLUSTER_H_
#define LOCKSTEP_TESTS_TESTING_TEST_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/transport/grpc_chief_client.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/rpc/chief_server.h"
#include "lockstep/worker/session/training_worker.h"

namespace lockstep {

// Returns a small configuration with batch norm, dropout and Adam over synthetic data. A step takes milliseconds.
config::v1::RunSpec SmallRunSpec(int64_t steps, int64_t slots);

// A chief with its gRPC server on port 0, and workers in threads, all in this process. Checkpoints are in an in-memory
// file system that outlives the chief, so that the chief can be killed and restarted. Not thread-safe.
class TestCluster {
 public:
  struct Options {
    config::v1::RunSpec config;
    Clock* clock = Clock::Real();
    // The file system from which workers read data.
    FileSystem* data = FileSystem::Real();
    // If true, there are no sockets: workers call the chief directly.
    bool local = false;
    // The workers' master string, in which CHIEF is replaced by the chief's address. If it names a file, the file is in
    // fs().
    std::string master = "grpc://CHIEF";
    bool with_logdir = true;
    bool share_memory = false;
    absl::Duration housekeeping_period = absl::Milliseconds(20);
    // Called by a worker before it reads the batch of a slot in this step. May block.
    std::function<void(int64_t step)> before_batch;
    // Changes a worker's workload so that it computes something different. Worker i runs on host-i, and the chief on
    // host-chief.
    std::function<void(int index, Workload*)> change_workload;
    ChiefServer::Options server;
    // Used by NewClient and by the workers.
    GrpcClientOptions client;
  };

  explicit TestCluster(Options options);
  // Stops the chief and all workers.
  ~TestCluster();

  // Starts the chief on the port of the previous chief.
  absl::Status StartChief();
  // Makes the next chief use another port.
  void MoveChief() { address_ = options_.server.address; }
  // Ends the chief without saving and without notifying workers, like kill -9.
  void KillChief();
  Chief* chief() const { return chief_.get(); }

  // Returns the worker's index.
  int StartWorker(int compute_threads = 1);
  // Stops a worker without letting it disconnect, and waits for its thread.
  void KillWorker(int index);

  // Calls TrainingWorker::RequestFinish.
  absl::Status RequestFinish(int index, const std::string& reason) {
    return workers_[index]->worker->RequestFinish(reason);
  }

  // Waits until a worker ends by itself, and returns its status.
  absl::Status JoinWorker(int index);

  // Blocks until the chief's run has ended.
  absl::Status Wait();
  // Returns the workers' final statuses. Call this after Wait.
  std::vector<absl::Status> JoinWorkers();

  // Returns the digest of the newest checkpoint.
  absl::StatusOr<std::string> Digest();

  MemoryFileSystem* fs() { return &fs_; }
  const std::string& address() const { return address_; }
  // Returns a client for the current chief.
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

// Trains the configuration to its end in a new cluster with `workers` workers, and returns the digest.
absl::StatusOr<std::string> TrainAndDigest(const TestCluster::Options& options, int workers);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_TEST_CLUSTER_H_
