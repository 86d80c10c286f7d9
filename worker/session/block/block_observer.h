#ifndef LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_OBSERVER_H_
#define LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_OBSERVER_H_

#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// Data that a program adds to the report of a block's first slot.
struct BlockAdditions {
  // True if the run must end when the block's step is committed.
  bool stop = false;
};

// An observer of a worker's blocks, which also decides what happens to them. All methods except OnRunOver are called on
// the thread of TrainingWorker::Run.
class BlockObserver {
 public:
  virtual ~BlockObserver() = default;

  // Called when a session with a stream opens: the first session, or one after the previous session was lost. `goes_on`
  // is true if the previous session was with the same generation of the chief and the chief itself ended it, for
  // example because the worker held the values of too many steps.
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
  // Called with the chief's result for the last block that was passed to AfterBlock.
  virtual void OnResult(v1::ContributionResult result) = 0;
  // Called from any thread when the chief reports that the run is over. The block in progress is no longer wanted.
  virtual void OnRunOver() = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_OBSERVER_H_
