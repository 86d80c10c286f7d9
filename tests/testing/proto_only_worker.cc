#include "lockstep/tests/testing/proto_only_worker.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "lockstep/common/contract/build_info.h"
#include "lockstep/worker/session/workload/configured_workload.h"
#include "lockstep/worker/session/workload/model_parts.h"

namespace lockstep {
namespace {

// The gradients and the report of one slot, as the model produces them.
class SlotResult : public GradientSink {
 public:
  SlotResult(const v1::ModelSpec& spec, int64_t slot) {
    report.set_slot(slot);
    for (const v1::VariableSpec& variable : spec.variables()) {
      int64_t elements = 1;
      for (const int64_t size : variable.shape()) elements *= size;
      gradients.emplace_back(static_cast<size_t>(elements) * sizeof(float));
    }
  }
  bool OnLoss(float loss) override {
    report.set_loss(loss);
    return true;
  }
  void OnUpdate(int, Elements value) override { report.add_update(std::string(value.bytes())); }
  float* GradientBuffer(int variable) override { return gradients[variable].as<float>(); }
  void OnGradient(int) override {}

  v1::SlotReport report;
  std::vector<AlignedBuffer> gradients;
};

// Computes CRC-64/XZ. Deliberately written from its definition instead of calling Lockstep's implementation.
uint64_t Digest(const void* data, size_t size) {
  uint64_t crc = ~uint64_t{0};
  for (size_t i = 0; i < size; ++i) {
    crc ^= static_cast<const uint8_t*>(data)[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xc96c5795d7870f42 : crc >> 1;
  }
  return ~crc;
}

// Converts a finite number to bfloat16. Written from the definition: the upper half of a float, rounded to nearest,
// ties to even.
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

void RoundToBfloat16(SlotResult* slot) {
  for (AlignedBuffer& gradient : slot->gradients) {
    for (size_t i = 0; i < gradient.size() / sizeof(float); ++i) {
      gradient.as<float>()[i] = FromBfloat16(ToBfloat16(gradient.as<float>()[i]));
    }
  }
}

// Converts the floats of `content` to bfloat16.
std::string EncodeBfloat16(const std::string& content) {
  std::string encoded;
  for (size_t at = 0; at < content.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, content.data() + at, sizeof(value));
    const uint16_t number = ToBfloat16(value);
    encoded.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  return encoded;
}

// The inverse of EncodeBfloat16.
std::string DecodeBfloat16(const std::string& content) {
  std::string decoded;
  for (size_t at = 0; at < content.size(); at += sizeof(uint16_t)) {
    uint16_t number;
    std::memcpy(&number, content.data() + at, sizeof(number));
    const float value = FromBfloat16(number);
    decoded.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return decoded;
}

// Sums the gradients of the slots [first, first + size), limited by `end`, along a binary tree into those of slot
// `first`. If `bfloat16`, rounds each gradient and each sum.
void SumTree(std::vector<SlotResult>* slots, int64_t first, int64_t size, int64_t end, bool bfloat16) {
  if (size == 1) {
    if (bfloat16) RoundToBfloat16(&(*slots)[first]);
    return;
  }
  SumTree(slots, first, size / 2, end, bfloat16);
  if (first + size / 2 >= end) return;
  SumTree(slots, first + size / 2, size / 2, end, bfloat16);
  for (size_t v = 0; v < (*slots)[first].gradients.size(); ++v) {
    AlignedBuffer& left = (*slots)[first].gradients[v];
    const AlignedBuffer& right = (*slots)[first + size / 2].gradients[v];
    for (size_t i = 0; i < left.size() / sizeof(float); ++i) left.as<float>()[i] += right.as<float>()[i];
  }
  if (bfloat16) RoundToBfloat16(&(*slots)[first]);
}

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(8 << 20);    // docs/wire.md
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // unread data stays with the chief
  return arguments;
}

}  // namespace

ProtoOnlyWorker::ProtoOnlyWorker(const std::string& address, std::string name, uint64_t incarnation)
    : stub_(v1::ChiefService::NewStub(
          grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), Arguments()))) {
  open_.set_worker(std::move(name));
  open_.set_incarnation(incarnation);
  *open_.mutable_build() = ThisBuildInfo();
}

