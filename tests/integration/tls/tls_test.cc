// Tests a chief with TLS over real sockets: the table of roles, hostile peers, and certificates that change while a
// worker runs.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/contract/testing/declaration.h"
#include "lockstep/common/security/access_table.h"
#include "lockstep/common/transport/connection/channel.h"
#include "lockstep/common/transport/connection/credentials.h"
#include "lockstep/common/transport/connection/status_conversion.h"
#include "lockstep/common/transport/grpc_chief_client.h"
#include "lockstep/tests/testing/test_cluster.h"
#include "lockstep/tests/testing/test_kits.h"
#include "lockstep/tests/testing/tls_peer.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr char kService[] = "/lockstep.v1.ChiefService/";
constexpr char kGetStatus[] = "/lockstep.v1.ChiefService/GetStatus";

// Makes a call with an empty request, over its own connection. Returns OK after the first reply, because some calls
// last until the run ends; otherwise returns the status that ends the call.
absl::Status CallOnce(const std::string& address, const Credentials& credentials, const std::string& method,
                      const std::string& authorization = "") {
  const auto channel = NewChannel(address, credentials, absl::Seconds(5));
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  if (!authorization.empty()) context.AddMetadata("authorization", authorization);
  grpc::CompletionQueue queue;
  const auto await = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return ok;
  };
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  await();
  const grpc::Slice empty("");
  call->WriteLast(grpc::ByteBuffer(&empty, 1), grpc::WriteOptions(), nullptr);
  await();
  grpc::ByteBuffer reply;
  call->Read(&reply, nullptr);
  const bool replied = await();
  if (replied) context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  await();
  return replied ? absl::OkStatus() : FromGrpc(status);
}

bool IsRefused(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || (absl::IsPermissionDenied(status));
}

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    kits_.Issue("chief", PeerRole::kChief);
    kits_.Issue("worker", PeerRole::kWorker);
  }
  // Starts a chief whose run has `steps` steps.
  void Start(int64_t steps = 20, std::function<void(int64_t step)> before_batch = nullptr) {
    TestCluster::Options options;
    options.config = SmallRunSpec(steps, /*slots=*/4);
    options.config.mutable_cluster()->set_lease_seconds(lease_seconds_);
    options.before_batch = std::move(before_batch);
    options.server.credentials = Credentials(kits_.Path("chief"));
    options.server.peers.token_file = token_file_;
    options.client.credentials = Credentials(kits_.Path("worker"));
    cluster_ = std::make_unique<TestCluster>(std::move(options));
    ASSERT_EQ(cluster_->StartChief(), absl::OkStatus());
  }
  absl::Status Call(const Credentials& credentials, const std::string& method) {
    return CallOnce(cluster_->address(), credentials, method);
  }
  // Returns the error of a client's first call.
  absl::Status FirstCall(const std::string& kit) {
    GrpcClientOptions options;
    options.credentials = kit.empty() ? Credentials() : Credentials(kits_.Path(kit));
    return NewGrpcChiefClient(cluster_->address(), options)->GetRunSpec().status();
  }
  // Waits until the chief has ended the workers' streams.
  void AwaitEndOfStreams() {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (cluster_->chief()->GetStatus().worker_size() > 0 && absl::Now() < deadline) {
    }
    EXPECT_EQ(cluster_->chief()->GetStatus().worker_size(), 0);
  }
  void ExpectNamed(const absl::Status& status, const std::string& why) {
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    EXPECT_EQ(ExitCodeOf(status), kExitBadConfiguration);
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }

  TestKits kits_;
  std::string token_file_;
  double lease_seconds_ = 2;
  std::unique_ptr<TestCluster> cluster_;
};

TEST_F(TlsTest, TrainsToTheSameWeights) {
  Start();
  cluster_->StartWorker();
  cluster_->StartWorker();
  ASSERT_EQ(cluster_->Wait(), absl::OkStatus());
  for (const absl::Status& status : cluster_->JoinWorkers()) EXPECT_EQ(status, absl::OkStatus());
  TestCluster::Options plain;
  plain.config = SmallRunSpec(/*steps=*/20, /*slots=*/4);
  plain.local = true;
  EXPECT_EQ(cluster_->Digest().value(), TrainAndDigest(plain, /*workers=*/1).value());
}

