#ifndef LOCKSTEP_TESTS_TESTING_GATED_RUN_H_
#define LOCKSTEP_TESTS_TESTING_GATED_RUN_H_

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/common/base/mutex.h"
#include "lockstep/server/rpc/chief_server.h"
#include "lockstep/tests/testing/test_cluster.h"

namespace lockstep {

// An endless run with a chief that has a gRPC server, and one well-behaved worker, which waits in the middle of each
// step until the test lets it continue. replicas_to_aggregate is 1, so other workers compute backups. Not thread-safe.
class GatedRun {
 public:
  // `version_bytes` is the approximate size of one version of the values.
  GatedRun(int64_t version_bytes, const ChiefServer::Options& server);
  ~GatedRun();

  // Lets the well-behaved worker compute `steps` steps, and waits until it reaches the next one.
  void Train(int64_t steps) ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until the chief has sent values to `worker` on its current stream.
  void AwaitValues(const std::string& worker) const;
  // Blocks until only the well-behaved worker's stream is left.
  void AwaitOneStream() const;

  const std::string& address() const { return cluster_->address(); }
  Chief* chief() const { return cluster_->chief(); }

 private:
  void BeforeBatch(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  int64_t allowed_ ABSL_GUARDED_BY(mutex_) = 0;   // the good worker computes only earlier steps
  int64_t reached_ ABSL_GUARDED_BY(mutex_) = -1;  // the good worker's current step
  std::unique_ptr<TestCluster> cluster_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_GATED_RUN_H_