void ProtoOnlyWorker::Open() {
  v1::GetRunSpecReply run;
  grpc::ClientContext run_context;
  ASSERT_TRUE(stub_->GetRunSpec(&run_context, v1::GetRunSpecRequest(), &run).ok());
  config_ = run.spec();
  auto workload = LoadWorkload(config_, WorkloadOptions());
  ASSERT_TRUE(workload.ok()) << workload.status();
  workload_ = *std::move(workload);
  *open_.mutable_model() = workload_.model->spec();
  if (workload_.data) *open_.mutable_data() = *workload_.data;
  for (v1::NamedDigest& part : ModelParts(config_, *workload_.model)) *open_.add_model_part() = std::move(part);
  if (scale_ != 0) open_.set_initial_values_digest(InitialDigest());
  ASSERT_NO_FATAL_FAILURE(CallOpenSession());
  if (session_.initial_values_wanted()) {
    ASSERT_NO_FATAL_FAILURE(SendInitialValues());
    ASSERT_NO_FATAL_FAILURE(CallOpenSession());
    ASSERT_FALSE(session_.initial_values_wanted());
  }
  EXPECT_EQ(session_.generation(), run.generation());
  if (!session_.canary_wanted()) return;
  ASSERT_NO_FATAL_FAILURE(ComputeCanary());
  ASSERT_NO_FATAL_FAILURE(CallOpenSession());
  EXPECT_FALSE(session_.canary_wanted());
}

void ProtoOnlyWorker::CallOpenSession() {
  grpc::Status status;
  do {
    grpc::ClientContext context;
    status = stub_->OpenSession(&context, open_, &session_);
  } while (status.error_code() == grpc::StatusCode::UNAVAILABLE);
  ASSERT_TRUE(status.ok()) << status.error_message();
}

std::vector<float> ProtoOnlyWorker::InitialValue(const v1::VariableSpec& variable) const {
  size_t elements = 1;
  for (const int64_t size : variable.shape()) elements *= static_cast<size_t>(size);
  std::vector<float> value(elements);
  for (size_t i = 0; i < elements; ++i) value[i] = scale_ * static_cast<float>(1 + i % 5);
  return value;
}

std::vector<int> ProtoOnlyWorker::OrderOfNames() const {
  std::vector<int> order(model().variables_size());
  std::iota(order.begin(), order.end(), 0);
  absl::c_sort(order, [this](int a, int b) { return model().variables(a).name() < model().variables(b).name(); });
  return order;
}

std::string ProtoOnlyWorker::InitialDigest() const {
  std::string hashed;
  const auto add = [&hashed](const void* data, uint64_t size) {
    hashed.append(reinterpret_cast<const char*>(&size), sizeof(size));
    hashed.append(static_cast<const char*>(data), size);
  };
  for (const int i : OrderOfNames()) {
    const v1::VariableSpec& variable = model().variables(i);
    const std::vector<float> value = InitialValue(variable);
    add(variable.name().data(), variable.name().size());
    add("float32", 7);
    add(variable.shape().data(), variable.shape_size() * sizeof(int64_t));
    add(value.data(), value.size() * sizeof(float));
  }
  unsigned char digest[32];
  EXPECT_EQ(EVP_Digest(hashed.data(), hashed.size(), digest, nullptr, EVP_sha256(), nullptr), 1);
  return absl::BytesToHexString(std::string(reinterpret_cast<const char*>(digest), sizeof(digest)));
}