TEST_F(TlsTest, EachRoleMakesItsCallsAlone) {
  Start();
  kits_.Write("anonymous/ca.crt", kits_.Read("ca/ca.crt"));
  const std::pair<PeerRole, std::string> peers[] = {
      {PeerRole::kAnonymous, kits_.Path("anonymous")},
      {PeerRole::kViewer, kits_.Issue("viewer", PeerRole::kViewer)},
      {PeerRole::kReader, kits_.Issue("reader", PeerRole::kReader)},
      {PeerRole::kWorker, kits_.Path("worker")},
      {PeerRole::kOperator, kits_.Issue("operator", PeerRole::kOperator)},
      {PeerRole::kChief, kits_.Path("chief")},
  };
  const std::vector<std::string> methods = {
      "/grpc.health.v1.Health/Check",
      absl::StrCat(kService, "GetStatus"),
      absl::StrCat(kService, "ReadVariables"),
      absl::StrCat(kService, "GetRunSpec"),
      absl::StrCat(kService, "OpenSession"),
      absl::StrCat(kService, "GetCanaryValues"),
      absl::StrCat(kService, "Heartbeat"),
      absl::StrCat(kService, "Step"),
      absl::StrCat(kService, "AddSummary"),
      absl::StrCat(kService, "WatchRun"),
      absl::StrCat(kService, "SetInitialValues"),
      absl::StrCat(kService, "Unknown"),
  };
  for (const auto& [role, kit] : peers) {
    const Credentials credentials(kit);
    for (const std::string& method : methods) {
      const absl::Status status = Call(credentials, method);
      EXPECT_EQ(IsRefused(status), !MayCall(role, method)) << PeerRoleName(role) << " " << method << ": " << status;
      EXPECT_EQ(absl::IsUnauthenticated(status), role == PeerRole::kAnonymous && !MayCall(role, method))
          << PeerRoleName(role) << " " << method;
    }
  }
}

TEST_F(TlsTest, OperatorEndsRunWithoutSession) {
  Start(/*steps=*/1000000);
  cluster_->StartWorker();
  EXPECT_TRUE(absl::IsPermissionDenied(
      Call(Credentials(kits_.Issue("reader", PeerRole::kReader)), absl::StrCat(kService, "RequestEnd"))));
  EXPECT_FALSE(Call(Credentials(kits_.Path("worker")), absl::StrCat(kService, "RequestEnd")).ok()) << "no session";
  const Credentials credentials(kits_.Issue("operator", PeerRole::kOperator));
  // The chief cannot end a run before the worker has declared the model.
  while (cluster_->chief()->GetStatus().global_step() < 1) std::this_thread::yield();
  ASSERT_EQ(Call(credentials, absl::StrCat(kService, "RequestEnd")), absl::OkStatus());
  EXPECT_EQ(cluster_->Wait(), absl::OkStatus());
}

TEST_F(TlsTest, NamesWrongCertificatesImmediately) {
  Start();
  kits_.MakeAuthority("strangers");
  kits_.Issue("stranger", PeerRole::kWorker, "strangers");
  ExpectNamed(FirstCall("stranger"), "self-signed certificate");
  kits_.Write("stranger/ca.crt", kits_.Read("ca/ca.crt"));
  ExpectNamed(FirstCall("stranger"), "refuses the certificate");
  kits_.Issue("expired", PeerRole::kWorker, "ca", -absl::Minutes(1));
  ExpectNamed(FirstCall("expired"), "certificate has expired");
  kits_.MakeAuthority("other_run", "other");
  kits_.Issue("other", PeerRole::kWorker, "other_run");
  ExpectNamed(FirstCall("other"), "self-signed certificate");
  ExpectNamed(FirstCall(""), "speaks TLS; give --tls_dir");
}

TEST_F(TlsTest, OneAuthorityOfTwoRunsKeepsThemApart) {
  kits_.MakeAuthority("second", "second");
  kits_.Issue("other", PeerRole::kWorker, "second");
  const std::string both = kits_.Read("ca/ca.crt") + kits_.Read("second/ca.crt");
  kits_.Write("chief/ca.crt", both);
  kits_.Write("other/ca.crt", both);
  Start();
  ExpectNamed(FirstCall("other"), "and this certificate is for spiffe://lockstep/lockstep/second");
  // A client that does not compare the runs is refused by the chief.
  TlsPeer peer(cluster_->address(), kits_.Path("other"));
  peer.Begin(1, kGetStatus);
  EXPECT_TRUE(peer.ReadUntil("is for another run"));
}

