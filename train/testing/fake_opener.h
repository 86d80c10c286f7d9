#ifndef LOCKSTEP_TRAIN_TESTING_FAKE_OPENER_H_
#define LOCKSTEP_TRAIN_TESTING_FAKE_OPENER_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_replace.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/train/session/held_session.h"
#include "lockstep/train/testing/fake_session.h"

namespace lockstep::train {

// Opens FakeSessions and keeps them, so that tests can inspect them after they were dropped. Run, GlobalStep, Save,
// AddSummary and Uninitialized of a returned session are thread-safe.
class FakeOpener {
 public:
  // Adds options for the next session; several are used in order. Without them, a session's role follows
  // SessionOptions::is_chief, and a chief with a logdir continues where the previous session was.
  void Add(FakeSession::Options options) { next_.push_back(std::move(options)); }
  // Makes the next attempt to open a session fail with `status`. Takes its turn among the added options.
  void AddFailure(absl::Status status) { next_.push_back(std::move(status)); }
  // Sets a function that is called with each session before it is returned.
  void set_on_open(std::function<void(int index, FakeSession&)> on_open) { on_open_ = std::move(on_open); }

  SessionOpener opener() {
    return [this](const SessionOptions& options) { return Open(options); };
  }

  // Return the number of attempts, and the options of each.
  int attempts() const { return static_cast<int>(asked_.size()); }
  const SessionOptions& asked(int index) const { return asked_[index]; }
  int opened() const { return static_cast<int>(sessions_.size()); }
  FakeSession& session(int index) { return *sessions_[index]; }
  FakeSession& last() { return *sessions_.back(); }
  // Returns the number of open sessions.
  int live() const { return *live_; }

 private:
  class Handed : public SessionDecorator {
   public:
    Handed(std::shared_ptr<FakeSession> session, SummaryWriter summary_writer, std::shared_ptr<int> live)
        : SessionDecorator(session.get()),
          session_(std::move(session)),
          summary_writer_(std::move(summary_writer)),
          live_(std::move(live)) {
      ++*live_;
    }
    ~Handed() override { --*live_; }
    absl::StatusOr<StepResult> Run(const TrainOp& op) override {
      MutexLock lock(&mutex_);
      return session_->Run(op);
    }
    absl::StatusOr<int64_t> GlobalStep() override {
      MutexLock lock(&mutex_);
      return session_->GlobalStep();
    }
    absl::StatusOr<std::string> Save() override {
      MutexLock lock(&mutex_);
      return session_->Save();
    }
    absl::Status AddSummary(const v1::Summary& summary, absl::optional<int64_t> step) override {
      MutexLock lock(&mutex_);
      return summary_writer_ ? summary_writer_(summary, step.value_or(session_->newest()))
                             : session_->AddSummary(summary, step);
    }
    absl::StatusOr<std::vector<std::string>> Uninitialized() override {
      MutexLock lock(&mutex_);
      return session_->Uninitialized();
    }

   private:
    const std::shared_ptr<FakeSession> session_;
    const SummaryWriter summary_writer_;
    const std::shared_ptr<int> live_;
    Mutex mutex_;
  };

  absl::StatusOr<HeldSession> Open(const SessionOptions& options) {
    asked_.push_back(options);
    absl::StatusOr<FakeSession::Options> next = NextOptions(options);
    if (!next_.empty()) {
      next = next_.front();
      next_.pop_front();
    }
    if (!next.ok()) return next.status();
    auto session = std::make_shared<FakeSession>(*next);
    sessions_.push_back(session);
    if (on_open_) on_open_(opened() - 1, *session);
    HeldSession held;
    if (session->is_chief()) {
      held.gate = session.get();
      held.listening = absl::StrReplaceAll(options.listen, {{":0", ":4321"}});
    }
    held.session = std::make_unique<Handed>(std::move(session), options.summary_writer, live_);
    return held;
  }

  FakeSession::Options NextOptions(const SessionOptions& options) const {
    if (options.is_chief && !options.logdir.empty() && !sessions_.empty()) return sessions_.back()->NextLife();
    FakeSession::Options fresh;
    fresh.chief = options.is_chief;
    return fresh;
  }

  std::deque<absl::StatusOr<FakeSession::Options>> next_;
  std::function<void(int, FakeSession&)> on_open_;
  std::vector<SessionOptions> asked_;
  std::vector<std::shared_ptr<FakeSession>> sessions_;
  const std::shared_ptr<int> live_ = std::make_shared<int>(0);
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_TESTING_FAKE_OPENER_H_
