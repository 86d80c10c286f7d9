// The SM-* cases come from the original's session manager.
#include "lockstep/train/supervisor/session_manager.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/testing/fake_opener.h"
#include "lockstep/train/testing/jumping_clock.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionManagerTest : public ::testing::Test {
 protected:
  SessionManagerTest() {
    session_.open = opener_.opener();
    session_.clock = &clock_;
    session_.fs = &fs_;
    session_.logdir = "run";
  }

  std::unique_ptr<SessionManager> Manager() { return SessionManager::Create(manager_).value(); }
  void BeWorker() {
    session_.is_chief = false;
    session_.logdir.clear();
  }
  void WriteState() {
    ASSERT_TRUE(fs_.CreateDirectory("run").ok());
    ASSERT_TRUE(WriteFileAtomically(&fs_, "run/checkpoint", "model_checkpoint_path: \"model.ckpt-7\"\n").ok());
  }
  // Returns a function that sets the local state that LocalIsSet requires.
  LocalInitFunction SetLocal() {
    return [this](Session&) {
      calls_.push_back("local_init");
      local_is_set_ = true;
      return absl::OkStatus();
    };
  }
  ReadyFunction LocalIsSet() {
    return [this](Session&) -> absl::StatusOr<std::vector<std::string>> {
      if (local_is_set_) return std::vector<std::string>();
      return std::vector<std::string>{"w"};
    };
  }
  ReadyFunction Note(const std::string& what, ReadyFunction ready = UninitializedVariables) {
    return [this, what, ready = std::move(ready)](Session& session) {
      calls_.push_back(what);
      return ready(session);
    };
  }

  MemoryFileSystem fs_;
  JumpingClock clock_;
  FakeOpener opener_;
  SessionManager::Options manager_;
  SessionOptions session_;
  bool local_is_set_ = false;
  std::vector<std::string> calls_;
};

// SM-10
TEST_F(SessionManagerTest, RefusesReadinessForALocalInitThatIsNotThere) {
  manager_.ready_for_local_init = UninitializedVariables;
  const auto manager = SessionManager::Create(manager_);
  EXPECT_TRUE(absl::IsInvalidArgument(manager.status()));
  EXPECT_THAT(manager.status().message(), HasSubstr("ready_for_local_init"));
}

TEST_F(SessionManagerTest, RefusesAWaitOfNothing) {
  manager_.recovery_wait = absl::ZeroDuration();
  EXPECT_THAT(SessionManager::Create(manager_).status().message(), HasSubstr("recovery_wait: 0, must be more than 0"));
}

// SM-17, and the order of initialization.
TEST_F(SessionManagerTest, AsksForReadinessBeforeLocalInitAndAfterIt) {
  manager_.ready_for_local_init = Note("ready for local init");
  manager_.local_init = SetLocal();
  manager_.ready = Note("ready", LocalIsSet());
  const auto held = Manager()->PrepareSession(session_, {});
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_THAT(calls_, ElementsAre("ready for local init", "local_init", "ready"));
  EXPECT_EQ(opener_.last().newest(), 0) << "nothing has begun";
  held->Release();
  EXPECT_EQ(opener_.last().newest(), 1000);
}

// SM-02, SM-03: the chief calls the function if nothing was restored.
TEST_F(SessionManagerTest, HandsTheInitFunctionToTheChief) {
  session_.init_fn = [](const v1::ModelSpec&) -> absl::StatusOr<InitialValues> {
    return absl::InternalError("called");
  };
  SessionManager::PrepareOptions prepare;
  prepare.initialize = false;
  ASSERT_TRUE(Manager()->PrepareSession(session_, prepare).ok());
  EXPECT_TRUE(absl::IsInternal(opener_.asked(0).init_fn(v1::ModelSpec()).status()));
}

// SUP-23
TEST_F(SessionManagerTest, InitFunctionAloneMustSetEachVariable) {
  v1::ModelSpec model;
  model.add_variables()->set_name("logits/kernel");
  model.add_variables()->set_name("logits/bias");
  InitialValues values;
  values.values.push_back({"logits/bias", Tensor()});
  session_.init_fn = [&](const v1::ModelSpec&) -> absl::StatusOr<InitialValues> { return values; };
  ASSERT_TRUE(Manager()->PrepareSession(session_, {}).ok());
  EXPECT_TRUE(opener_.asked(0).init_fn(model).ok()) << "the seed sets the others";
  SessionManager::PrepareOptions prepare;
  prepare.initialize = false;
  ASSERT_TRUE(Manager()->PrepareSession(session_, prepare).ok());
  const absl::Status status = opener_.asked(1).init_fn(model).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("sets 1 of 2 variables, and init_op is None"));
  EXPECT_THAT(status.message(), HasSubstr("not initialized: logits/kernel"));
  values.values.push_back({"logits/kernel", Tensor()});
  EXPECT_TRUE(opener_.asked(1).init_fn(model).ok());
}

