#ifndef LOCKSTEP_WORKER_NN_FUSE_ACTIVATIONS_H_
#define LOCKSTEP_WORKER_NN_FUSE_ACTIVATIONS_H_

#include "proto/model.pb.h"

namespace lockstep {

// The same model, faster: where an activation layer is the only reader of a dense, convolution or batch norm layer
// without activation, that layer computes the activation, and the activation layer's kind becomes NONE.
// The results have the same bits. Configurations that are wrong stay so.
ModelConfig FuseActivations(const ModelConfig& config);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_FUSE_ACTIVATIONS_H_
