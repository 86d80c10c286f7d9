#include "lockstep/server/chief/chief.h"

#include <xmmintrin.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/server/chief/testing/chief_fixture.h"
#include "lockstep/server/chief/training.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ChiefTest = ChiefFixture;

TEST_F(ChiefTest, IsNotMadeWhereFloatsWouldHaveOtherBits) {
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040);
  const absl::Status status = Start();
  _mm_setcsr(mode);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("-ffast-math"));
  EXPECT_TRUE(Start().ok()) << "the logdir is free";
}

TEST_F(ChiefTest, AFirstStartWaitsForAModelAndSavesAtOnce) {
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(chief_->sessions()->GetRunSpec().generation(), 1);
  EXPECT_EQ(chief_->sessions()->GetRunSpec().spec().training().seed(), 7u);
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::WAITING_FOR_MODEL);
  EXPECT_THAT(chief_->GetStatus().message(), HasSubstr("waiting for a worker"));
  chief_->Housekeep();
  const auto session = OpenSession("worker-0");
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->global_step(), 0);
  EXPECT_EQ(session->generation(), 1);
  EXPECT_EQ(session->piece_elements(), 65536u);
  EXPECT_EQ(session->lease_seconds(), 2);
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::TRAINING);
  ASSERT_TRUE(chief_->training()->Save().ok());
  EXPECT_EQ(chief_->GetStatus().checkpoint(), "logdir/model.ckpt-0");
}

TEST_F(ChiefTest, NamesItsBuildAndResumesARunOfAnother) {
  ASSERT_TRUE(Start().ok());
  const v1::BuildInfo build = chief_->GetStatus().build();
  EXPECT_FALSE(build.version().empty());
  EXPECT_GE(build.arithmetic_version(), 1);
  TrainAndSave(2);
  worker_.reset();
  chief_.reset();
  v1::RunRecord record = Record();
  EXPECT_EQ(record.build().SerializeAsString(), build.SerializeAsString());
  record.mutable_build()->set_version("0.0.1");
  WriteRecord(record);
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(OpenSession("a").ok());
  EXPECT_EQ(chief_->GetStatus().global_step(), 2);
}

TEST_F(ChiefTest, RefusesAnotherArithmeticsLogdir) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  worker_.reset();
  chief_.reset();
  v1::RunRecord record = Record();
  record.mutable_build()->set_arithmetic_version(99);
  WriteRecord(record);
  const absl::Status status = Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("arithmetic version 99"), HasSubstr("warm_start: \"logdir/model.ckpt-2\"")));
  EXPECT_EQ(accepted_, 1) << "not a second time";
  record.clear_build();  // older versions wrote none; they use arithmetic version 1
  WriteRecord(record);
  const absl::Status first = Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(first)) << first;
  EXPECT_THAT(std::string(first.message()), HasSubstr("arithmetic version 1, by Lockstep of an early version"));
}

TEST_F(ChiefTest, RunOfFrameworkOutlivesOtherLayers) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  worker_.reset();
  chief_.reset();
  v1::RunRecord record = Record();
  record.mutable_build()->set_layers_version(99);
  WriteRecord(record);
  const absl::Status status = Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("holds a run of layers version 99, by Lockstep "));
  record.mutable_framework()->set_name("PyTorch");
  WriteRecord(record);
  EXPECT_TRUE(Start().ok());
}

TEST_F(ChiefTest, ResumesARunOfAnotherRelease) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  v1::RunRecord record = Record();
  record.mutable_build()->set_version("0.0.1");
  record.add_model_part()->set_name("what that release called it");
  record.set_declared_by("its worker");
  WriteRecord(record);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Restart().ok());
  const auto opened = OpenSession("a");
  EXPECT_TRUE(opened.ok()) << opened.status();
}

TEST_F(ChiefTest, VariablesAreReadAtOneStepAndTrainingGoesOn) {
  ASSERT_TRUE(Start().ok());
  v1::ReadVariablesRequest request;
  EXPECT_TRUE(absl::IsUnavailable(chief_->ReadVariables(request).status())) << "no model yet";
  TrainTo(3);
  request.add_name("big");
  request.add_name("big/Adam");
  request.add_name("big/Adam_1");
  request.add_name("w");
  request.add_name("global_step");
  const auto reply = chief_->ReadVariables(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->step(), 3);
  EXPECT_EQ(reply->read_id(), last_session_) << "drawn as a session's";
  EXPECT_EQ(reply->part_size(), 5);
  EXPECT_EQ(reply->part(4).content(), std::string("\x03\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(reply->next_position(), 0);
  TrainTo(10);
  request.Clear();
  const auto finished = chief_->ReadVariables(request);
  ASSERT_TRUE(finished.ok()) << finished.status();
  EXPECT_EQ(finished->step(), 10) << "even after the end of the run";
  EXPECT_TRUE(WaitForEnd().ok());
  EXPECT_TRUE(chief_->ReadVariables(request).ok());
}

TEST_F(ChiefTest, AReadThatIsNotContinuedIsForgotten) {
  v1::ModelSpec model;
  v1::VariableSpec* const large = model.add_variables();
  large->set_name("large");
  large->set_dtype(v1::DT_FLOAT);
  large->add_shape(600000);
  large->set_trainable(true);
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a", model).ok());
  v1::ReadVariablesRequest request;
  request.add_name("large");
  const auto first = chief_->ReadVariables(request).value();
  EXPECT_NEAR(static_cast<double>(first.ByteSizeLong()), 1 << 20, 100);
  request.clear_name();
  request.set_read_id(first.read_id());
  request.set_position(first.next_position());
  ASSERT_TRUE(chief_->ReadVariables(request).ok());
  clock_.Advance(absl::Seconds(10));
  chief_->Housekeep();
  EXPECT_TRUE(absl::IsAborted(chief_->ReadVariables(request).status()));
}

// SM-06, ERR-06
TEST_F(ChiefTest, RestartResumesInANewGeneration) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  TrainTo(6);
  clock_.Advance(absl::Seconds(10));
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->generation(), 2);
  const v1::RunStatus status = chief_->GetStatus();
  EXPECT_EQ(status.global_step(), 4);
  EXPECT_EQ(status.phase(), v1::RunStatus::TRAINING) << "no worker needs to come first";
  EXPECT_EQ(status.checkpoint(), "logdir/model.ckpt-4");
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
  EXPECT_EQ(Events(1).front(), "START 5");
  const std::string resumed = Digest("logdir/model.ckpt-10");

  logdir_ = "other";
  ASSERT_TRUE(Restart().ok());
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
  EXPECT_EQ(Digest("other/model.ckpt-10"), resumed);
}