TEST_F(TlsTest, ClientsRefuseAFalseChief) {
  // Only a chief's kit may serve a run, but the owner of another kit could try to serve one with a modified server.
  TestCluster::Options options;
  options.config = SmallRunSpec(/*steps=*/1, /*slots=*/1);
  kits_.Issue("viewer", PeerRole::kViewer);
  options.server.credentials = Credentials(kits_.Path("viewer"));
  cluster_ = std::make_unique<TestCluster>(std::move(options));
  ASSERT_EQ(cluster_->StartChief(), absl::OkStatus());
  ExpectNamed(FirstCall("worker"), "which is not a chief's");
}

TEST_F(TlsTest, TlsTowardsPlainTextIsNamed) {
  TestCluster::Options options;
  options.config = SmallRunSpec(/*steps=*/1, /*slots=*/1);
  cluster_ = std::make_unique<TestCluster>(std::move(options));
  ASSERT_EQ(cluster_->StartChief(), absl::OkStatus());
  ExpectNamed(FirstCall("worker"), "does not speak TLS");
}

TEST_F(TlsTest, TokensShowTheStatusAlone) {
  token_file_ = kits_.Path("tokens");
  kits_.Write("tokens", "the-old-token-0123\nthe-new-token-0123\n");
  kits_.Write("anonymous/ca.crt", kits_.Read("ca/ca.crt"));
  Start();
  const std::string ca = kits_.Path("anonymous");
  for (const char* const token : {"the-old-token-0123", "the-new-token-0123"}) {
    EXPECT_EQ(Call(Credentials(ca, token), kGetStatus), absl::OkStatus()) << token;
    EXPECT_TRUE(absl::IsPermissionDenied(Call(Credentials(ca, token), absl::StrCat(kService, "ReadVariables"))));
  }
  EXPECT_TRUE(absl::IsUnauthenticated(Call(Credentials(ca, "some-other-token-01"), kGetStatus)));
  EXPECT_TRUE(absl::IsUnauthenticated(CallOnce(cluster_->address(), Credentials(ca), kGetStatus, "the-new-token-0123")))
      << "without Bearer";
  // A token in the path is ignored.
  EXPECT_TRUE(absl::IsUnauthenticated(
      Call(Credentials(ca), absl::StrCat(kGetStatus, "?authorization=Bearer%20the-new-token-0123"))));
}

TEST_F(TlsTest, SessionsAreForThePeerThatOpenedThem) {
  const std::string first = kits_.Issue("first", PeerRole::kWorker, "ca", absl::Hours(1), "first");
  const std::string second = kits_.Issue("second", PeerRole::kWorker, "ca", absl::Hours(1), "second");
  Start();
  GrpcClientOptions as_first, as_second;
  as_first.credentials = Credentials(first);
  as_second.credentials = Credentials(second);
  const auto owner = NewGrpcChiefClient(cluster_->address(), as_first);
  const auto thief = NewGrpcChiefClient(cluster_->address(), as_second);
  v1::OpenSessionRequest request;
  request.set_worker("owner");
  request.set_incarnation(7);
  v1::VariableSpec* const variable = request.mutable_model()->add_variables();
  variable->set_name("w");
  variable->add_shape(2);
  variable->set_dtype(v1::DT_FLOAT);
  variable->set_trainable(true);
  CompleteDeclaration(&request);
  const auto session = owner->OpenSession(request);
  ASSERT_TRUE(session.ok()) << session.status();
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_session_id(session->session_id());
  heartbeat.set_generation(session->generation());
  EXPECT_TRUE(owner->Heartbeat(heartbeat).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(thief->Heartbeat(heartbeat).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(thief->OpenSession(request).status())) << "the same worker and incarnation";
  v1::GetCanaryValuesRequest canary;
  canary.set_session_id(session->session_id());
  canary.set_generation(session->generation());
  EXPECT_TRUE(absl::IsPermissionDenied(thief->GetCanaryValues(canary).status()));
  EXPECT_TRUE(owner->Heartbeat(heartbeat).ok()) << "the session is its owner's as before";
}

// Holds a worker before a step until the test lets it continue.
class HeldStep {
 public:
  explicit HeldStep(int64_t step) : step_(step) {}
  void BeforeBatch(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (step < step_) return;
    reached_ = true;
    changed_.SignalAll();
    while (!released_) changed_.Wait(&mutex_);
  }
  void Await() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (!reached_) changed_.Wait(&mutex_);
  }
  void Release() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    released_ = true;
    changed_.SignalAll();
  }

 private:
  const int64_t step_;
  Mutex mutex_;
  CondVar changed_;
  bool reached_ ABSL_GUARDED_BY(mutex_) = false;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
};

