#ifndef LOCKSTEP_TESTS_TESTING_FAULT_INJECTED_RUN_H_
#define LOCKSTEP_TESTS_TESTING_FAULT_INJECTED_RUN_H_

#include <cstdint>
#include <string>

#include "lockstep/common/base/mutex.h"
#include "lockstep/common/transport/grpc_chief_client.h"
#include "lockstep/server/rpc/chief_server.h"
#include "lockstep/tests/testing/test_cluster.h"

namespace lockstep {

// A run with a chief and a well-behaved worker over sockets, for tests that inject faults. The worker trains to
// kHeldStep and stops there in the middle of its block, while its heartbeats continue. After Release, it trains to the
// end. Not thread-safe.
class FaultInjectedRun {
 public:
  static constexpr int64_t kSteps = 40;
  static constexpr int64_t kHeldStep = 20;

  // The lease of runs whose worker may get little processor time, for example during a flood.
  static constexpr double kLongLeaseSeconds = 30;

  // If `held` is false, the worker does not stop at kHeldStep. The worker connects as `client` says. `lease_seconds` is
  // that of the run; 0 means that of SmallRunSpec.
  explicit FaultInjectedRun(const ChiefServer::Options& server = {}, bool held = true,
                            const GrpcClientOptions& client = {}, double lease_seconds = 0);
  ~FaultInjectedRun();

  const std::string& address() const { return cluster_.address(); }
  Chief* chief() { return cluster_.chief(); }
  // Lets the worker continue.
  void Release() ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls Release, waits for the end, and expects the same weights as those of an undisturbed run.
  void ExpectSameWeights();
  // Calls ExpectSameWeights. Also expects the undisturbed run's numbers of sessions, of contributions by their result,
  // and of expired leases, so no other peer may have had a session.
  void ExpectUndisturbed();

 private:
  TestCluster::Options Options(const ChiefServer::Options& server, const GrpcClientOptions& client,
                               double lease_seconds);
  void BeforeBatch(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mutex_);
  bool reached_ ABSL_GUARDED_BY(mutex_) = false;
  TestCluster cluster_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_FAULT_INJECTED_RUN_H_
