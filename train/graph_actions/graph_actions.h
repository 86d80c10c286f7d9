#ifndef LOCKSTEP_TRAIN_GRAPH_ACTIONS_GRAPH_ACTIONS_H_
#define LOCKSTEP_TRAIN_GRAPH_ACTIONS_GRAPH_ACTIONS_H_

// Counterparts of the functions of tf.contrib.learn.graph_actions: train, evaluate, run_n, run_feeds, run_feeds_iter,
// infer. docs/library.md compares them.
#include "lockstep/train/graph_actions/evaluate.h"     // IWYU pragma: export
#include "lockstep/train/graph_actions/run_outputs.h"  // IWYU pragma: export
#include "lockstep/train/graph_actions/train.h"        // IWYU pragma: export

#endif  // LOCKSTEP_TRAIN_GRAPH_ACTIONS_GRAPH_ACTIONS_H_
