#include "lockstep/tests/testing/gated_run.h"

#include <limits>
#include <thread>

#include "gtest/gtest.h"

namespace lockstep {

GatedRun::GatedRun(int64_t version_bytes, const ChiefServer::Options& server) {
  TestCluster::Options options;
  options.config = SmallRunSpec(/*steps=*/1000000, /*slots=*/1);
  // Each unit accounts for 20 floats: 12 weights, 4 values for the normalization and its averages, and 4 weights in the
  // next layer.
  options.config.mutable_model()->mutable_layer(0)->mutable_dense()->set_units(
      static_cast<int32_t>(version_bytes / static_cast<int64_t>(sizeof(float)) / 20));
  options.config.mutable_optimizer()->mutable_sgd();
  options.server = server;
  options.before_batch = [this](int64_t step) { BeforeBatch(step); };
  cluster_ = std::make_unique<TestCluster>(options);
  EXPECT_TRUE(cluster_->StartChief().ok());
  cluster_->StartWorker();
}

GatedRun::~GatedRun() {
  {
    MutexLock lock(&mutex_);
    allowed_ = std::numeric_limits<int64_t>::max();
    changed_.SignalAll();
  }
  cluster_.reset();  // while BeforeBatch may still be called
}

void GatedRun::Train(int64_t steps) {
  MutexLock lock(&mutex_);
  allowed_ += steps;
  changed_.SignalAll();
  while (reached_ < allowed_) changed_.Wait(&mutex_);
}

void GatedRun::BeforeBatch(int64_t step) {
  MutexLock lock(&mutex_);
  reached_ = step;
  changed_.SignalAll();
  while (reached_ >= allowed_) changed_.Wait(&mutex_);
}

void GatedRun::AwaitValues(const std::string& worker) const {
  while (true) {
    const v1::RunStatus status = chief()->GetStatus();
    for (const v1::WorkerStatus& each : status.worker()) {
      if (each.name() == worker && each.bytes_sent() > 0) return;
    }
    std::this_thread::yield();
  }
}

void GatedRun::AwaitOneStream() const {
  while (chief()->GetStatus().worker_size() > 1) std::this_thread::yield();
}

}  // namespace lockstep