// SM-04
TEST_F(SessionManagerTest, WaitsForACheckpointNeverStartsOver) {
  SessionManager::PrepareOptions prepare;
  prepare.initialize = false;
  const auto at_once = Manager()->PrepareSession(session_, prepare);
  EXPECT_TRUE(absl::IsFailedPrecondition(at_once.status())) << at_once.status();
  prepare.initialize = true;
  prepare.wait_for_checkpoint = true;
  prepare.max_wait = absl::Seconds(2);
  manager_.recovery_wait = absl::Seconds(1);
  const auto waited = Manager()->PrepareSession(session_, prepare);
  EXPECT_TRUE(absl::IsDeadlineExceeded(waited.status())) << waited.status();
  EXPECT_EQ(clock_.elapsed(), absl::Seconds(2));
  EXPECT_EQ(opener_.attempts(), 0);
  WriteState();
  EXPECT_TRUE(Manager()->PrepareSession(session_, prepare).ok());
  EXPECT_EQ(clock_.elapsed(), absl::Seconds(2));
}

// SM-20: the chief must find the checkpoint that the state file names. Missing files are not a reason to initialize.
TEST_F(SessionManagerTest, LeavesADamagedCheckpointToTheChief) {
  WriteState();
  opener_.AddFailure(absl::DataLossError("model.ckpt-7 is gone"));
  EXPECT_TRUE(absl::IsDataLoss(Manager()->PrepareSession(session_, {}).status()));
}

// SM-18
TEST_F(SessionManagerTest, NamesWhatIsNotReady) {
  manager_.ready = LocalIsSet();
  const auto held = Manager()->PrepareSession(session_, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(held.status()));
  EXPECT_THAT(held.status().message(), HasSubstr("not ready, not initialized: w"));
  EXPECT_EQ(opener_.live(), 0);
}

TEST_F(SessionManagerTest, OnlyUninitializedMeansNotReady) {
  absl::Status error = absl::FailedPreconditionError("Attempting to use uninitialized value w");
  manager_.ready = [&](Session&) -> absl::StatusOr<std::vector<std::string>> { return error; };
  WriteState();
  const auto recovered = Manager()->RecoverSession(session_, {});
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_FALSE(recovered->initialized);
  error = absl::FailedPreconditionError("no table");
  EXPECT_EQ(Manager()->RecoverSession(session_, {}).status(), error);
}

// SM-06
TEST_F(SessionManagerTest, RecoversWhatTheLogdirHas) {
  EXPECT_FALSE(Manager()->RecoverSession(session_, {})->session.has_value());
  EXPECT_EQ(opener_.attempts(), 0) << "nothing is initialized";
  WriteState();
  const auto recovered = Manager()->RecoverSession(session_, {});
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_TRUE(recovered->session.has_value());
  EXPECT_TRUE(recovered->initialized);
}

// SM-11
TEST_F(SessionManagerTest, RecoversWithNewLocalState) {
  WriteState();
  manager_.ready_for_local_init = UninitializedVariables;
  manager_.local_init = SetLocal();
  manager_.ready = LocalIsSet();
  EXPECT_TRUE(Manager()->RecoverSession(session_, {})->initialized);
  EXPECT_TRUE(local_is_set_);
}

// SM-12
TEST_F(SessionManagerTest, RecoversWithoutUnreadyLocalState) {
  WriteState();
  manager_.ready_for_local_init = LocalIsSet();
  manager_.local_init = SetLocal();
  const auto recovered = Manager()->RecoverSession(session_, {});
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_TRUE(recovered->session.has_value()) << "what was restored stays";
  EXPECT_FALSE(recovered->initialized);
  EXPECT_FALSE(local_is_set_);
}