// Sends each variable in a call of its own, and repeats that call. The last call has no values.
void ProtoOnlyWorker::SendInitialValues() {
  const auto send = [this](const v1::SetInitialValuesRequest& request) {
    grpc::ClientContext context;
    v1::SetInitialValuesReply reply;
    const grpc::Status status = stub_->SetInitialValues(&context, request, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
  };
  v1::SetInitialValuesRequest request;
  request.set_session_id(session_.session_id());
  request.set_generation(session_.generation());
  for (const int i : OrderOfNames()) {
    const std::vector<float> value = InitialValue(model().variables(i));
    request.clear_value();
    v1::TensorPiece* const piece = request.add_value();
    piece->set_variable(static_cast<uint32_t>(i));
    piece->set_content(value.data(), value.size() * sizeof(float));
    ASSERT_NO_FATAL_FAILURE(send(request));
    ASSERT_NO_FATAL_FAILURE(send(request));
  }
  request.clear_value();
  request.set_end(true);
  ASSERT_NO_FATAL_FAILURE(send(request));
}

void ProtoOnlyWorker::ComputeCanary() {
  SlotResult values(model(), 0), result(model(), 0);
  uint64_t segments = 0;
  for (const AlignedBuffer& variable : values.gradients) {
    const uint64_t elements = variable.size() / sizeof(float);
    segments += (elements + session_.piece_elements() - 1) / session_.piece_elements();
  }
  v1::GetCanaryValuesRequest request;
  request.set_session_id(session_.session_id());
  request.set_generation(session_.generation());
  while (static_cast<uint64_t>(request.first_segment()) < segments) {
    grpc::ClientContext context;
    v1::GetCanaryValuesReply reply;
    const grpc::Status status = stub_->GetCanaryValues(&context, request, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_GT(reply.value_size(), 0);
    for (const v1::TensorPiece& piece : reply.value()) {
      float* const variable = values.gradients[piece.variable()].as<float>();
      std::memcpy(variable + piece.offset(), piece.content().data(), piece.content().size());
    }
    request.set_first_segment(request.first_segment() + reply.value_size());
  }
  std::vector<const float*> variables;
  for (const AlignedBuffer& variable : values.gradients) variables.push_back(variable.as<float>());
  const auto batch = workload_.batches->Get(0, 0);
  ASSERT_TRUE(batch.ok()) << batch.status();
  SlotKey key;
  key.seed = config_.training().seed();
  ASSERT_TRUE(workload_.model->ComputeGradients(variables, *batch, key, &result).ok());
  for (int v = 0; v < model().variables_size(); ++v) {
    if (!model().variables(v).trainable()) continue;
    open_.add_canary_digest(Digest(result.gradients[v].data(), result.gradients[v].size()));
  }
  for (const std::string& update : result.report.update()) {
    open_.add_canary_digest(Digest(update.data(), update.size()));
  }
}

v1::StepRequest ProtoOnlyWorker::NewRequest(const v1::Token& token) const {
  v1::StepRequest request;
  request.set_session_id(session_.session_id());
  request.set_generation(session_.generation());
  request.set_step(token.step());
  request.set_first_slot(token.first_slot());
  request.set_slot_count(token.slot_count());
  return request;
}

v1::StepRequest ProtoOnlyWorker::AskForToken() const {
  v1::StepRequest request = NewRequest(v1::Token());
  request.set_end(true);
  return request;
}

bool ProtoOnlyWorker::ReadToken(Stream* stream, v1::Token* token) {
  while (stream->Read(&reply_)) {
    TakeValues(reply_);
    if (reply_.result() != v1::CONTRIBUTION_NONE) ++results_[reply_.result()];
    if (reply_.finished() || testing::Test::HasFatalFailure()) return false;
    if (!reply_.has_token()) continue;
    *token = reply_.token();
    return true;
  }
  return false;
}

void ProtoOnlyWorker::TakeValues(const v1::StepReply& reply) {
  if (reply.value().empty()) return;
  auto& values = values_[reply.values_step()];
  if (values.empty()) values = SlotResult(model(), 0).gradients;
  if (constants_.empty()) constants_ = SlotResult(model(), 0).gradients;
  for (const v1::TensorPiece& piece : reply.value()) {
    ASSERT_LT(piece.variable(), values.size());
    AlignedBuffer& variable = IsConstant(piece.variable()) ? constants_[piece.variable()] : values[piece.variable()];
    ASSERT_EQ(piece.offset() % session_.piece_elements(), 0u);
    const std::string content = piece.dtype() == v1::DT_BFLOAT16 ? DecodeBfloat16(piece.content()) : piece.content();
    ASSERT_LE(piece.offset() * sizeof(float) + content.size(), variable.size());
    std::memcpy(variable.as<float>() + piece.offset(), content.data(), content.size());
  }
}

bool ProtoOnlyWorker::IsConstant(uint32_t variable) const {
  const v1::VariableSpec& spec = model().variables(static_cast<int>(variable));
  return !spec.trainable() && absl::c_none_of(model().update_ops(), [&spec](const v1::UpdateOpSpec& op) {
    return op.variable() == spec.name();
  });
}

const AlignedBuffer& ProtoOnlyWorker::ValueOf(int64_t step, uint32_t variable) const {
  return IsConstant(variable) ? constants_[variable] : values_.at(step)[variable];
}

v1::StepRequest ProtoOnlyWorker::Compute(const v1::Token& token) {
  std::vector<const float*> values;
  for (uint32_t v = 0; v < constants_.size(); ++v) values.push_back(ValueOf(token.step(), v).as<float>());
  v1::StepRequest request = NewRequest(token);
  std::vector<SlotResult> slots;
  for (int64_t slot = token.first_slot(); slot < token.first_slot() + token.slot_count(); ++slot) {
    slots.emplace_back(model(), slot);
    const auto batch = workload_.batches->Get(token.step(), slot);
    EXPECT_TRUE(batch.ok()) << batch.status();
    SlotKey key;
    key.seed = config_.training().seed();
    key.step = token.step();
    key.slot = slot;
    EXPECT_TRUE(workload_.model->ComputeGradients(values, *batch, key, &slots.back()).ok());
    *request.add_report() = slots.back().report;
  }
  values_.erase(values_.begin(), values_.find(token.step()));
  if (token.digest()) {
    for (int v = 0; v < model().variables_size(); ++v) {
      const AlignedBuffer& gradient = slots[0].gradients[v];
      if (model().variables(v).trainable()) request.add_digest(Digest(gradient.data(), gradient.size()));
    }
  }
  const bool bfloat16 = config_.compression().gradients() == config::v1::CompressionConfig::BFLOAT16;
  SumTree(&slots, 0, int64_t{1} << 20, token.slot_count(), bfloat16);
  for (int v = 0; v < model().variables_size(); ++v) {
    if (!model().variables(v).trainable()) continue;
    const AlignedBuffer& gradient = slots[0].gradients[v];
    const uint64_t piece_bytes = session_.piece_elements() * sizeof(float);
    for (uint64_t at = 0; at < gradient.size(); at += piece_bytes) {
      v1::TensorPiece* const piece = request.add_gradient();
      piece->set_variable(static_cast<uint32_t>(v));
      piece->set_offset(at / sizeof(float));
      piece->set_content(gradient.data() + at, std::min<uint64_t>(piece_bytes, gradient.size() - at));
      if (!bfloat16) continue;
      piece->set_dtype(v1::DT_BFLOAT16);
      piece->set_content(EncodeBfloat16(piece->content()));
    }
  }
  request.set_end(true);
  return request;
}

void ProtoOnlyWorker::Train() {
  grpc::ClientContext context;
  const auto stream = NewStream(&context);
  ASSERT_TRUE(stream->Write(AskForToken()));
  for (v1::Token token; ReadToken(stream.get(), &token);) {
    const v1::StepRequest whole = Compute(token);
    if (token.step() % 10 == 0) ReadVariables(token.step());
    if (testing::Test::HasFatalFailure()) return;
    // Sends one frame with the reports, then one for each piece, and a last one with `end`.
    v1::StepRequest reports = NewRequest(token);
    *reports.mutable_report() = whole.report();
    ASSERT_TRUE(stream->Write(reports));
    for (const v1::TensorPiece& piece : whole.gradient()) {
      v1::StepRequest frame = NewRequest(token);
      *frame.add_gradient() = piece;
      ASSERT_TRUE(stream->Write(frame));
    }
    v1::StepRequest end = NewRequest(token);
    end.set_end(true);
    *end.mutable_digest() = whole.digest();
    ASSERT_TRUE(stream->Write(end));
    if (token.step() % 10 == 0) CallTheRest(token.step());
    if (testing::Test::HasFatalFailure()) return;
  }
  ASSERT_TRUE(reply_.finished());
  EXPECT_EQ(reply_.finish_message(), "");
  v1::StepRequest leave = NewRequest(v1::Token());
  leave.set_leave(true);
  EXPECT_TRUE(stream->Write(leave));
  EXPECT_FALSE(stream->Read(&reply_)) << "the chief ends the stream";
  EXPECT_TRUE(stream->Finish().ok());
}

void ProtoOnlyWorker::ReadVariables(int64_t step) {
  std::map<std::string, std::string> read;
  std::string name;
  v1::ReadVariablesRequest request;
  v1::ReadVariablesReply reply;
  do {
    grpc::ClientContext context;
    const grpc::Status status = stub_->ReadVariables(&context, request, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
    for (const v1::VariablePart& part : reply.part()) {
      if (!part.name().empty()) name = part.name();
      read[name] += part.content();
    }
    request.set_read_id(reply.read_id());
    request.set_position(reply.next_position());
  } while (reply.next_position() != 0);
  if (!alone_) return;
  EXPECT_EQ(reply.step(), step);
  EXPECT_EQ(read["global_step"], std::string(reinterpret_cast<const char*>(&step), sizeof(step)));
  for (int v = 0; v < model().variables_size(); ++v) {
    const AlignedBuffer& variable = ValueOf(step, static_cast<uint32_t>(v));
    const std::string& content = read[model().variables(v).name()];
    ASSERT_EQ(content.size(), variable.size());
    // If values are compressed, workers receive rounded ones.
    if (config_.compression().values() != config::v1::CompressionConfig::FLOAT32) continue;
    EXPECT_EQ(std::memcmp(content.data(), variable.data(), content.size()), 0) << model().variables(v).name();
  }
}

void ProtoOnlyWorker::CallTheRest(int64_t step) {
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_session_id(session_.session_id());
  heartbeat.set_generation(session_.generation());
  v1::HeartbeatReply beat;
  grpc::ClientContext heartbeat_context;
  ASSERT_TRUE(stub_->Heartbeat(&heartbeat_context, heartbeat, &beat).ok());
  EXPECT_GE(beat.global_step(), step);
  v1::RunStatus status;
  grpc::ClientContext status_context;
  ASSERT_TRUE(stub_->GetStatus(&status_context, v1::GetStatusRequest(), &status).ok());
  if (!alone_) return;
  ASSERT_EQ(status.worker_size(), 1);
  EXPECT_EQ(status.worker(0).name(), open_.worker());
}

}  // namespace lockstep
