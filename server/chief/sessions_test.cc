#include "lockstep/server/chief/sessions.h"

#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/config/settings_change.h"
#include "lockstep/common/contract/testing/declaration.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/server/chief/testing/chief_fixture.h"
#include "lockstep/server/sync/testing/frame_worker.h"
#include "lockstep/v1/data.pb.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

using SessionsTest = ChiefFixture;

v1::DataDigest Data(int64_t examples, uint32_t crc32c) {
  v1::DataDigest data;
  data.set_examples(examples);
  data.set_crc32c(crc32c);
  return data;
}

TEST_F(SessionsTest, ASessionIsNamedByWorkerAndIncarnation) {
  ASSERT_TRUE(Start().ok());
  const uint64_t first = OpenSession("a")->session_id();
  EXPECT_EQ(OpenSession("a")->session_id(), first);
  EXPECT_NE(OpenSession("a", FrameModel(), 2)->session_id(), first);
  EXPECT_NE(OpenSession("b")->session_id(), first);
}

TEST_F(SessionsTest, ASessionCannotBeGuessed) {
  draw_session_id_ = Chief::Options().machine.draw_session_id;
  ASSERT_TRUE(Start().ok());
  uint64_t first = 0, varies = 0;
  for (uint64_t incarnation = 0; incarnation < 64; ++incarnation) {
    const uint64_t id = OpenSession("a", FrameModel(), incarnation)->session_id();
    if (incarnation == 0) first = id;
    varies |= id ^ first;
  }
  EXPECT_EQ(varies, ~uint64_t{0}) << "every bit is drawn";
  worker_ = Connect(first);
  ASSERT_TRUE(worker_->Ask().ok());
  ASSERT_EQ(chief_->GetStatus().worker_size(), 1);
  EXPECT_EQ(chief_->GetStatus().worker(0).session_id(), first & 0xffff) << "only a part of it is logged";
}

TEST_F(SessionsTest, EverySessionHasAnIdOfItsOwn) {
  std::vector<uint64_t> draws = {9, 7, 7, 0, 7};
  draw_session_id_ = [&draws] {
    const uint64_t id = draws.back();
    draws.pop_back();
    return id;
  };
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(OpenSession("a")->session_id(), 7u);
  EXPECT_EQ(OpenSession("b")->session_id(), 9u);
}

TEST_F(SessionsTest, OffersUncompressedSharedMemory) {
  ASSERT_TRUE(Start().ok());
  EXPECT_FALSE(OpenSession("a")->has_shared_memory());
  share_memory_ = true;
  ASSERT_TRUE(Restart().ok());
  EXPECT_TRUE(chief_->sessions()->shares_memory());
  EXPECT_TRUE(OpenSession("a")->has_shared_memory());
  chief_.reset();
  logdir_ = "another";
  config_.mutable_compression()->set_values(config::v1::CompressionConfig::BFLOAT16);
  ASSERT_TRUE(Start().ok());
  EXPECT_FALSE(OpenSession("a")->has_shared_memory());
}

TEST_F(SessionsTest, AnotherModelIsRefusedWithTheFirstDifference) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a").ok());
  v1::ModelSpec other = FrameModel();
  other.mutable_variables(2)->set_shape(0, 65541);
  const auto status = OpenSession("b", other).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ContainsRegex("variable 3 is \"[^\"]*\" \\(65541\\) in b.*, \"[^\"]*\" \\(65540\\) in a"));
}

TEST_F(SessionsTest, OtherDataAreRefusedWithBothDigests) {
  data_ = Data(100, 0xabc);
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a").ok());
  EXPECT_TRUE(OpenSession("b").ok());
  for (const v1::DataDigest& other : {Data(101, 0xabc), Data(100, 0xdef)}) {
    data_ = other;
    const auto status = OpenSession("c@host").status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("c@host reads ", other.examples(), " examples with CRC32C 00000",
                                       absl::Hex(other.crc32c()), ", the run 100 examples with CRC32C 00000abc")));
  }
  data_.reset();
  EXPECT_THAT(std::string(OpenSession("d").status().message()), HasSubstr("d reads none, the run 100 examples"));
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::TRAINING);
}

TEST_F(SessionsTest, ARunWithoutDataRefusesThem) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a").ok());
  EXPECT_TRUE(OpenSession("b").ok());
  for (const bool restarted : {false, true}) {
    if (restarted) {
      data_.reset();
      ASSERT_TRUE(Restart().ok());
    }
    data_ = Data(1, 2);
    const auto status = OpenSession("c").status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("c reads 1 examples with CRC32C 00000002, the run none"));
  }
}

