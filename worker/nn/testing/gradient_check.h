#ifndef LOCKSTEP_WORKER_NN_TESTING_GRADIENT_CHECK_H_
#define LOCKSTEP_WORKER_NN_TESTING_GRADIENT_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

// A model's variables in memory, with values that a test chooses.
class TestVariables {
 public:
  // Sets variables to random numbers from `seed`: normally distributed around 0 with standard deviation `stddev`,
  // except that gammas and moving variances are between 0.8 and 1.2.
  TestVariables(const v1::ModelSpec& spec, uint64_t seed, float stddev = 0.5f);

  VariableValues values() const { return pointers_; }
  absl::Span<float> value(int variable) { return tensors_[variable].flat<float>(); }
  // Returns variable `name`, which must exist.
  absl::Span<float> value(const std::string& name);
  int size() const { return static_cast<int>(tensors_.size()); }

 private:
  v1::ModelSpec spec_;
  std::vector<Tensor> tensors_;
  std::vector<const float*> pointers_;
};

// A sink that records everything that a model reports for one slot and checks the order of the calls.
class RecordingSink : public GradientSink {
 public:
  explicit RecordingSink(const v1::ModelSpec& spec);

  bool OnLoss(float loss) override;
  void OnUpdate(int index, Elements value) override;
  float* GradientBuffer(int variable) override;
  void OnGradient(int variable) override;

  // Makes OnLoss return false from now on.
  void Refuse() { refuse_ = true; }

  float loss() const { return loss_; }
  const std::vector<std::vector<float>>& updates() const { return updates_; }
  absl::Span<const float> gradient(int variable) const { return gradients_[variable].flat<float>(); }
  // Returns the variables in the order of the OnGradient calls.
  const std::vector<int>& order() const { return order_; }
  // Describes violations of GradientSink's contract and missing calls. Returns an empty string if there are none.
  std::string Violations() const;
  // Returns the loss, the updates and the gradients as bytes.
  std::string Bytes() const;

 private:
  const v1::ModelSpec spec_;
  bool refuse_ = false;
  int losses_ = 0;
  float loss_ = 0;
  std::vector<std::vector<float>> updates_;
  std::vector<int> update_calls_;
  std::vector<Tensor> gradients_;
  std::vector<int> order_;
  std::string violations_;
};

struct GradientCheckOptions {
  // Step size of the central difference, in each direction.
  float step = 2e-3f;
  // Largest allowed |analytic - numerical|, as a multiple of the norm of the variable's gradient ...
  float tolerance = 1e-2f;
  // ... plus this constant, which allows for the rounding of the loss.
  float noise = 2e-4f;
  // Numbers of directions, and of single elements, to try for each variable.
  int directions = 3;
  int elements = 6;
  SlotKey key{1, 2, 3};
};

// Compares the gradient of each trainable variable with central differences of the training loss, along random unit
// directions biased toward the gradient and along single elements. If they differ, returns Internal with the variable
// and the two numbers.
absl::Status CheckGradients(Model* model, TestVariables* variables, const Batch& batch,
                            const GradientCheckOptions& options = {});

// Returns a batch with normally distributed features and with random classes, or random targets in [0, 1). All are
// drawn from `seed`.
Batch RandomBatch(const ExampleSpec& examples, int64_t size, uint64_t seed);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_TESTING_GRADIENT_CHECK_H_
