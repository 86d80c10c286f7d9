#ifndef LOCKSTEP_TESTS_TESTING_DISTURBED_RUN_H_
#define LOCKSTEP_TESTS_TESTING_DISTURBED_RUN_H_

#include <cstdint>
#include <string>

#include "common/base/mutex.h"
#include "tests/testing/test_cluster.h"

namespace lockstep {

// A run of a chief and a good worker over sockets, for tests of what others do to it. The worker trains to
// kHeldStep, stops there in the middle of its block, its heartbeats going on, and trains to the end when the
// test is done with its disturbance. For one thread.
class DisturbedRun {
 public:
  static constexpr int64_t kSteps = 40;
  static constexpr int64_t kHeldStep = 20;

  // `held` false: the worker does not stop.
  explicit DisturbedRun(const ChiefServer::Options& server = {}, bool held = true);
  ~DisturbedRun();

  const std::string& address() const { return cluster_.address(); }
  Chief* chief() { return cluster_.chief(); }
  // Lets the worker go on.
  void Release() ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, waits for the end and expects the weights of an undisturbed run.
  void ExpectSameWeights();

 private:
  TestCluster::Options Options(const ChiefServer::Options& server);
  void BeforeBatch(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mutex_);
  bool reached_ ABSL_GUARDED_BY(mutex_) = false;
  TestCluster cluster_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_DISTURBED_RUN_H_