TEST_F(SessionsTest, ARestartedChiefKnowsTheRunsData) {
  data_ = Data(100, 0xabc);
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  ASSERT_TRUE(Restart().ok());
  data_ = Data(100, 0xdef);
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSession("a").status()));
  data_ = Data(100, 0xabc);
  EXPECT_TRUE(OpenSession("a").ok());
}

TEST_F(SessionsTest, TheFirstCanaryNeedsAllDigests) {
  ASSERT_TRUE(Start().ok());
  v1::OpenSessionRequest request;
  request.set_worker("a");
  *request.mutable_model() = FrameModel();
  CompleteDeclaration(&request);
  request.add_canary_digest(1);
  EXPECT_TRUE(absl::IsInvalidArgument(chief_->sessions()->OpenSession(request).status()));
  request.mutable_canary_digest()->RemoveLast();
  EXPECT_TRUE(chief_->sessions()->OpenSession(request).ok());
}

TEST_F(SessionsTest, AStreamIsForAWorkerThatHasComputedTheCanary) {
  ASSERT_TRUE(Start().ok());
  const auto session = OpenSession("a", FrameModel(), 1, /*canary=*/0).value();
  EXPECT_TRUE(session.canary_wanted());
  const auto open = [&] {
    return chief_->sessions()
        ->OpenStep(session.session_id(), chief_->generation(), ValuePath::kStreamed, nullptr)
        .status();
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(open()));
  const auto checked = OpenSession("a").value();
  EXPECT_EQ(checked.session_id(), session.session_id());
  EXPECT_FALSE(checked.canary_wanted());
  EXPECT_FALSE(OpenSession("a", FrameModel(), 1, /*canary=*/0)->canary_wanted()) << "once for each session";
  Connect(session.session_id());
}

TEST_F(SessionsTest, AStatusHasOnlyBuildsThatDiffer) {
  ASSERT_TRUE(Start().ok());
  const auto same = Connect(OpenSession("a")->session_id());
  v1::OpenSessionRequest request;
  request.set_worker("b");
  *request.mutable_model() = FrameModel();
  CompleteDeclaration(&request);
  request.mutable_build()->set_compiler("another compiler");
  const auto session = chief_->sessions()->OpenSession(request);
  ASSERT_TRUE(session.ok()) << session.status();
  const auto other = Connect(session->session_id());
  const v1::RunStatus status = chief_->GetStatus();
  ASSERT_EQ(status.worker_size(), 2);
  EXPECT_FALSE(status.worker(0).has_build()) << "it is the chief's";
  EXPECT_EQ(status.worker(1).build().compiler(), "another compiler");
}

TEST_F(SessionsTest, AStatusOfAThousandWorkersIsSmall) {
  constexpr int kWorkers = 1000;
  config_.mutable_training()->set_replicas_to_aggregate(kWorkers);
  ASSERT_TRUE(Start().ok());
  std::vector<std::unique_ptr<FrameWorker>> workers;
  for (int i = 0; i < kWorkers; ++i) {
    v1::OpenSessionRequest request;
    request.set_worker(absl::StrCat("worker-", i));
    request.set_host(absl::StrCat("node-", i));
    *request.mutable_model() = FrameModel();
    CompleteDeclaration(&request);
    const auto session = chief_->sessions()->OpenSession(request);
    ASSERT_TRUE(session.ok()) << session.status();
    workers.push_back(std::make_unique<FrameWorker>(
        session->session_id(), chief_->generation(), [&](std::shared_ptr<StepListener> listener) {
          return chief_->sessions()
              ->OpenStep(session->session_id(), chief_->generation(), ValuePath::kInProcess, std::move(listener),
                         /*peer=*/"", absl::StrCat("10.0.", i / 256, ".", i % 256, ":43210"))
              .value();
        }));
  }
  for (const auto& worker : workers) {
    ASSERT_TRUE(worker->Ask().ok());
    worker->connection()->CountSent(1 << 30);
  }
  // The first worker computes the first step alone. Then each worker gets a slot.
  ASSERT_TRUE(workers[0]->Push().ok());
  clock_.Advance(absl::Seconds(1));
  const v1::RunStatus status = chief_->GetStatus();
  ASSERT_EQ(status.worker_size(), kWorkers);
  int computing = 0;
  for (const v1::WorkerStatus& worker : status.worker()) computing += worker.slot_count() > 0 ? 1 : 0;
  EXPECT_GE(computing, kWorkers - 1);
  // Contributions add the fields last_step_seconds, accepted and bytes_received, and the ids of real sessions are a
  // byte longer.
  constexpr size_t kOtherBytes = 20;
  EXPECT_LE(status.ByteSizeLong() + kOtherBytes * kWorkers, 100000);
}

