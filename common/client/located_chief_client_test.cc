#include "lockstep/common/client/located_chief_client.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/client/testing/fake_chief_client.h"
#include "lockstep/common/cluster/address_file.h"
#include "lockstep/common/cluster/replaced_chief.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Fixture with a simulated chief for each target. A chief returns the error that answers_ has for its target, if any.
class LocatedChiefClientTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(fs_.CreateDirectory("/run").ok()); }
  std::unique_ptr<LocatedChiefClient> New(const std::string& master) {
    return std::make_unique<LocatedChiefClient>(
        &fs_, ParseMasterAddress(master).value(),
        [this](const std::string& target, const ChiefClient::OnSilence& on_silence) {
          on_silence_ = on_silence;
          return NewClient(target);
        });
  }
  // Joins the chief of generation 1, whose lease is 3 s.
  void Join(LocatedChiefClient* client) {
    ASSERT_TRUE(client->GetRunSpec().ok());
    ASSERT_TRUE(client->OpenSession({}).ok());
    calls_.clear();
  }
  // Returns the result of `silence` during a heartbeat to the chief of generation 1.
  absl::Status Silence(absl::Duration silence) {
    v1::HeartbeatRequest heartbeat;
    heartbeat.set_generation(1);
    return on_silence_(heartbeat, silence);
  }
  void Write(const std::string& contents) { ASSERT_TRUE(WriteFileAtomically(&fs_, "/run/chief", contents).ok()); }

  // The targets of the calls, in order.
  std::vector<std::string> calls_;
  std::map<std::string, absl::Status> answers_;
  // The generations in replies to GetRunSpec; 1 if absent.
  std::map<std::string, int64_t> generations_;
  bool wants_initial_values_ = false;
  // Called during GetRunSpec, if set.
  std::function<void()> during_get_run_;
  // Passed to the factory.
  ChiefClient::OnSilence on_silence_;
  MemoryFileSystem fs_;

 private:
  class Recorded : public FakeChiefClient {
   public:
    Recorded(std::string target, LocatedChiefClientTest* test) : target_(std::move(target)), test_(test) {}
    absl::StatusOr<v1::GetRunSpecReply> GetRunSpec() override {
      test_->calls_.push_back("GetRunSpec " + target_);
      if (test_->during_get_run_) test_->during_get_run_();
      if (!test_->answers_[target_].ok()) return test_->answers_[target_];
      auto reply = FakeChiefClient::GetRunSpec();
      if (reply.ok()) reply->set_generation(std::max<int64_t>(test_->generations_[target_], 1));
      return reply;
    }
    absl::StatusOr<v1::OpenSessionReply> OpenSession(const v1::OpenSessionRequest& request) override {
      test_->calls_.push_back("OpenSession " + target_);
      wants_initial_values = test_->wants_initial_values_;
      return FakeChiefClient::OpenSession(request);
    }
    absl::StatusOr<v1::RunStatus> GetStatus() override {
      test_->calls_.push_back("GetStatus " + target_);
      if (!test_->answers_[target_].ok()) return test_->answers_[target_];
      return FakeChiefClient::GetStatus();
    }
    absl::StatusOr<v1::ReadVariablesReply> ReadVariables(const v1::ReadVariablesRequest&) override {
      test_->calls_.push_back("ReadVariables " + target_);
      if (!test_->answers_[target_].ok()) return test_->answers_[target_];
      return v1::ReadVariablesReply();
    }
    void CancelConnecting() override {
      // The found chief's connection is of no interest.
      if (target_ != "a:1") test_->calls_.push_back("CancelConnecting " + target_);
      FakeChiefClient::CancelConnecting();
    }

   private:
    const std::string target_;
    LocatedChiefClientTest* const test_;
  };

  std::unique_ptr<ChiefClient> NewClient(const std::string& target) {
    calls_.push_back("new " + target);
    return std::make_unique<Recorded>(target, this);
  }
};

