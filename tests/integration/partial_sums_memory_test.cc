// Tests the chief's peak memory when contributions arrive in the worst order: the even slots before all others or, if
// contributions are staged, all of them at once with none complete.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/contract/testing/declaration.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/rpc/chief_server.h"
#include "lockstep/v1/chief.grpc.pb.h"

namespace lockstep {
namespace {

constexpr int64_t kSlots = 16;
constexpr int64_t kStreams = 8;
constexpr int64_t kElements = 8 << 20;
constexpr int64_t kModelBytes = kElements * int64_t{sizeof(float)};
constexpr int64_t kFrameElements = 65536;

v1::ModelSpec Model() {
  v1::ModelSpec model;
  CHECK(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("variables { name: 'w' dtype: DT_FLOAT shape: ", kElements,
                   " trainable: true initializer { zeros {} } }"),
      &model));
  return model;
}

// `training` is the TrainingConfig.
config::v1::RunSpec Config(const std::string& training) {
  config::v1::RunSpec config;
  CHECK(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("optimizer { sgd {} learning_rate { initial: 1 } } cluster { lease_seconds: 600 } training { ",
                   training, " }"),
      &config));
  ApplyDefaults(&config);
  return config;
}

// Returns the memory that a machine must have for a chief of the run, or the chief refuses the model.
int64_t PromisedBytes(const config::v1::RunSpec& config) {
  const auto store =
      VariableStore::Create(Model(), config.optimizer(), /*compression=*/{}, config.training().replicas_to_aggregate())
          .value();
  VariableStore::MemoryUse use;
  use.staged_contributions = StagedContributions(config, store->gradient_bytes());
  return static_cast<int64_t>(store->MemoryNeeded(use) + VariableStore::kProcessBytes);
}