TEST_F(SessionsTest, OnlyACheckedSessionMayAddSummaries) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  const auto session = OpenSession("stranger", FrameModel(), 1, /*canary=*/0).value();
  v1::Summary summary;
  summary.add_value()->set_tag("mine");
  v1::AddSummaryRequest request;
  request.set_session_id(session.session_id() + 1);
  request.set_generation(session.generation());
  request.set_summary(summary.SerializeAsString());
  EXPECT_TRUE(absl::IsAborted(chief_->sessions()->AddSummary(request).status()));
  request.set_session_id(session.session_id());
  EXPECT_TRUE(absl::IsFailedPrecondition(chief_->sessions()->AddSummary(request).status()));
  ASSERT_TRUE(OpenSession("stranger").ok());
  EXPECT_TRUE(chief_->sessions()->AddSummary(request).ok());
  request.set_global_step(17);
  EXPECT_TRUE(chief_->sessions()->AddSummary(request).ok());
  request.set_summary("no summary");
  EXPECT_TRUE(absl::IsInvalidArgument(chief_->sessions()->AddSummary(request).status()));
  worker_.reset();
  chief_.reset();
  const std::vector<std::string> events = Events(0);
  EXPECT_THAT(events, testing::Contains("mine 2"));
  EXPECT_THAT(events, testing::Contains("mine 17"));
}

TEST_F(SessionsTest, OnlyACheckedSessionMayEndTheRun) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  const auto session = OpenSession("stranger", FrameModel(), 1, /*canary=*/0).value();
  v1::RequestEndRequest request;
  request.set_session_id(session.session_id());
  request.set_generation(session.generation());
  const absl::Status refused = chief_->sessions()->RequestFinish(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  TrainTo(4);
  EXPECT_EQ(chief_->GetStatus().global_step(), 4) << "the run continues";
  ASSERT_TRUE(OpenSession("stranger").ok());
  EXPECT_TRUE(chief_->sessions()->RequestFinish(request).ok());
}

TEST_F(SessionsTest, TheFirstCanaryIsTheRunsAlsoAfterARestart) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a", FrameModel(), 1, /*canary=*/0).ok());
  EXPECT_FALSE(Record().has_canary());
  ASSERT_TRUE(OpenSession("a", FrameModel(), 1, /*canary=*/5).ok());
  EXPECT_EQ(Record().canary().result(0).digest(), 5u);
  ASSERT_TRUE(Restart().ok());
  const absl::Status status = OpenSession("b", FrameModel(), 1, /*canary=*/6).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("of b differs from that of a"));
  EXPECT_TRUE(OpenSession("b", FrameModel(), 2, /*canary=*/5).ok());
}

TEST_F(SessionsTest, GivesTheValuesOfTheCanaryPieceByPiece) {
  v1::ModelSpec model;
  v1::VariableSpec* const large = model.add_variables();
  large->set_name("large");
  large->set_dtype(v1::DT_FLOAT);
  large->add_shape(600000);
  large->set_trainable(true);
  ASSERT_TRUE(Start().ok());
  const auto session = OpenSession("a", model).value();
  v1::GetCanaryValuesRequest request;
  request.set_session_id(session.session_id());
  request.set_generation(session.generation());
  std::string values;
  int calls = 0;
  for (; values.size() < 600000 * sizeof(float); ++calls) {
    const auto reply = chief_->sessions()->GetCanaryValues(request);
    ASSERT_TRUE(reply.ok()) << reply.status();
    for (const v1::TensorPiece& piece : reply->value()) {
      EXPECT_EQ(piece.offset() * sizeof(float), values.size());
      values += piece.content();
    }
    request.set_first_segment(request.first_segment() + reply->value_size());
  }
  EXPECT_EQ(calls, 3) << "1 MiB each";
  EXPECT_TRUE(absl::IsInvalidArgument(chief_->sessions()->GetCanaryValues(request).status()))
      << "there is no further segment";
  request.set_session_id(request.session_id() + 1);
  EXPECT_TRUE(absl::IsAborted(chief_->sessions()->GetCanaryValues(request).status()));
}

TEST_F(SessionsTest, IntegersOfTheCanaryAreZero) {
  v1::ModelSpec model = FrameModel();
  v1::VariableSpec* const seen = model.add_variables();
  seen->set_name("seen");
  seen->set_dtype(v1::DT_INT64);
  seen->add_shape(3);
  ASSERT_TRUE(Start().ok());
  const auto session = OpenSession("a", model).value();
  v1::GetCanaryValuesRequest request;
  request.set_session_id(session.session_id());
  request.set_generation(session.generation());
  const auto reply = chief_->sessions()->GetCanaryValues(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  const v1::TensorPiece& piece = reply->value(reply->value_size() - 1);
  EXPECT_EQ(piece.dtype(), v1::DT_INT64);
  EXPECT_EQ(piece.content(), std::string(24, '\0'));
  EXPECT_EQ(reply->value(0).dtype(), v1::DT_INVALID) << "absent for float32";
}

TEST_F(SessionsTest, RefusesAWorkerOfAnotherWireVersion) {
  ASSERT_TRUE(Start().ok());
  v1::OpenSessionRequest request;
  request.set_worker("old");
  *request.mutable_model() = FrameModel();
  EXPECT_TRUE(absl::IsFailedPrecondition(chief_->sessions()->OpenSession(request).status()));
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::WAITING_FOR_MODEL) << "it declares nothing";
}

