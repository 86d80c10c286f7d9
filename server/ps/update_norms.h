#ifndef LOCKSTEP_SERVER_PS_UPDATE_NORMS_H_
#define LOCKSTEP_SERVER_PS_UPDATE_NORMS_H_

#include <cstdint>
#include <vector>

namespace lockstep {

// Euclidean norms of one update over all trainable variables together.
struct UpdateNorms {
  double gradient = 0;  // the mean over the slots, or their sum under SUM, before clip.mean_by_global_norm
  double weights = 0;   // before the update
  double change = 0;    // the difference that the update makes

  // The relative change of the weights; 0 if all weights are 0.
  double ratio() const { return weights > 0 ? change / weights : 0; }
};

// The sums from which the norms of an update are computed, segment by segment. Reads the values without changing them.
// The result does not depend on the order of the segments. Different segments may be added in parallel.
class UpdateNormSums {
 public:
  explicit UpdateNormSums(int segments) : segments_(segments) {}

  // Begins an update. If `gathers` is false, its norms are not computed.
  void Begin(bool gathers);
  bool gathers() const { return gathers_; }
  // Adds n elements of the sum of the gradients, which the optimizer divides by `divisor`. AddGradient and AddChange
  // are called once for each trainable segment.
  void AddGradient(int segment, int64_t n, const float* sum, float divisor);
  void AddChange(int segment, int64_t n, const float* before, const float* after);
  // Returns the squared norm of a segment's gradient.
  double GradientSquares(int segment) const { return squares_[segment].gradient; }
  // Returns the norms over the segments added since Begin, summed in segment order.
  UpdateNorms Total() const;

 private:
  struct Squares {
    double gradient = 0, weights = 0, change = 0;
  };

  bool gathers_ = false;
  const int segments_;
  std::vector<Squares> squares_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_UPDATE_NORMS_H_
