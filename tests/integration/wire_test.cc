// A stranger's client: the generated stub of proto/chief.proto, synchronous, and nothing of Lockstep's own transport.
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/tensor/aligned_buffer.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "proto/chief.grpc.pb.h"
#include "tests/testing/test_cluster.h"
#include "worker/session/configured_task.h"

namespace lockstep {
namespace {

// The gradients and the report of one slot, as the model hands them out.
class SlotResult : public GradientSink {
 public:
  SlotResult(const ModelSpec& spec, int64_t slot) {
    report.set_slot(slot);
    for (const VariableSpec& variable : spec.variables()) {
      int64_t elements = 1;
      for (const int64_t size : variable.shape()) elements *= size;
      gradients.emplace_back(static_cast<size_t>(elements) * sizeof(float));
    }
  }
  bool OnLoss(float loss) override {
    report.set_loss(loss);
    return true;
  }
  void OnUpdate(int, absl::Span<const float> value) override {
    report.add_update(std::string(reinterpret_cast<const char*>(value.data()), value.size() * sizeof(float)));
  }
  float* GradientBuffer(int variable) override { return gradients[variable].as<float>(); }
  void OnGradient(int) override {}

  SlotReport report;
  std::vector<AlignedBuffer> gradients;
};

// bfloat16 by the book: the upper half of a float, rounded to the nearest, ties to even. The numbers here are finite.
uint16_t ToBfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float FromBfloat16(uint16_t number) {
  const uint32_t bits = static_cast<uint32_t>(number) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

class Stranger {
 public:
  explicit Stranger(const std::string& address)
      : stub_(ChiefService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {}

  // A worker's whole life.
  void Train() {
    GetRunReply run;
    {
      grpc::ClientContext context;
      ASSERT_TRUE(stub_->GetRun(&context, GetRunRequest(), &run).ok());
    }
    config_ = run.config();
    auto task = MakeConfiguredTask(config_, ConfiguredTaskOptions());
    ASSERT_TRUE(task.ok()) << task.status();
    task_ = *std::move(task);
    OpenSessionRequest open;
    open.set_worker("stranger");
    open.set_incarnation(1);
    *open.mutable_model() = task_.model->spec();
    {
      grpc::ClientContext context;
      const grpc::Status status = stub_->OpenSession(&context, open, &session_);
      ASSERT_TRUE(status.ok()) << status.error_message();
    }
    EXPECT_EQ(session_.epoch(), run.epoch());
    grpc::ClientContext context;
    const auto stream = stub_->Step(&context);
    StepRequest ask = NewRequest(Token());
    ask.set_end(true);
    ASSERT_TRUE(stream->Write(ask));
    StepReply reply;
    while (stream->Read(&reply)) {
      ASSERT_NO_FATAL_FAILURE(TakeValues(reply));
      if (reply.fate() != FATE_NONE) ++fates_[reply.fate()];
      if (reply.finished()) break;
      if (!reply.has_token()) continue;
      ASSERT_NO_FATAL_FAILURE(Compute(reply.token(), stream.get()));
      if (reply.token().step() % 10 == 0) {
        ASSERT_NO_FATAL_FAILURE(CallTheRest(reply.token().step()));
      }
    }
    ASSERT_TRUE(reply.finished());
    EXPECT_EQ(reply.finish_message(), "");
    StepRequest leave = NewRequest(Token());
    leave.set_leave(true);
    EXPECT_TRUE(stream->Write(leave));
    EXPECT_FALSE(stream->Read(&reply)) << "the chief ends the stream";
    EXPECT_TRUE(stream->Finish().ok());
  }

  std::map<Fate, int>& fates() { return fates_; }

 private:
  StepRequest NewRequest(const Token& token) const {
    StepRequest request;
    request.set_session_id(session_.session_id());
    request.set_epoch(session_.epoch());
    request.set_step(token.step());
    request.set_first_slot(token.first_slot());
    request.set_slot_count(token.slot_count());
    return request;
  }

  // Values of the next step may come before a token of this one, so two steps are kept.
  void TakeValues(const StepReply& reply) {
    if (reply.value().empty()) return;
    auto& values = values_[reply.values_step()];
    if (values.empty()) values = SlotResult(task_.model->spec(), 0).gradients;
    for (const TensorPiece& piece : reply.value()) {
      ASSERT_LT(piece.variable(), values.size());
      AlignedBuffer& variable = values[piece.variable()];
      ASSERT_EQ(piece.offset() % session_.piece_elements(), 0u);
      if (piece.dtype() == DT_BFLOAT16) {
        const size_t elements = piece.content().size() / sizeof(uint16_t);
        ASSERT_LE((piece.offset() + elements) * sizeof(float), variable.size());
        for (size_t i = 0; i < elements; ++i) {
          uint16_t number;
          std::memcpy(&number, piece.content().data() + i * sizeof(number), sizeof(number));
          variable.as<float>()[piece.offset() + i] = FromBfloat16(number);
        }
        continue;
      }
      ASSERT_LE(piece.offset() * sizeof(float) + piece.content().size(), variable.size());
      std::memcpy(variable.as<float>() + piece.offset(), piece.content().data(), piece.content().size());
    }
  }

  void Round(SlotResult* slot) const {
    if (config_.compression().gradients() != CompressionConfig::BFLOAT16) return;
    for (AlignedBuffer& gradient : slot->gradients) {
      for (size_t i = 0; i < gradient.size() / sizeof(float); ++i) {
        gradient.as<float>()[i] = FromBfloat16(ToBfloat16(gradient.as<float>()[i]));
      }
    }
  }

  // The sum over [first, first + size) cut at `end` along the binary tree, into the first slot's gradients.
  void SumTree(std::vector<SlotResult>* slots, int64_t first, int64_t size, int64_t end) const {
    if (size == 1) return Round(&(*slots)[first]);
    SumTree(slots, first, size / 2, end);
    if (first + size / 2 >= end) return;
    SumTree(slots, first + size / 2, size / 2, end);
    for (size_t v = 0; v < (*slots)[first].gradients.size(); ++v) {
      AlignedBuffer& left = (*slots)[first].gradients[v];
      const AlignedBuffer& right = (*slots)[first + size / 2].gradients[v];
      for (size_t i = 0; i < left.size() / sizeof(float); ++i) left.as<float>()[i] += right.as<float>()[i];
    }
    Round(&(*slots)[first]);
  }

  void Compute(const Token& token, grpc::ClientReaderWriter<StepRequest, StepReply>* stream) {
    std::vector<const float*> values;
    for (const AlignedBuffer& variable : values_.at(token.step())) values.push_back(variable.as<float>());
    std::vector<SlotResult> slots;
    for (int64_t slot = token.first_slot(); slot < token.first_slot() + token.slot_count(); ++slot) {
      slots.emplace_back(task_.model->spec(), slot);
      const auto batch = task_.batches->Get(token.step(), slot);
      ASSERT_TRUE(batch.ok());
      SlotKey key;
      key.seed = config_.training().seed();
      key.step = token.step();
      key.slot = slot;
      ASSERT_TRUE(task_.model->ComputeGradients(values, *batch, key, &slots.back()).ok());
    }
    values_.erase(values_.begin(), values_.find(token.step()));
    // The reports in a frame of their own, then one frame for each variable, then the end.
    StepRequest reports = NewRequest(token);
    for (const SlotResult& slot : slots) *reports.add_report() = slot.report;
    ASSERT_TRUE(stream->Write(reports));
    SumTree(&slots, 0, int64_t{1} << 20, token.slot_count());
    for (int v = 0; v < task_.model->spec().variables_size(); ++v) {
      if (!task_.model->spec().variables(v).trainable()) continue;
      StepRequest frame = NewRequest(token);
      TensorPiece* const piece = frame.add_gradient();
      piece->set_variable(static_cast<uint32_t>(v));
      const AlignedBuffer& gradient = slots[0].gradients[v];
      piece->set_content(gradient.data(), gradient.size());
      if (config_.compression().gradients() == CompressionConfig::BFLOAT16) {
        piece->clear_content();
        piece->set_dtype(DT_BFLOAT16);
        for (size_t i = 0; i < gradient.size() / sizeof(float); ++i) {
          const uint16_t number = ToBfloat16(gradient.as<float>()[i]);
          piece->mutable_content()->append(reinterpret_cast<const char*>(&number), sizeof(number));
        }
      }
      ASSERT_TRUE(stream->Write(frame));
    }
    StepRequest end = NewRequest(token);
    end.set_end(true);
    ASSERT_TRUE(stream->Write(end));
  }

  void CallTheRest(int64_t step) {
    HeartbeatRequest heartbeat;
    heartbeat.set_session_id(session_.session_id());
    heartbeat.set_epoch(session_.epoch());
    HeartbeatReply beat;
    grpc::ClientContext heartbeat_context;
    ASSERT_TRUE(stub_->Heartbeat(&heartbeat_context, heartbeat, &beat).ok());
    EXPECT_GE(beat.global_step(), step);
    RunStatus status;
    grpc::ClientContext status_context;
    ASSERT_TRUE(stub_->GetStatus(&status_context, GetStatusRequest(), &status).ok());
    EXPECT_EQ(status.worker_size(), 1);
    EXPECT_EQ(status.worker(0).name(), "stranger");
  }

  const std::unique_ptr<ChiefService::Stub> stub_;
  RunConfig config_;
  TrainingWorker::Task task_;
  OpenSessionReply session_;
  std::map<int64_t, std::vector<AlignedBuffer>> values_;
  std::map<Fate, int> fates_;
};

void ExpectTheSameBits(const RunConfig& config) {
  TestCluster::Options options;
  options.config = config;
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  Stranger stranger(cluster.address());
  absl::Status waited;
  std::thread waiter([&] { waited = cluster.Wait(); });
  stranger.Train();
  if (testing::Test::HasFatalFailure()) cluster.chief()->RequestStop();
  waiter.join();
  ASSERT_TRUE(waited.ok()) << waited;
  EXPECT_EQ(stranger.fates()[ACCEPTED], config.training().steps());
  EXPECT_EQ(cluster.Digest().value_or("none"), TrainAndDigest(options, 2).value_or("no reference"));
}

TEST(WireTest, AStrangersClientTrainsToTheSameBits) {
  for (const int64_t slots : {1, 3}) ExpectTheSameBits(SmallRunConfig(/*steps=*/25, slots));
}

TEST(WireTest, AStrangersClientSpeaksBfloat16) {
  RunConfig config = SmallRunConfig(/*steps=*/25, /*slots=*/3);
  config.mutable_compression()->set_gradients(CompressionConfig::BFLOAT16);
  config.mutable_compression()->set_values(CompressionConfig::BFLOAT16);
  ExpectTheSameBits(config);
}

}  // namespace
}  // namespace lockstep