TEST_F(SessionsTest, AnOlderRecordTakesFirstWorkersData) {
  config_.mutable_input()->add_split()->set_name("train");
  data_ = Data(100, 0xabc);
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  worker_.reset();
  chief_.reset();
  v1::RunRecord record;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(*ReadFile(&memory_, "logdir/lockstep.textproto"), &record));
  EXPECT_EQ(record.data().examples(), 100);
  EXPECT_EQ(record.data().crc32c(), 0xabcu);
  record.clear_data();
  std::string text;
  google::protobuf::TextFormat::PrintToString(record, &text);
  ASSERT_TRUE(WriteFileAtomically(&memory_, "logdir/lockstep.textproto", text).ok());
  ASSERT_TRUE(Start().ok());

  // A request with a different model declares nothing, and neither does one whose declaration cannot be recorded.
  v1::ModelSpec other = FrameModel();
  other.mutable_variables(2)->set_shape(0, 65541);
  data_ = Data(1, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSession("a", other).status()));
  fs_.FailMatching(FaultyFileSystem::Operation::kRename, "lockstep.textproto",
                   absl::ResourceExhaustedError("the disk is full"));
  EXPECT_TRUE(absl::IsResourceExhausted(OpenSession("a").status()));
  fs_.Heal();
  data_ = Data(100, 0xdef);
  ASSERT_TRUE(OpenSession("a").ok());
  data_ = Data(100, 0xabc);
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSession("b").status()));
  ASSERT_TRUE(Restart().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSession("b").status()));
  data_ = Data(100, 0xdef);
  EXPECT_TRUE(OpenSession("b").ok());
}

TEST_F(SessionsTest, ADeclarationAfterTheEndKeepsTheEndOnRecord) {
  config_.mutable_input()->add_split()->set_name("train");
  data_ = Data(100, 0xabc);
  ASSERT_TRUE(Start().ok());
  TrainTo(10);
  ASSERT_TRUE(WaitForEnd().ok());
  EXPECT_TRUE(Record().finished());
  v1::RunRecord record = Record();
  record.clear_data();
  WriteRecord(record);
  ASSERT_TRUE(Restart().ok());
  EXPECT_FALSE(Record().finished()) << "this incarnation has its own end";
  std::thread time([&] {
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Seconds(2));
  });
  EXPECT_TRUE(chief_->ends()->Wait().ok());
  time.join();
  EXPECT_TRUE(Record().finished());
  ASSERT_TRUE(OpenSession("late").ok());
  EXPECT_EQ(Record().data().examples(), 100);
  EXPECT_TRUE(Record().finished());
}

TEST_F(SessionsTest, FunctionsMayDifferAfterAGoodEnd) {
  ASSERT_TRUE(Start().ok());
  TrainTo(10);
  ASSERT_TRUE(WaitForEnd().ok());
  config_.mutable_training()->set_steps(20);
  ASSERT_TRUE(Restart().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSession("a", FrameModel(), 1, 2).status()))
      << "no program follows the run";
  followed_ = true;
  ASSERT_TRUE(Restart().ok());
  ASSERT_TRUE(OpenSession("b", FrameModel(), 1, 2).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSession("a").status())) << "the first worker of this life decides";
  ASSERT_EQ(Record().program_change_size(), 1);
  EXPECT_EQ(Record().program_change(0).step(), 10);
  // If the chief is killed before it commits a step, the program may change back.
  ASSERT_TRUE(Restart().ok());
  ASSERT_TRUE(OpenSession("a").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSession("b", FrameModel(), 1, 2).status()));
}

TEST_F(SessionsTest, ClipsPerSlotNeedAWorkerThatApplies) {
  config_.mutable_optimizer()->mutable_clip()->set_by_norm(1);
  ASSERT_TRUE(Start().ok());
  v1::OpenSessionRequest request;
  request.set_worker("b");
  *request.mutable_model() = FrameModel();
  CompleteDeclaration(&request);
  request.set_transforms_gradients(false);
  EXPECT_TRUE(absl::IsFailedPrecondition(chief_->sessions()->OpenSession(request).status()));
  request.set_transforms_gradients(true);
  EXPECT_TRUE(chief_->sessions()->OpenSession(request).ok());
}