TEST_F(ChiefTest, ASecondChiefOnTheLogdirIsRefused) {
  ASSERT_TRUE(Start().ok());
  Chief::Options options;
  options.fs = &fs_;
  options.clock = &clock_;
  options.logdir = "logdir";
  options.config = config_;
  options.on_accepted = [this] {
    ++accepted_;
    return absl::OkStatus();
  };
  const auto status = Chief::Create(std::move(options)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(accepted_, 1) << "only the first";
  EXPECT_EQ(chief_->generation(), 1);
}

TEST_F(ChiefTest, RefusesADifferentFieldByItsName) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  config_.mutable_training()->set_seed(8);
  const absl::Status status = Restart();
  EXPECT_EQ(accepted_, 1) << "not by the run of another configuration";
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("training.seed: 7 -> 8"));
  config_.mutable_training()->set_seed(7);
  config_.mutable_training()->set_steps(12);
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(chief_->GetStatus().total_steps(), 12);
  EXPECT_EQ(chief_->GetStatus().global_step(), 2);
}

TEST_F(ChiefTest, ADamagedNewestCheckpointIsPassedOver) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  TrainAndSave(4);
  memory_.FlipBits("logdir/model.ckpt-4.data-00000-of-00001", 100, 1);
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->GetStatus().global_step(), 2);
  EXPECT_EQ(chief_->GetStatus().checkpoint(), "logdir/model.ckpt-2");
  v1::WatchRunReply watched;
  chief_->FillWatch(&watched);
  EXPECT_EQ(watched.counters().checkpoints_damaged(), 1);
  EXPECT_GT(watched.counters().memory_needed_bytes(), 0);
  EXPECT_GT(watched.counters().memory_limit_bytes(), watched.counters().memory_needed_bytes());
}

// SM-20
TEST_F(ChiefTest, LostCheckpointsDoNotStartFresh) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  worker_.reset();
  chief_.reset();
  for (const std::string& name : Files()) {
    if (absl::StartsWith(name, "model.ckpt-")) {
      ASSERT_TRUE(memory_.Remove(JoinPath("logdir", name)).ok());
    }
  }
  const absl::Status status = Start();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("logdir/model.ckpt-4"));
}

// SM-22
TEST_F(ChiefTest, ARestartedChiefGoesOnWithTheListOfCheckpoints) {
  config_.mutable_checkpoint()->set_keep(3);
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  TrainAndSave(4);
  ASSERT_TRUE(Restart().ok());
  TrainAndSave(6);
  const auto list = [this] {
    const auto state = ReadCheckpointState(&memory_, "logdir").value().value();
    return std::vector<std::string>(state.all_model_checkpoint_paths().begin(),
                                    state.all_model_checkpoint_paths().end());
  };
  EXPECT_THAT(list(), ElementsAre("logdir/model.ckpt-2", "logdir/model.ckpt-4", "logdir/model.ckpt-6"));
  TrainAndSave(8);
  EXPECT_THAT(list(), ElementsAre("logdir/model.ckpt-4", "logdir/model.ckpt-6", "logdir/model.ckpt-8"));
  EXPECT_FALSE(memory_.Exists("logdir/model.ckpt-2.index").value());
}

// WARM-09
TEST_F(ChiefTest, AWarmStartTakesTheVariablesOfAnotherRun) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  const float trained = worker_->value(0, 0);
  logdir_ = "warm";
  config_.mutable_checkpoint()->set_warm_start("logdir/model.ckpt-4");
  config_.mutable_training()->set_seed(9);
  ASSERT_TRUE(Restart().ok());
  TrainTo(0);
  EXPECT_EQ(worker_->values_step(), 0);
  EXPECT_EQ(worker_->value(0, 0), trained);
  config_.mutable_checkpoint()->set_warm_start("logdir/absent");
  logdir_ = "cold";
  ASSERT_TRUE(Restart().ok());
  EXPECT_TRUE(absl::IsNotFound(OpenSession("a").status()));
}

TEST_F(ChiefTest, WorksWithoutALogdir) {
  logdir_ = "";
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  chief_->Housekeep();
  EXPECT_TRUE(chief_->training()->Save().ok());
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
  EXPECT_TRUE(memory_.ListDirectory("/").value().empty());
}

}  // namespace
}  // namespace lockstep