// SM-08
TEST_F(SessionManagerTest, GivesUpOnAChiefThatDoesNotCome) {
  BeWorker();
  manager_.recovery_wait = absl::Seconds(1);
  for (int i = 0; i < 5; ++i) opener_.AddFailure(absl::UnavailableError("nobody listens"));
  const auto held = Manager()->WaitForSession(session_, absl::Seconds(3));
  EXPECT_TRUE(absl::IsDeadlineExceeded(held.status())) << held.status();
  EXPECT_THAT(held.status().message(), HasSubstr("not ready within 3s: nobody listens"));
  EXPECT_EQ(clock_.elapsed(), absl::Seconds(3));
  EXPECT_EQ(opener_.attempts(), 4);
  EXPECT_EQ(opener_.asked(1).max_wait, absl::Seconds(2)) << "what is left";
}

TEST_F(SessionManagerTest, TriesOnceWhereTheLimitIsShorterThanThePause) {
  BeWorker();
  opener_.AddFailure(absl::UnavailableError("nobody listens"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Manager()->WaitForSession(session_, absl::Seconds(2)).status()));
  EXPECT_EQ(opener_.attempts(), 1);
  EXPECT_EQ(clock_.elapsed(), absl::ZeroDuration());
}

// SM-14
TEST_F(SessionManagerTest, WaitsForTheModelThenMakesLocalState) {
  BeWorker();
  manager_.recovery_wait = absl::Seconds(1);
  manager_.ready_for_local_init = [this](Session&) -> absl::StatusOr<std::vector<std::string>> {
    if (opener_.opened() < 3) return std::vector<std::string>{"v"};
    return std::vector<std::string>();
  };
  manager_.local_init = SetLocal();
  const auto held = Manager()->WaitForSession(session_, absl::Seconds(3));
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_THAT(calls_, ElementsAre("local_init"));
  EXPECT_EQ(opener_.opened(), 3);
  EXPECT_EQ(opener_.live(), 1) << "those that were not ready are closed";
  EXPECT_EQ(clock_.elapsed(), absl::Seconds(2));
}

// SM-15
TEST_F(SessionManagerTest, GivesUpOnAGateThatOnlyLocalInitWouldOpen) {
  BeWorker();
  manager_.recovery_wait = absl::Seconds(1);
  manager_.ready_for_local_init = LocalIsSet();
  manager_.local_init = SetLocal();
  const auto held = Manager()->WaitForSession(session_, absl::Seconds(3));
  EXPECT_TRUE(absl::IsDeadlineExceeded(held.status()));
  EXPECT_THAT(held.status().message(), HasSubstr("not ready for local_init, not initialized: w"));
  EXPECT_EQ(opener_.live(), 0);
}

TEST_F(SessionManagerTest, PassesOnAnErrorOfLocalInitAndTheEndOfTheRun) {
  BeWorker();
  opener_.AddFailure(absl::OutOfRangeError("the run is over"));
  EXPECT_TRUE(absl::IsOutOfRange(Manager()->WaitForSession(session_).status()));
  manager_.local_init = [](Session&) { return absl::InternalError("no table"); };
  EXPECT_TRUE(absl::IsInternal(Manager()->WaitForSession(session_).status()));
}

// SM-16
TEST_F(SessionManagerTest, AWorkerWaitsForWhatLocalInitReads) {
  BeWorker();
  manager_.recovery_wait = absl::Seconds(1);
  int initialized_at = 3;
  manager_.local_init = [&](Session&) -> absl::Status {
    if (opener_.opened() >= initialized_at) return absl::OkStatus();
    return absl::FailedPreconditionError("Attempting to use uninitialized value v");
  };
  EXPECT_TRUE(Manager()->WaitForSession(session_, absl::Seconds(3)).ok());
  EXPECT_EQ(clock_.elapsed(), absl::Seconds(2));
  initialized_at = 1000;
  const absl::Status late = Manager()->WaitForSession(session_, absl::Seconds(3)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(late.message(), HasSubstr("not ready, in local_init: Attempting to use uninitialized value v"));
}

TEST_F(SessionManagerTest, EndsAWaitWhenTheProcessIsToStop) {
  StopSignal stop;
  stop.Request();
  session_.stop = &stop;
  BeWorker();
  opener_.AddFailure(absl::UnavailableError("nobody listens"));
  EXPECT_TRUE(absl::IsCancelled(Manager()->WaitForSession(session_).status()));
  EXPECT_EQ(clock_.elapsed(), absl::ZeroDuration());
}

TEST_F(SessionManagerTest, SaysWhichCallIsForWhom) {
  EXPECT_TRUE(absl::IsInvalidArgument(Manager()->WaitForSession(session_).status()));
  BeWorker();
  EXPECT_TRUE(absl::IsInvalidArgument(Manager()->PrepareSession(session_, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Manager()->RecoverSession(session_, {}).status()));
}

}  // namespace
}  // namespace lockstep::train