// If settings change at every step, a worker that joins never has the newest ones.
TEST_F(SessionsTest, AWorkerMayJoinWithEarlierSettings) {
  followed_ = true;
  config_.clear_input();
  config_.mutable_optimizer()->mutable_learning_rate()->set_initial(0.5f);
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a").ok());
  for (const float norm : {1.f, 2.f, 3.f}) {
    SettingsChange change;
    change.optimizer = config_.optimizer();
    change.optimizer->mutable_clip()->set_by_norm(norm);
    const absl::Status changed = chief_->changes()->ChangeSettings(change);
    ASSERT_TRUE(changed.ok()) << changed;
  }
  const auto join = [this](const std::string& worker, int64_t changes, uint64_t canary) {
    v1::OpenSessionRequest request;
    request.set_worker(worker);
    request.set_incarnation(1);
    *request.mutable_model() = FrameModel();
    request.set_changes(changes);
    CompleteDeclaration(&request, canary);
    return chief_->sessions()->OpenSession(request).status();
  };
  EXPECT_TRUE(join("b", 0, 1).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(join("c", 0, 2))) << "it computes other bits than a with the same settings";
  EXPECT_TRUE(join("d", 2, 3).ok()) << "nobody has declared anything for these";
  EXPECT_TRUE(absl::IsAborted(join("e", 4, 1))) << "there are none yet";
  EXPECT_TRUE(join("e", 3, 4).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(join("f", 3, 5))) << "e has declared";
  ASSERT_TRUE(Restart().ok());
  EXPECT_TRUE(absl::IsAborted(join("g", 2, 3))) << "this incarnation cannot send what changed since";
  EXPECT_TRUE(join("g", 3, 4).ok());
}

TEST_F(SessionsTest, AWrongFirstModelLeavesTheRunToTheNextWorker) {
  ASSERT_TRUE(Start().ok());
  v1::ModelSpec wrong = FrameModel();
  wrong.mutable_variables(0)->set_shape(0, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(OpenSession("a", wrong).status()));
  wrong.mutable_variables(0)->set_shape(0, int64_t{1} << 36);
  EXPECT_TRUE(absl::IsResourceExhausted(OpenSession("a", wrong).status()));
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::WAITING_FOR_MODEL);
  EXPECT_TRUE(OpenSession("b").ok());
}

TEST_F(SessionsTest, RefusesAModelBeyondTheControlGroup) {
  // In addition to the process's own 96 MiB, the limit has room for two versions of the variables and the optimizer
  // state, but not for the third one that exists while a checkpoint is saved.
  for (const std::string directory : {"/proc/self", "/sys/fs/cgroup/run"}) {
    ASSERT_TRUE(memory_.CreateDirectory(directory).ok());
  }
  ASSERT_TRUE(WriteFileAtomically(&memory_, "/proc/self/cgroup", "0::/run\n").ok());
  ASSERT_TRUE(WriteFileAtomically(&memory_, "/sys/fs/cgroup/run/memory.max", "102663296\n").ok());
  ASSERT_TRUE(Start().ok());
  const absl::Status status = OpenSession("a").status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::ContainsRegex("need 2[0-9]{6} bytes of memory, the rest of the "
                                                                      "chief 100663296, /sys/fs/cgroup/run/memory.max "
                                                                      "has 102663296"));
  logdir_.clear();
  ASSERT_TRUE(Restart().ok());
  EXPECT_TRUE(OpenSession("a").ok());
}

TEST_F(SessionsTest, AStartThatFailsMidwayCanBeRetried) {
  ASSERT_TRUE(Start().ok());
  const int64_t before = fs_.operations();
  ASSERT_TRUE(OpenSession("a").ok());
  ASSERT_TRUE(chief_->training()->Save().ok());
  const int64_t operations = fs_.operations() - before;
  for (int64_t n = 1; n <= operations; ++n) {
    logdir_ = absl::StrCat("logdir-", n);
    chief_.reset();
    ASSERT_TRUE(Start().ok());
    fs_.FailOperation(n, absl::ResourceExhaustedError("the disk is full"));
    const auto first = OpenSession("a");
    fs_.Heal();
    const auto second = OpenSession("a");
    ASSERT_TRUE(second.ok()) << "operation " << n << ": " << second.status();
    EXPECT_TRUE(first.ok() || absl::IsResourceExhausted(first.status())) << first.status();
    ASSERT_TRUE(chief_->training()->Save().ok()) << "operation " << n;
    EXPECT_EQ(chief_->GetStatus().checkpoint(), logdir_ + "/model.ckpt-0");
  }
}

