#ifndef LOCKSTEP_SERVER_RPC_CALL_COMPLETION_TAG_H_
#define LOCKSTEP_SERVER_RPC_CALL_COMPLETION_TAG_H_

namespace lockstep {

// The object that a tag of the server's completion queue points to.
class CompletionTag {
 public:
  virtual ~CompletionTag() = default;
  // Called on a thread of the queue when an operation has ended. `ok` has the meaning that gRPC defines for the
  // operation.
  virtual void OnEvent(bool ok) = 0;
  // Returns true if OnEvent takes long enough that another thread should wait for events meanwhile.
  virtual bool IsLong() const { return false; }
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CALL_COMPLETION_TAG_H_
