#ifndef LOCKSTEP_CLI_PREDICTION_CSV_H_
#define LOCKSTEP_CLI_PREDICTION_CSV_H_

#include <cstdint>
#include <string>

#include "common/tensor/tensor.h"
#include "worker/data/batch.h"
#include "worker/data/batch_source.h"

namespace lockstep {

// Predictions as lines of CSV; `lockstep predict --help` names the columns. Constant after construction.
class PredictionCsv {
 public:
  explicit PredictionCsv(const ExampleSpec& examples) : examples_(examples) {}

  // `output` is DT_FLOAT [size, outputs], as Model::Predict gives it.
  std::string Titles(const Tensor& output) const;
  // One line for each example of the batch, numbered from `first_example`. Floats have the nine digits that tell all
  // apart.
  std::string Rows(int64_t first_example, const Batch& batch, const Tensor& output) const;

 private:
  const ExampleSpec examples_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_PREDICTION_CSV_H_