TEST_F(LocatedChiefClientTest, NoLockIsHeldWhileAClientIsMade) {
  LocatedChiefClient* self = nullptr;
  LocatedChiefClient client(&fs_, ParseMasterAddress("a:1").value(),
                            [&self](const std::string&, const ChiefClient::OnSilence&) {
                              self->CancelConnecting();  // as another thread may
                              return std::make_unique<FakeChiefClient>();
                            });
  self = &client;
  EXPECT_TRUE(absl::IsCancelled(client.GetRunSpec().status()));
}

TEST_F(LocatedChiefClientTest, AReadStaysWhereItBegan) {
  answers_["a:1"] = absl::UnavailableError("connection refused");
  const auto client = New("a:1,b:2");
  v1::ReadVariablesRequest request;
  ASSERT_TRUE(client->ReadVariables(request).ok());
  calls_.clear();
  answers_["a:1"] = absl::OkStatus();
  request.set_read_id(7);
  ASSERT_TRUE(client->ReadVariables(request).ok());
  EXPECT_THAT(calls_, ElementsAre("ReadVariables b:2"));
  answers_["b:2"] = absl::UnavailableError("gone");
  EXPECT_TRUE(absl::IsUnavailable(client->ReadVariables(request).status()));
  request.clear_read_id();
  EXPECT_TRUE(client->ReadVariables(request).ok());
  EXPECT_THAT(calls_, ElementsAre("ReadVariables b:2", "ReadVariables b:2", "ReadVariables a:1"));
}

