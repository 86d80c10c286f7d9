#ifndef LOCKSTEP_WORKER_NN_GRAPH_MODEL_SUMMARY_H_
#define LOCKSTEP_WORKER_NN_GRAPH_MODEL_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/model.pb.h"
#include "lockstep/worker/data/batch_source.h"

namespace lockstep {

// A summary of a model, for checking a configuration.
struct ModelSummary {
  struct Row {
    // A layer and its kind, or a variable of a registered model.
    std::string name;
    std::string kind;
    // The shape of the layer's output for one example, or of the variable.
    std::string shape;
    // Numbers of elements in all its variables, and in those that are not trained.
    int64_t parameters = 0;
    int64_t fixed_parameters = 0;
    // The size of its variables' values.
    int64_t bytes = 0;
    // Multiply-adds of the forward pass for one example; the backward pass has about twice as many.
    int64_t multiply_adds = 0;
  };
  std::vector<Row> rows;
  Row total;

  // Formats each row as a line of aligned columns (layer, kind, output, parameters, bytes, multiply-adds per example),
  // with the total below.
  std::string ToTable() const;
};

// Returns errors from CreateModel.
absl::StatusOr<ModelSummary> SummarizeModel(const config::v1::ModelConfig& config, const ExampleSpec& examples);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_GRAPH_MODEL_SUMMARY_H_
