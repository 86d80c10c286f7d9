#ifndef LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_OBSERVER_H_
#define LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_OBSERVER_H_

#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// A program's additions to the report of a block's first slot.
struct BlockAdditions {
  // True if the run must end when the block's step is committed.
  bool stop = false;
};

// Observes the blocks of a worker, and decides about them. Called by the thread of TrainingWorker::Run, except for
// OnRunOver.
class BlockObserver {
 public:
  virtual ~BlockObserver() = default;

  // Called when a session with a stream is open: the first one, or after the previous one was lost. `goes_on` is true
  // if that was with the same incarnation of the chief, which ended it itself, as it does if the worker holds values of
  // too many steps.
  virtual void OnSession(bool goes_on) = 0;
  enum class Decision {
    kCompute,
    // Other workers compute the block. AwaitDemand follows.
    kGiveBack,
    // The block is given up, because a stop was requested.
    kStop,
  };
  // Called before a block is computed; may block.
  virtual Decision BeforeBlock(const v1::Token& token, BlockAdditions* additions) = 0;
  // Called after a block was given back. Blocks until the program wants another one, or the run is over. Returns false
  // if a stop was requested.
  virtual bool AwaitDemand() = 0;
  // Called when the block was computed and sent. `mean_loss` is over its slots.
  virtual void AfterBlock(const v1::Token& token, double mean_loss) = 0;
  // Called when the block was aborted, or could not be sent.
  virtual void OnBlockLost() {}
  // Receives the result of the block that was announced last.
  virtual void OnResult(v1::ContributionResult result) = 0;
  // Called when the chief reports that the run is over: the block in progress is not wanted. Called from any thread.
  virtual void OnRunOver() = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_OBSERVER_H_