TEST_F(LocatedChiefClientTest, TriesTargetsInOrderKeepsTheAnswering) {
  answers_["a:1"] = absl::UnavailableError("connection refused");
  const auto client = New("a:1,b:2,c:3");
  ASSERT_TRUE(client->GetRunSpec().ok());
  ASSERT_TRUE(client->OpenSession({}).ok());
  EXPECT_THAT(calls_, ElementsAre("new a:1", "GetRunSpec a:1", "new b:2", "GetRunSpec b:2", "OpenSession b:2"));
  ASSERT_TRUE(client->Heartbeat({}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(client->OpenStepChannel({}, v1::ModelSpec()).status()))
      << "no model, but a chief";
}

TEST_F(LocatedChiefClientTest, EverySearchBeginsWithTheFirstTarget) {
  answers_["a:1"] = absl::UnavailableError("connection refused");
  const auto client = New("a:1,b:2");
  ASSERT_TRUE(client->GetRunSpec().ok());
  answers_["a:1"] = absl::OkStatus();
  calls_.clear();
  ASSERT_TRUE(client->GetRunSpec().ok());
  ASSERT_TRUE(client->OpenSession({}).ok());
  EXPECT_THAT(calls_, ElementsAre("GetRunSpec a:1", "OpenSession a:1")) << "and its connection is kept";
}

TEST_F(LocatedChiefClientTest, NamesEachTargetWithoutAnAnswer) {
  answers_["a:1"] = absl::UnavailableError("connection refused");
  answers_["b:2"] = absl::DeadlineExceededError("too late");
  const auto client = New("a:1,b:2");
  EXPECT_EQ(client->GetRunSpec().status(), absl::UnavailableError("a:1: connection refused; b:2: too late"));
  EXPECT_TRUE(absl::IsUnavailable(client->OpenSession({}).status())) << "there is no chief to ask";
}

TEST_F(LocatedChiefClientTest, AChiefThatRefusesIsTheChief) {
  answers_["a:1"] = absl::FailedPreconditionError("not now");
  const auto client = New("a:1,b:2");
  EXPECT_EQ(client->GetRunSpec().status(), answers_["a:1"]);
}

TEST_F(LocatedChiefClientTest, FollowsTheFile) {
  const auto client = New("file:/run/chief");
  EXPECT_TRUE(absl::IsUnavailable(client->GetRunSpec().status()));
  EXPECT_THAT(calls_, ElementsAre());
  Write(AddressLine("grpc://a:1"));
  ASSERT_TRUE(client->GetRunSpec().ok());
  Write(AddressLine("grpc://b:2"));
  ASSERT_TRUE(client->OpenSession({}).ok());
  ASSERT_TRUE(client->GetRunSpec().ok());
  ASSERT_TRUE(client->OpenSession({}).ok());
  EXPECT_THAT(calls_, ElementsAre("new a:1", "GetRunSpec a:1", "OpenSession a:1", "new b:2", "GetRunSpec b:2",
                                  "OpenSession b:2"));
  Write(EndLine(absl::OkStatus()));
  EXPECT_TRUE(absl::IsOutOfRange(client->GetRunSpec().status()));
  EXPECT_TRUE(IsEndOfRun(client->GetRunSpec().status()));
}

TEST_F(LocatedChiefClientTest, OnlyTheFileSaysThatTheRunIsOver) {
  answers_["a:1"] = absl::OutOfRangeError("the run is over");
  const auto client = New("a:1,b:2");
  EXPECT_EQ(client->GetRunSpec().status(), answers_["a:1"]);
  EXPECT_FALSE(IsEndOfRun(client->GetRunSpec().status()));
}

TEST_F(LocatedChiefClientTest, StatusComesFromTheFirstToAnswer) {
  answers_["a:1"] = absl::UnavailableError("connection refused");
  const auto client = New("a:1,b:2");
  EXPECT_TRUE(client->GetStatus().ok());
  answers_["b:2"] = absl::UnavailableError("gone");
  EXPECT_THAT(std::string(client->GetStatus().status().message()), HasSubstr("b:2: gone"));
}

// The standby replaces a frozen chief after a lease. By then, the workers must already be looking.
TEST_F(LocatedChiefClientTest, LooksForASuccessorWithinALease) {
  answers_["b:2"] = absl::UnavailableError("connection refused");
  const auto client = New("a:1,b:2");
  Join(client.get());
  EXPECT_TRUE(Silence(absl::Seconds(1.9)).ok());
  EXPECT_THAT(calls_, ElementsAre());
  EXPECT_TRUE(Silence(absl::Seconds(2)).ok());
  EXPECT_THAT(calls_, ElementsAre("new b:2", "GetRunSpec b:2")) << "it does not ask the silent chief";
  answers_["b:2"] = absl::OkStatus();
  EXPECT_TRUE(Silence(absl::Seconds(4)).ok()) << "generation 1 is the chief's own";
  generations_["b:2"] = 2;
  const absl::Status replaced = Silence(absl::Seconds(5));
  EXPECT_TRUE(IsChiefReplaced(replaced));
  EXPECT_EQ(replaced.message(), "the chief of generation 1 is silent, and that of generation 2 answers at b:2");
}

TEST_F(LocatedChiefClientTest, TheNextSearchBeginsWithTheSuccessor) {
  const auto client = New("a:1,b:2");
  Join(client.get());
  generations_["b:2"] = 2;
  EXPECT_TRUE(IsChiefReplaced(Silence(absl::Seconds(3))));
  calls_.clear();
  ASSERT_TRUE(client->GetRunSpec().ok());
  EXPECT_THAT(calls_, ElementsAre("GetRunSpec b:2")) << "over the same connection";
  answers_["b:2"] = absl::UnavailableError("gone");
  ASSERT_TRUE(client->GetRunSpec().ok());
  calls_.clear();
  ASSERT_TRUE(client->GetRunSpec().ok());
  EXPECT_THAT(calls_, ElementsAre("GetRunSpec a:1")) << "the successor is gone";
}

// The standby takes over the chief's address, as behind a service of Kubernetes.
TEST_F(LocatedChiefClientTest, ASharedAddressGetsANewConnection) {
  const auto client = New("a:1");
  Join(client.get());
  EXPECT_TRUE(Silence(absl::Seconds(3)).ok());
  EXPECT_THAT(calls_, ElementsAre("new a:1", "GetRunSpec a:1"));
  generations_["a:1"] = 2;
  EXPECT_TRUE(IsChiefReplaced(Silence(absl::Seconds(4))));
  calls_.clear();
  ASSERT_TRUE(client->GetRunSpec().ok());
  EXPECT_THAT(calls_, ElementsAre("GetRunSpec a:1"));
}

TEST_F(LocatedChiefClientTest, FindsTheSuccessorInTheFile) {
  Write(AddressLine("grpc://a:1"));
  const auto client = New("file:/run/chief");
  Join(client.get());
  generations_["b:2"] = 2;
  Write(AddressLine("grpc://b:2"));
  EXPECT_TRUE(IsChiefReplaced(Silence(absl::Seconds(3))));
  Write(EndLine(absl::OkStatus()));
  EXPECT_TRUE(IsChiefReplaced(Silence(absl::Seconds(4)))) << "the successor has finished the run";
}

// A standby rewrites the file after a lease. Until then a call to the frozen chief would only block.
TEST_F(LocatedChiefClientTest, AFileWithTheSilentChiefIsReadAgain) {
  Write(AddressLine("grpc://a:1"));
  const auto client = New("file:/run/chief");
  Join(client.get());
  EXPECT_TRUE(Silence(absl::Seconds(3.9)).ok());
  EXPECT_THAT(calls_, ElementsAre());
  EXPECT_TRUE(Silence(absl::Seconds(4)).ok());
  EXPECT_THAT(calls_, ElementsAre("new a:1", "GetRunSpec a:1")) << "the successor may have the same address";
}

TEST_F(LocatedChiefClientTest, AStoppedClientStopsWaiting) {
  const auto client = New("a:1,b:2");
  Join(client.get());
  client->CancelConnecting();
  EXPECT_TRUE(Silence(absl::Seconds(1.9)).ok());
  EXPECT_TRUE(absl::IsCancelled(Silence(absl::Seconds(3))));
  EXPECT_THAT(calls_, ElementsAre());
}

TEST_F(LocatedChiefClientTest, AStopEndsTheSearchForASuccessor) {
  const auto client = New("a:1,b:2,c:3");
  Join(client.get());
  during_get_run_ = [&client] { client->CancelConnecting(); };  // as another thread may
  EXPECT_TRUE(absl::IsCancelled(Silence(absl::Seconds(3))));
  EXPECT_THAT(calls_, ElementsAre("new b:2", "GetRunSpec b:2", "CancelConnecting b:2"));
}

TEST_F(LocatedChiefClientTest, NoSessionHasNoLease) {
  const auto client = New("a:1,b:2");
  Join(client.get());
  wants_initial_values_ = true;
  v1::OpenSessionRequest request;
  request.set_initial_values_digest("12");
  ASSERT_TRUE(client->OpenSession(request)->initial_values_wanted());
  calls_.clear();
  EXPECT_TRUE(Silence(absl::Seconds(1.9)).ok());
  EXPECT_THAT(calls_, ElementsAre()) << "the lease is that of the last session";
}

TEST_F(LocatedChiefClientTest, OneTargetNeedsNoSearch) {
  answers_["a:1"] = absl::UnavailableError("connection refused");
  const auto client = New("a:1");
  EXPECT_EQ(client->GetRunSpec().status(), answers_["a:1"]);
  EXPECT_TRUE(client->OpenSession({}).ok());
}

TEST_F(LocatedChiefClientTest, AStopEndsTheSearch) {
  const auto client = New("a:1,b:2");
  ASSERT_TRUE(client->GetRunSpec().ok());
  client->CancelConnecting();
  EXPECT_TRUE(absl::IsCancelled(client->GetRunSpec().status()));
  EXPECT_TRUE(absl::IsCancelled(client->OpenSession({}).status()));
  EXPECT_TRUE(client->Heartbeat({}).ok());
}

}  // namespace
}  // namespace lockstep
