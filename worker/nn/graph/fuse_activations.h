#ifndef LOCKSTEP_WORKER_NN_GRAPH_FUSE_ACTIVATIONS_H_
#define LOCKSTEP_WORKER_NN_GRAPH_FUSE_ACTIVATIONS_H_

#include "lockstep/config/v1/model.pb.h"

namespace lockstep {

// Returns an equivalent, faster model: if an activation layer is the only reader of a dense, convolution or batch norm
// layer without an activation, that layer computes the activation, and the activation layer's kind becomes NONE. The
// results are identical, to the last bit. Invalid configurations stay invalid.
config::v1::ModelConfig FuseActivations(const config::v1::ModelConfig& config);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_GRAPH_FUSE_ACTIVATIONS_H_