// ERR-01
TEST_F(SessionsTest, CallsOfAnOlderGenerationAreAborted) {
  ASSERT_TRUE(Start().ok());
  const uint64_t session = OpenSession("a")->session_id();
  ASSERT_TRUE(Restart().ok());
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_session_id(session);
  heartbeat.set_generation(1);
  const auto status = chief_->sessions()->Heartbeat(heartbeat).status();
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("of generation 1 is unknown; the chief's generation is 2"));
  EXPECT_TRUE(absl::IsAborted(chief_->sessions()->OpenStep(session, 1, ValuePath::kStreamed, nullptr).status()));
  heartbeat.set_generation(2);
  EXPECT_TRUE(absl::IsAborted(chief_->sessions()->Heartbeat(heartbeat).status()))
      << "the session belongs to the previous incarnation";
}

// ERR-05
TEST_F(SessionsTest, ARestartedWorkerContinuesAtThisStep) {
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  worker_.reset();
  const auto session = OpenSession("worker-0", FrameModel(), /*incarnation=*/2);
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(session->global_step(), 3);
  worker_ = Connect(session->session_id());
  ASSERT_TRUE(worker_->Ask().ok());
  EXPECT_EQ(worker_->token()->step(), 3);
  EXPECT_EQ(worker_->values_step(), 3);
}

TEST_F(SessionsTest, AChiefWithoutItsLogdirIsUnavailable) {
  for (const bool first : {true, false}) {
    ASSERT_TRUE(Restart().ok());
    // Worker a declares no canary, so worker b has to declare one.
    if (!first) {
      ASSERT_TRUE(OpenSession("a", FrameModel(), /*incarnation=*/1, /*canary=*/0).ok());
    }
    ASSERT_TRUE(WriteFileAtomically(&memory_, "logdir/generation", "7\n").ok());
    const auto opened = OpenSession("b");
    EXPECT_TRUE(absl::IsUnavailable(opened.status())) << opened.status();
    if (first) {
      EXPECT_FALSE(ReadRunRecord(&memory_, "logdir").value().has_value());
    } else {
      EXPECT_EQ(Record().canary().result_size(), 0);
    }
  }
}

TEST_F(SessionsTest, SessionsWithoutAStreamExpire) {
  ASSERT_TRUE(Start().ok());
  const uint64_t silent = OpenSession("silent")->session_id();
  const uint64_t beating = OpenSession("beating")->session_id();
  TrainTo(1);
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_generation(1);
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(absl::Seconds(30));
    chief_->Housekeep();
    heartbeat.set_session_id(beating);
    EXPECT_TRUE(chief_->sessions()->Heartbeat(heartbeat).ok());
  }
  EXPECT_TRUE(absl::IsAborted(chief_->sessions()->OpenStep(silent, 1, ValuePath::kStreamed, nullptr).status()));
  EXPECT_TRUE(worker_->Push().ok()) << "a session with a stream stays";
  EXPECT_NE(OpenSession("silent")->session_id(), silent);
}

TEST_F(SessionsTest, AFloodOfSessionsDoesNotGrowForEver) {
  ASSERT_TRUE(Start().ok());
  TrainTo(1);
  const uint64_t first = OpenSession("flood", FrameModel(), 2)->session_id();
  uint64_t last = 0;
  for (uint64_t i = 0; i < 5000; ++i) {
    clock_.Advance(absl::Microseconds(1));
    last = OpenSession("flood", FrameModel(), 10 + i)->session_id();
  }
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_generation(1);
  heartbeat.set_session_id(first);
  EXPECT_TRUE(absl::IsAborted(chief_->sessions()->Heartbeat(heartbeat).status()))
      << "the least recently used session was removed";
  heartbeat.set_session_id(last);
  EXPECT_TRUE(chief_->sessions()->Heartbeat(heartbeat).ok());
  EXPECT_TRUE(worker_->Push().ok());
}

TEST_F(SessionsTest, AGiantNameIsRefused) {
  ASSERT_TRUE(Start().ok());
  const auto status = OpenSession(std::string(1 << 20, 'x')).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("1048576 bytes; at most 256"));
}

// The lines that are logged.
class LogLines : public google::LogSink {
 public:
  LogLines() { google::AddLogSink(this); }
  ~LogLines() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char*, int, const struct ::tm*, const char* message,
            size_t size) override {
    MutexLock lock(&mutex_);
    text_ += std::string(message, size) + "\n";
  }
  std::string text() const {
    MutexLock lock(&mutex_);
    return text_;
  }

 private:
  mutable Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