// Serves until a byte arrives at `end`. Runs in its own process, so that the process's memory is the chief's alone.
void ServeChief(const config::v1::RunSpec& config, int address, int end) {
  InitializeProcess("chief");  // sets up the heap like the real chief
  Chief::Options options;
  options.fs = FileSystem::Real();
  options.clock = Clock::Real();
  options.config = config;
  const auto chief = Chief::Create(std::move(options)).value();
  const auto server = ChiefServer::Start(ChiefServer::Options(), chief.get()).value();
  std::thread run([&chief] { CHECK(chief->ends()->Wait().ok()); });
  const std::string text = absl::StrCat(server->address(), "\n");
  CHECK(write(address, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  char unused = 0;
  CHECK(read(end, &unused, 1) == 1);
  run.join();
}

class ChiefInAProcess {
 public:
  // Forks, so it must run before this process has other threads.
  explicit ChiefInAProcess(const config::v1::RunSpec& config) : promised_bytes_(PromisedBytes(config)) {
    std::array<int, 2> address, end;
    CHECK(pipe(address.data()) == 0 && pipe(end.data()) == 0);
    process_ = fork();
    CHECK(process_ >= 0);
    if (process_ == 0) {
      close(end[1]);
      ServeChief(config, address[1], end[0]);
      _exit(0);
    }
    close(address[1]);
    close(end[0]);
    end_ = end[1];
    for (char c = 0; read(address[0], &c, 1) == 1 && c != '\n';) address_.push_back(c);
    close(address[0]);
  }
  ~ChiefInAProcess() {
    CHECK(write(end_, "", 1) == 1);
    close(end_);
    int status = -1;
    CHECK(waitpid(process_, &status, 0) == process_);
    EXPECT_EQ(status, 0);
  }

  const std::string& address() const { return address_; }
  int64_t promised_bytes() const { return promised_bytes_; }
  int64_t PeakBytes() const {
    std::ifstream status(absl::StrCat("/proc/", process_, "/status"));
    for (std::string word; status >> word;) {
      int64_t kilobytes = 0;
      if (word == "VmHWM:" && status >> kilobytes) return kilobytes << 10;
    }
    return 0;
  }

 private:
  const int64_t promised_bytes_;
  pid_t process_ = -1;
  int end_ = -1;
  std::string address_;
};

// A worker that does not compute. Each element of its gradient is the number of its slot plus 1.
class Worker {
 public:
  Worker(const std::string& address, int64_t index) : name_(absl::StrCat("worker-", index)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // uses a separate connection
    stub_ =
        v1::ChiefService::NewStub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    v1::OpenSessionRequest open;
    *open.mutable_model() = Model();
    open.set_worker(name_);
    open.set_incarnation(static_cast<uint64_t>(index + 1));
    CompleteDeclaration(&open);
    grpc::ClientContext context;
    const grpc::Status opened = stub_->OpenSession(&context, open, &session_);
    CHECK(opened.ok()) << opened.error_message();
    stream_ = stub_->Step(&context_);
  }
  ~Worker() {
    if (thread_.joinable()) thread_.join();
  }

  const std::string& name() const { return name_; }
  int64_t slot() const { return token_.first_slot(); }
  void Ask() {
    v1::StepRequest ask = NewRequest();
    ask.set_end(true);
    CHECK(stream_->Write(ask));
  }
  void ReadToken() {
    v1::StepReply reply;
    while (stream_->Read(&reply) && !reply.has_token()) {
    }
    CHECK(reply.has_token());
    token_ = reply.token();
  }
  // On a separate thread, contributes and then reads until the end of the run. Sends the last piece once `ends`, if
  // given, is ready. A worker that is assigned a copy of a slot leaves as soon as `over` is ready.
  void Start(std::shared_future<void> over, std::shared_future<void> ends = {}) {
    thread_ = std::thread([this, over, ends] {
      for (int64_t offset = 0; offset < kElements - kFrameElements; offset += kFrameElements) Send(offset);
      if (ends.valid()) ends.wait();
      Send(kElements - kFrameElements);
      v1::StepReply reply;
      while (stream_->Read(&reply) && !reply.finished() && !reply.has_token()) {
      }
      EXPECT_TRUE(reply.finished() || reply.has_token());
      if (reply.has_token()) over.wait();
      v1::StepRequest leave = NewRequest();
      leave.set_leave(true);
      stream_->Write(leave);
      EXPECT_TRUE(stream_->Finish().ok());
    });
  }
  v1::WorkerStatus Status() {
    grpc::ClientContext context;
    v1::RunStatus status;
    CHECK(stub_->GetStatus(&context, v1::GetStatusRequest(), &status).ok());
    for (const v1::WorkerStatus& worker : status.worker()) {
      if (worker.name() == name_) return worker;
    }
    return {};
  }
  // Blocks until the chief has accepted the contribution, or has stopped reading it.
  void AwaitTakenOrWaiting() {
    constexpr int kLooks = 300;
    int64_t received = -1;
    for (int same = 0; same < kLooks; ++same) {
      const v1::WorkerStatus status = Status();
      if (status.accepted() > 0) return;
      if (status.bytes_received() != received) same = 0;
      received = status.bytes_received();
    }
  }

 private:
  v1::StepRequest NewRequest() const {
    v1::StepRequest request;
    request.set_session_id(session_.session_id());
    request.set_generation(session_.generation());
    return request;
  }
  void Send(int64_t offset) {
    v1::StepRequest frame = NewRequest();
    frame.set_step(token_.step());
    frame.set_first_slot(slot());
    frame.set_slot_count(1);
    if (offset == 0) frame.add_report()->set_slot(slot());
    const std::vector<float> gradient(kFrameElements, static_cast<float>(slot() + 1));
    v1::TensorPiece* const piece = frame.add_gradient();
    piece->set_offset(static_cast<uint64_t>(offset));
    piece->set_content(gradient.data(), gradient.size() * sizeof(float));
    frame.set_end(offset + kFrameElements >= kElements);
    EXPECT_TRUE(stream_->Write(frame)) << offset << " of slot " << slot();
  }

  const std::string name_;
  std::unique_ptr<v1::ChiefService::Stub> stub_;
  v1::OpenSessionReply session_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StepRequest, v1::StepReply>> stream_;
  v1::Token token_;
  std::thread thread_;
};

// Workers that have one slot each.
class Team {
 public:
  explicit Team(const ChiefInAProcess& chief) {
    for (int64_t i = 0; i < kSlots; ++i) workers_.push_back(std::make_unique<Worker>(chief.address(), i));
    // At first, the first worker gets all slots. It returns them when the others have joined.
    workers_[0]->Ask();
    workers_[0]->ReadToken();
    for (int64_t i = 1; i < kSlots; ++i) workers_[i]->Ask();
    for (int64_t i = 1; i < kSlots; ++i) {
      while (workers_[i]->Status().bytes_received() == 0) {
      }
    }
    workers_[0]->Ask();
    for (const auto& worker : workers_) {
      worker->ReadToken();
      by_slot_[worker->slot()] = worker.get();
    }
  }
  Worker* by_slot(int64_t slot) { return by_slot_[slot]; }

 private:
  std::vector<std::unique_ptr<Worker>> workers_;
  std::array<Worker*, kSlots> by_slot_ = {};
};

void ExpectPeakAsPromised(const ChiefInAProcess& chief) {
  const int64_t peak = chief.PeakBytes();
  EXPECT_GT(peak, 2 * kModelBytes);
  EXPECT_LE(peak, chief.promised_bytes());
  std::cout << "peak " << (peak >> 20) << " MiB, promised " << (chief.promised_bytes() >> 20) << " MiB\n";
}

class PartialSumsMemoryTest : public ::testing::Test {
 protected:
  // All chiefs are forked before the first test uses gRPC.
  static void SetUpTestSuite() {
    const auto slots = Config(absl::StrCat("steps: 1 replicas_to_aggregate: ", kSlots));
    // Each worker contributes once.
    const auto streams = Config(absl::StrCat("steps: ", kStreams, " async { max_staleness: 0 }"));
    chiefs_ = {std::make_unique<ChiefInAProcess>(slots), std::make_unique<ChiefInAProcess>(slots),
               std::make_unique<ChiefInAProcess>(streams)};
  }

  static std::array<std::unique_ptr<ChiefInAProcess>, 3> chiefs_;
};

std::array<std::unique_ptr<ChiefInAProcess>, 3> PartialSumsMemoryTest::chiefs_;

TEST_F(PartialSumsMemoryTest, EvenSlotsFirstStayWithinTheBound) {
  const auto chief = std::move(chiefs_[0]);
  {
    Team team(*chief);
    std::promise<void> over;
    const std::shared_future<void> is_over = over.get_future().share();
    int waited = 0;
    for (const int64_t parity : {0, 1}) {
      for (int64_t slot = parity; slot < kSlots; slot += 2) {
        Worker* const worker = team.by_slot(slot);
        ASSERT_NE(worker, nullptr) << slot;
        worker->Start(is_over);
        worker->AwaitTakenOrWaiting();
        if (parity == 0 && worker->Status().accepted() == 0) ++waited;
      }
    }
    over.set_value();
    EXPECT_GE(waited, 4) << "of the even slots four are as many sums as there may be";
  }
  ExpectPeakAsPromised(*chief);
}

// gRPC must not read what the chief leaves unread, because it would end up holding nearly every contribution.
TEST_F(PartialSumsMemoryTest, AllSlotsAtOnceStayWithinTheBound) {
  const auto chief = std::move(chiefs_[1]);
  {
    Team team(*chief);
    std::promise<void> over;
    over.set_value();
    const std::shared_future<void> is_over = over.get_future().share();
    for (int64_t slot = 0; slot < kSlots; ++slot) {
      ASSERT_NE(team.by_slot(slot), nullptr) << slot;
      team.by_slot(slot)->Start(is_over);
    }
  }
  ExpectPeakAsPromised(*chief);
}

TEST_F(PartialSumsMemoryTest, OverlappingOnesStayWithinTheBound) {
  const auto chief = std::move(chiefs_[2]);
  {
    std::vector<std::unique_ptr<Worker>> workers;
    for (int64_t i = 0; i < kStreams; ++i) {
      workers.push_back(std::make_unique<Worker>(chief->address(), i));
      workers.back()->Ask();
      workers.back()->ReadToken();
    }
    std::promise<void> over, ends;
    over.set_value();
    const std::shared_future<void> is_over = over.get_future().share(), may_end = ends.get_future().share();
    for (const auto& worker : workers) worker->Start(is_over, may_end);
    int64_t received = 0;
    for (const auto& worker : workers) worker->AwaitTakenOrWaiting();
    for (const auto& worker : workers) received += worker->Status().bytes_received();
    EXPECT_LE(received, (3 + 1) * kModelBytes) << "three have places, of the others a frame is read";
    EXPECT_GE(received, 3 * (kModelBytes - kFrameElements * int64_t{sizeof(float)}));
    ends.set_value();
  }
  ExpectPeakAsPromised(*chief);
}

}  // namespace
}  // namespace lockstep
