#ifndef LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_OBSERVER_H_
#define LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_OBSERVER_H_

#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// A program's additions to the report of a block's first slot.
struct BlockAdditions {
  // True if the run must end when the block's step is committed.
  bool stop = false;
};

// Observes a worker's blocks and decides what happens to them. The thread of TrainingWorker::Run calls all methods
// except OnRunOver.
class BlockObserver {
 public:
  virtual ~BlockObserver() = default;

  // Called when a session with a stream opens: the first one, or one after the previous session was lost. `goes_on` is
  // true if the previous session was with the same incarnation of the chief and the chief itself ended it, for example
  // because the worker held values of too many steps.
  virtual void OnSession(bool goes_on) = 0;
  enum class Decision {
    kCompute,
    // Other workers compute the block. AwaitDemand follows.
    kGiveBack,
    // The block is abandoned because a stop was requested.
    kStop,
  };
  // Called before a block is computed; may block.
  virtual Decision BeforeBlock(const v1::Token& token, BlockAdditions* additions) = 0;
  // Called after a block was given back. Blocks until the program wants another block or the run is over. Returns false
  // if a stop was requested.
  virtual bool AwaitDemand() = 0;
  // Called after the block was computed and sent. `mean_loss` is the mean over its slots.
  virtual void AfterBlock(const v1::Token& token, double mean_loss) = 0;
  // Called if the block was aborted or could not be sent.
  virtual void OnBlockLost() {}
  // Receives the result of the last block passed to AfterBlock.
  virtual void OnResult(v1::ContributionResult result) = 0;
  // Called from any thread when the chief reports that the run is over. The block in progress is no longer wanted.
  virtual void OnRunOver() = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_OBSERVER_H_