// Calls of workers that bring a value of FrameModel's "w".
class InitialValuesTest : public ChiefFixture {
 protected:
  static std::string Bytes(const std::vector<float>& w) {
    return std::string(reinterpret_cast<const char*>(w.data()), w.size() * sizeof(float));
  }
  static std::string DigestOf(const std::vector<float>& w) {
    VariablesDigest digest;
    digest.Begin("w", v1::DT_FLOAT, {3}, 12);
    digest.AddContent(Bytes(w));
    return digest.Hex();
  }
  // Without values, if `digest` is empty.
  absl::StatusOr<v1::OpenSessionReply> Open(const std::string& worker, const std::string& digest) {
    v1::OpenSessionRequest request;
    request.set_worker(worker);
    request.set_incarnation(1);
    *request.mutable_model() = FrameModel();
    request.set_initial_values_digest(digest);
    CompleteDeclaration(&request);
    if (!knows_canary_) request.clear_canary_digest();
    return chief_->sessions()->OpenSession(request);
  }
  // Sends the value, after `session` has asked for it.
  absl::Status Send(const v1::OpenSessionReply& session, const std::vector<float>& w) {
    v1::SetInitialValuesRequest request;
    request.set_session_id(session.session_id());
    request.set_generation(session.generation());
    request.add_value()->set_content(Bytes(w));
    request.set_end(true);
    return chief_->sessions()->SetInitialValues(request).status();
  }
  // Opens the first session of the run, with values.
  absl::StatusOr<v1::OpenSessionReply> Bring(const std::string& worker, const std::vector<float>& w) {
    const auto wanted = Open(worker, DigestOf(w));
    if (!wanted.ok()) return wanted;
    EXPECT_TRUE(wanted->initial_values_wanted());
    const absl::Status sent = Send(*wanted, w);
    if (!sent.ok()) return sent;
    return Open(worker, DigestOf(w));
  }
  std::string ValueOfW() {
    v1::ReadVariablesRequest request;
    request.add_name("w");
    return chief_->ReadVariables(request)->part(0).content();
  }

  bool knows_canary_ = true;
};

TEST_F(InitialValuesTest, NewRunStartsFromItsFirstWorkersValues) {
  ASSERT_TRUE(Start().ok());
  const std::string digest = DigestOf({1, 2, 3});
  const auto wanted = Open("a", digest);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  EXPECT_TRUE(wanted->initial_values_wanted());
  EXPECT_TRUE(absl::IsUnavailable(Open("b", "").status())) << "it would declare the run";
  ASSERT_TRUE(Send(*wanted, {1, 2, 3}).ok());
  LogLines log;
  const auto session = Open("a", digest);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(log.text(), HasSubstr("starts from the initial values " + digest + ", which a brought"));
  EXPECT_FALSE(session->initial_values_wanted());
  EXPECT_EQ(session->initial_values_digest(), digest);
  EXPECT_EQ(ValueOfW(), Bytes({1, 2, 3}));
  EXPECT_EQ(Record().initial_values().digest(), digest);
  EXPECT_EQ(Record().initial_values().brought_by(), "a");
  EXPECT_TRUE(HasCheckpoint(0)) << "only the worker could make the values again";
  EXPECT_TRUE(absl::IsAborted(Send(*wanted, {1, 2, 3}))) << "the run has begun";

  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(ValueOfW(), Bytes({1, 2, 3}));
  EXPECT_EQ(Open("b", "")->initial_values_digest(), digest);
  EXPECT_EQ(Record().initial_values().digest(), digest);
}

TEST_F(InitialValuesTest, WorkerWithOthersIsTold) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(Bring("a", {1, 2, 3}).ok());
  knows_canary_ = false;
  LogLines log;
  const auto session = Open("b", DigestOf({4, 5, 6}));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_FALSE(session->initial_values_wanted());
  EXPECT_EQ(session->initial_values_digest(), DigestOf({1, 2, 3}));
  EXPECT_THAT(log.text(),
              HasSubstr("b brings the initial values " + DigestOf({4, 5, 6}) +
                        ", which are not used: the run began from " + DigestOf({1, 2, 3}) + ", which a brought"));
  EXPECT_EQ(ValueOfW(), Bytes({1, 2, 3}));
}

TEST_F(InitialValuesTest, RunThatBeganWithoutTakesNone) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(Open("a", "").ok());
  EXPECT_EQ(Open("b", DigestOf({1, 2, 3}))->initial_values_digest(), "");
  ASSERT_TRUE(Restart().ok());
  EXPECT_FALSE(Open("b", DigestOf({1, 2, 3}))->initial_values_wanted());
  EXPECT_FALSE(Record().has_initial_values());
}

