#ifndef LOCKSTEP_SERVER_RPC_QUEUE_EVENT_H_
#define LOCKSTEP_SERVER_RPC_QUEUE_EVENT_H_

namespace lockstep {

// What a tag of the server's completion queue points to.
class QueueEvent {
 public:
  virtual ~QueueEvent() = default;
  // An operation has ended; `ok` as gRPC defines it for the operation. On a thread of the queue.
  virtual void OnEvent(bool ok) = 0;
  // Whether OnEvent is going to take so long that another thread should wait for events meanwhile.
  virtual bool IsLong() const { return false; }
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_QUEUE_EVENT_H_