// The chief checks its files every second, so these three tests take a second or two each.
TEST_F(TlsTest, RevokedWorkerLosesItsStream) {
  HeldStep held(5);
  Start(/*steps=*/20, [&held](int64_t step) { held.BeforeBatch(step); });
  const int worker = cluster_->StartWorker();
  held.Await();
  kits_.Revoke("worker", "chief");
  AwaitEndOfStreams();
  held.Release();
  ExpectNamed(cluster_->JoinWorker(worker), "is revoked");
  EXPECT_LT(cluster_->chief()->GetStatus().global_step(), 20);
}

TEST_F(TlsTest, StreamEndsWhileItsWorkerComputes) {
  lease_seconds_ = 600;  // the chief waits that long for a worker that it does not hear of
  HeldStep held(5);
  Start(/*steps=*/20, [&held](int64_t step) { held.BeforeBatch(step); });
  const int worker = cluster_->StartWorker();
  held.Await();
  EXPECT_EQ(cluster_->chief()->GetStatus().worker_size(), 1);
  kits_.Revoke("worker", "chief");
  AwaitEndOfStreams();
  kits_.Issue("worker", PeerRole::kWorker);
  held.Release();
  EXPECT_EQ(cluster_->Wait(), absl::OkStatus()) << "the worker continues with its new certificate";
  EXPECT_EQ(cluster_->JoinWorker(worker), absl::OkStatus());
}

TEST_F(TlsTest, KitsAreReplacedUnderARunningWorker) {
  Start(/*steps=*/100000000);
  const int worker = cluster_->StartWorker();
  // First, all processes trust both authorities. Then all of them get new certificates. Finally, the old authority is
  // removed.
  kits_.MakeAuthority("new");
  const std::string old_worker = kits_.Issue("old_worker", PeerRole::kWorker);
  const std::string both = kits_.Read("ca/ca.crt") + kits_.Read("new/ca.crt");
  for (const char* const kit : {"chief", "worker"}) kits_.Write(absl::StrCat(kit, "/ca.crt"), both);
  for (const char* const kit : {"chief", "worker"}) {
    kits_.Issue("next", kit == std::string("chief") ? PeerRole::kChief : PeerRole::kWorker, "new");
    kits_.Write(absl::StrCat(kit, "/tls.key"), kits_.Read("next/tls.key"));
    kits_.Write(absl::StrCat(kit, "/tls.crt"), kits_.Read("next/tls.crt"));
  }
  kits_.Write("chief/ca.crt", kits_.Read("new/ca.crt"));
  kits_.Write("old_worker/ca.crt", both);
  while (Call(Credentials(old_worker), kGetStatus).ok()) {
  }
  // The worker opens a session with its new certificate.
  kits_.Issue("new_operator", PeerRole::kOperator, "new");
  const Credentials operators(kits_.Path("new_operator"));
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (!Call(operators, kGetStatus).ok() && absl::Now() < deadline) {
  }
  const int64_t step = cluster_->chief()->GetStatus().global_step();
  while (cluster_->chief()->GetStatus().global_step() < step + 1000 && absl::Now() < deadline) {
  }
  EXPECT_GE(cluster_->chief()->GetStatus().global_step(), step + 1000);
  ASSERT_EQ(Call(operators, absl::StrCat(kService, "RequestEnd")), absl::OkStatus());
  EXPECT_EQ(cluster_->Wait(), absl::OkStatus());
  EXPECT_EQ(cluster_->JoinWorker(worker), absl::OkStatus());
}

}  // namespace
}  // namespace lockstep