TEST_F(InitialValuesTest, UnsavedValuesLeaveNoRun) {
  fs_.FailMatching(FaultyFileSystem::Operation::kCreate, "model.ckpt-0", absl::ResourceExhaustedError("full"));
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Bring("a", {1, 2, 3}).status()));
  EXPECT_EQ(Record().initial_values().digest(), DigestOf({1, 2, 3}));
  fs_.Heal();
  ASSERT_TRUE(Restart().ok());
  ASSERT_TRUE(Bring("b", {4, 5, 6}).ok()) << "no worker had a session";
  EXPECT_EQ(Record().initial_values().brought_by(), "b");
  EXPECT_EQ(ValueOfW(), Bytes({4, 5, 6}));
}

TEST_F(InitialValuesTest, ValuesInACheckpointStay) {
  fs_.FailMatching(FaultyFileSystem::Operation::kRename, "logdir/checkpoint", absl::ResourceExhaustedError("full"));
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Bring("a", {1, 2, 3}).status()));
  EXPECT_TRUE(HasCheckpoint(0)) << "only the state file is missing";
  fs_.Heal();
  const auto session = Bring("b", {4, 5, 6});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->initial_values_digest(), DigestOf({1, 2, 3}));
  EXPECT_EQ(Record().initial_values().brought_by(), "a");
  EXPECT_EQ(ValueOfW(), Bytes({1, 2, 3}));
}

TEST_F(InitialValuesTest, FailedSaveLeavesNoOrderOfArrival) {
  config_.mutable_training()->mutable_async();
  config_.mutable_training()->set_replicas_to_aggregate(1);
  config_.mutable_training()->set_record_order(true);
  fs_.FailMatching(FaultyFileSystem::Operation::kCreate, "model.ckpt-0", absl::ResourceExhaustedError("full"));
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Bring("a", {1, 2, 3}).status()));
  fs_.Heal();
  const auto session = Bring("b", {4, 5, 6});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(Record().initial_values().brought_by(), "b");
  EXPECT_TRUE(memory_.Exists("logdir/arrivals-1").value());
}

TEST_F(InitialValuesTest, ReplacedChiefEndsNoWorker) {
  ASSERT_TRUE(Start().ok());
  hanging_.Hang("model.ckpt-0");
  std::thread successor([this] {
    hanging_.AwaitHanging();
    EXPECT_TRUE(WriteFileAtomically(&memory_, "logdir/generation", "2\n").ok());
    hanging_.Release();
  });
  const absl::Status status = Bring("a", {1, 2, 3}).status();
  successor.join();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("it has entered generation 2"));
}

TEST_F(InitialValuesTest, OthersDoNotOccupyTheDeclaration) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(Open("a", DigestOf({1, 2, 3})).ok());
  fs_.FailMatching(FaultyFileSystem::Operation::kOpen, "logdir/generation", absl::InternalError("a declaration reads"));
  EXPECT_TRUE(absl::IsUnavailable(Open("b", DigestOf({4, 5, 6})).status()));
  EXPECT_TRUE(absl::IsUnavailable(Open("c", "").status()));
  EXPECT_TRUE(absl::IsInternal(Open("a", DigestOf({1, 2, 3})).status())) << "a declares the run";
}

TEST_F(InitialValuesTest, FilesOfOthersAreNoCheckpoints) {
  ASSERT_TRUE(memory_.CreateDirectory("logdir").ok());
  ASSERT_TRUE(WriteFileAtomically(&memory_, "logdir/export-3.index", "").ok());
  fs_.FailMatching(FaultyFileSystem::Operation::kCreate, "model.ckpt-0", absl::ResourceExhaustedError("full"));
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Bring("a", {1, 2, 3}).status())) << "a new run takes values";
  fs_.Heal();
  ASSERT_TRUE(Restart().ok());
  ASSERT_TRUE(Bring("b", {4, 5, 6}).ok()) << "the first values are in no checkpoint";
  EXPECT_EQ(ValueOfW(), Bytes({4, 5, 6}));
}

TEST_F(InitialValuesTest, RefusesValuesThatCannotBe) {
  ASSERT_TRUE(Start().ok());
  const auto digest = Open("a", "12").status();
  EXPECT_TRUE(absl::IsInvalidArgument(digest));
  EXPECT_THAT(std::string(digest.message()), HasSubstr("has 2 bytes; must be 64 hexadecimal digits"));
  EXPECT_TRUE(absl::IsInvalidArgument(Open("a", std::string(64, 'A')).status()));
  const float infinity = std::numeric_limits<float>::infinity();
  const auto infinite = Bring("a", {1, infinity, 3}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(infinite)) << infinite;
  EXPECT_THAT(std::string(infinite.message()), HasSubstr("w"));
  v1::SetInitialValuesRequest request;
  request.set_generation(chief_->generation() + 1);
  EXPECT_TRUE(absl::IsAborted(chief_->sessions()->SetInitialValues(request).status()));
  EXPECT_TRUE(Bring("a", {1, 2, 3}).ok()) << "another attempt";
}

}  // namespace
}  // namespace lockstep
