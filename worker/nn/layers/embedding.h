#ifndef LOCKSTEP_WORKER_NN_LAYERS_EMBEDDING_H_
#define LOCKSTEP_WORKER_NN_LAYERS_EMBEDDING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates a layer that returns row ids[b, l] of "<layer>/embeddings" [vocabulary, dimension] for each id: [batch,
// length, dimension], or [batch, dimension] for features with one id per example. The gradient is dense.
//
// Returns InvalidArgument for features of higher rank and for sizes < 1. Forward returns InvalidArgument for ids
// outside [0, vocabulary).
absl::StatusOr<std::unique_ptr<LayerOp>> MakeEmbedding(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_EMBEDDING_H_
