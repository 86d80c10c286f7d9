#ifndef LOCKSTEP_SERVER_RPC_STEP_STEP_PUMP_H_
#define LOCKSTEP_SERVER_RPC_STEP_STEP_PUMP_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/step/step_frame.h"

namespace lockstep {

// The state machine of one Step stream on the server. Pure: each event returns the effects that its caller must carry
// out. OnStarted comes first, then the completions of the stream's operations, and `over` last. Other threads may
// report a reply or an end at any time.
//
//   reader      event                  then        effects
//   kNew        OnStarted              kFirst      start_timer, start_read; kStopped without either if ending
//   kFirst      OnRead(ok)             kHandling   cancel_timer, handle_frame; kStopped without handling if ending
//   kReading    OnRead(ok)             kHandling   handle_frame; kStopped without it if ending
//   kFirst/kReading  OnRead(!ok)       kStopped    ends the stream, OK; cancel_timer in kFirst
//   kHandling   OnConnected            kHandling   close_connection if ending; once
//   kHandling   OnHandled(OK, kSends)  kReading    start_read; kStopped if ending
//   kHandling   OnHandled(OK, kAwaits) kAwaiting   start_pause if none is pending; as kSends unless kResting, or if a
//                                                  write was started since OnRead: the reply may already be written
//   kHandling   OnHandled(else)        kStopped    ends the stream with the status
//   kAwaiting   start_write            kReading    start_read
//   kAwaiting   OnPauseOver            kReading    start_read
//   kAwaiting   the stream ends        kStopped
//   kHandling   OnWaits                kWaiting    kStopped if ending
//   kHandling   OnResume               kResumed
//   kResumed    OnWaits                kWaking     wake; kStopped if ending
//   kWaiting    OnResume               kWaking     wake
//   kWaiting    the stream ends        kStopped
//   kWaking     OnWoken                kHandling   handle_frame; kStopped without it if ending
//   else        OnResume               unchanged
//
//   writer      event                  then        effects
//   kResting    OnReplyReady           kFetching   fetch_reply; nothing before OnConnected or if ending
//   kFetching   OnReplyReady           kRefetching
//   kRefetching, kWriting OnReplyReady unchanged
//   kFetching   OnFetched(none)        kResting
//   kRefetching OnFetched(none)        kFetching   fetch_reply; kResting if ending
//   kFetching/kRefetching OnFetched(a reply without a token)  kWriting  start_write; kResting if ending
//   kFetching   OnFetched(a token)     kWritingToken  start_write; kResting if ending
//   kRefetching OnFetched(a token)     kWriting   start_write; kResting if ending
//   kWritingToken OnReplyReady         kWriting
//   kWritingToken OnWritten            kResting
//   kWriting    OnWritten(ok)          kFetching   fetch_reply; kResting if ending
//   kWriting    OnWritten(!ok)         kResting
//
//   end         event                  then        effects
//   kOpen       the stream ends        kEnding     close_connection if connected; start_timer if a write is pending
//   kEnding     the stream ends        kEnding     none
//   kEnding     the timer expires      kEnding     cancel_call if a write is pending
//   kEnding     the writer rests       kFinishing  finish; cancel_timer if it is pending
//   kFinishing  OnFinished             kFinished
//   kFinished, the reader kStopped, no timer and no pause pending: over, once.
//
// OnTimer ends the stream if the timer expired in kFirst. OnEnd ends the stream from outside. With `cancel`, it also
// cancels the call if a write is pending or if the stream's end was already being sent. Any other event is a bug in the
// caller and fails a CHECK.
//
// Thus, a peer that does not read can keep a reply, and the memory to which the reply refers, alive after the end of
// its stream, but only for one period of the timer or until OnEnd(cancel).
//
// A worker that awaits a reply sends nothing before it, unless it leaves. So its next frame is read once a reply is
// being written, or after a pause. Otherwise, gRPC would send the stream's new window at once, in a packet of its own
// that wakes the worker, instead of with the reply.
class StepPump {
 public:
  // The longest time for which a worker that awaits a reply is not read. It delays the news that a worker has left.
  static constexpr absl::Duration kPause = absl::Milliseconds(20);

  // The effects, in the order in which the caller carries them out.
  struct Effects {
    // Start the timer, either for the first frame or for the write that must finish before the stream can.
    bool start_timer = false;
    bool cancel_timer = false;
    // Schedule a call of OnPauseOver after kPause.
    bool start_pause = false;
    // Handle the message that was read, perhaps again; then call OnHandled or OnWaits.
    bool handle_frame = false;
    // Schedule a call of OnWoken on a thread of the queue.
    bool wake = false;
    // Ask the connection for a reply; then call OnFetched.
    bool fetch_reply = false;
    bool start_write = false;
    bool start_read = false;
    bool close_connection = false;
    // End the stream with this status.
    absl::optional<absl::Status> finish;
    bool cancel_call = false;
    // No operation is pending and none will start.
    bool over = false;
  };

  Effects OnStarted();
  Effects OnRead(bool ok);
  // Called when the stream's first frame has opened a connection.
  Effects OnConnected();
  // kAwaits: the worker awaits a reply. kLeaves: the frame was the worker's last one.
  enum class Next { kSends, kAwaits, kLeaves };
  // Returns what the worker does after this frame. A ring has no window, so its reads are not paused.
  static Next NextAfter(const StepFrame& frame);
  Effects OnHandled(const absl::Status& status, Next next);
  Effects OnPauseOver();
  // Called if the frame is not accepted yet (StepConnection::OnFrame). The caller must keep the frame.
  Effects OnWaits();
  // Called by StepListener::OnResume.
  Effects OnResume();
  Effects OnWoken();
  // Called once for each timer that was started. If `expired`, `why` is the status that ends the stream. Otherwise, the
  // timer was cancelled.
  Effects OnTimer(bool expired, const absl::Status& why);
  Effects OnReplyReady();
  enum class Fetched { kNothing, kReply, kToken };  // kToken: no other reply is ready before OnReplyReady
  Effects OnFetched(Fetched fetched);
  Effects OnWritten(bool ok);
  Effects OnEnd(const absl::Status& why, bool cancel);
  Effects OnFinished();

 private:
  enum class Reader { kNew, kFirst, kReading, kHandling, kAwaiting, kResumed, kWaiting, kWaking, kStopped };
  enum class Writer { kResting, kFetching, kRefetching, kWriting, kWritingToken };
  enum class End { kOpen, kEnding, kFinishing, kFinished };

  bool is_open() const { return end_ == End::kOpen; }
  bool is_writing() const { return writer_ == Writer::kWriting || writer_ == Writer::kWritingToken; }
  void EndStream(const absl::Status& why, Effects* effects);
  void Rest(Effects* effects);
  void StartTimer(Effects* effects);
  void ReadIfAwaiting(Effects* effects);
  void SetOver(Effects* effects) const;

  Reader reader_ = Reader::kNew;
  Writer writer_ = Writer::kResting;
  End end_ = End::kOpen;
  bool timer_pending_ = false;
  bool pause_pending_ = false;
  bool wrote_ = false;  // a write was started since OnRead
  bool connected_ = false;
  absl::Status why_;  // valid once the stream has ended
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_STEP_STEP_PUMP_H_
