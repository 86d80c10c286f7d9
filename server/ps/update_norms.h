#ifndef LOCKSTEP_SERVER_PS_UPDATE_NORMS_H_
#define LOCKSTEP_SERVER_PS_UPDATE_NORMS_H_

#include <cstdint>
#include <vector>

namespace lockstep {

// Of one update, the Euclidean norms over all trainable variables together.
struct UpdateNorms {
  double gradient = 0;  // the mean over the slots, as the optimizer gets it
  double weights = 0;   // before the update
  double change = 0;    // what the update adds to them

  // How far the update moves the weights; 0 where they are all 0.
  double ratio() const { return weights > 0 ? change / weights : 0; }
};

// Gathers the norms of an update, segment by segment, and reads nothing else: no bit of the values depends on it. The
// result does not depend on the order of the segments. Segments may be added side by side.
class UpdateNormSums {
 public:
  explicit UpdateNormSums(int segments) : segments_(segments) {}

  // An update starts, whose norms are gathered or not.
  void Begin(bool gathers);
  bool gathers() const { return gathers_; }
  // n elements of a sum that the optimizer divides by `divisor`. Once for each trainable segment, as the next one.
  void AddGradient(int segment, int64_t n, const float* sum, float divisor);
  void AddChange(int segment, int64_t n, const float* before, const float* after);
  // Of the segments that were added since Begin.
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
