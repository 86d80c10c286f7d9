#include <array>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/contract/testing/declaration.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/transport/codec/step_codec.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/rpc/step/step_frame_receiver.h"
#include "lockstep/tests/fuzz/fuzz_target.h"

namespace lockstep {
namespace {

constexpr int kHostile = 2;
constexpr absl::Duration kMoreThanALease = absl::Seconds(10);

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

const v1::ModelSpec& Model() {
  static const auto* const model = new v1::ModelSpec(Parse<v1::ModelSpec>(
      R"pb(variables {
             name: "w"
             dtype: DT_FLOAT
             shape: 3
             trainable: true
             initializer { zeros {} }
           }
           variables {
             name: "mean"
             dtype: DT_FLOAT
             shape: 2
             initializer { zeros {} }
           }
           variables {
             name: "b"
             dtype: DT_FLOAT
             shape: 2
             trainable: true
             initializer { zeros {} }
           }
           update_ops { variable: "mean" kind: ASSIGN })pb"));
  return *model;
}

// Returns a configuration from bits: the number of slots (3), 16-bit values (4), top-k (8).
config::v1::RunSpec Configuration(uint8_t bits) {
  auto config = Parse<config::v1::RunSpec>(
      "input { batch_size: 8 } optimizer { sgd {} learning_rate { initial: 0.1 } } training { steps: 1000 }");
  config.mutable_training()->set_replicas_to_aggregate(1 + bits % 4);
  if ((bits & 12) == 4) config.mutable_compression()->set_gradients(config::v1::CompressionConfig::BFLOAT16);
  if (bits & 8) config.mutable_compression()->mutable_top_k()->set_fraction(0.5);
  ApplyDefaults(&config);
  return config;
}

// Returns the request of a worker whose session opens immediately.
v1::OpenSessionRequest Declaration(uint8_t worker) {
  v1::OpenSessionRequest request;
  request.set_worker(absl::StrCat("worker-", worker));
  request.set_incarnation(1);
  *request.mutable_model() = Model();
  CompleteDeclaration(&request);
  return request;
}

class SilentListener : public StepListener {
 public:
  void OnReplyReady() override {}
  void OnResume() override {}
  void OnClosed(const absl::Status&, bool) override {}
};

// A chief without a logdir, with session ids 1, 2, ...
class FuzzedChief {
 public:
  explicit FuzzedChief(uint8_t bits) : config_(Kept<Configuration>(bits)) {
    Chief::Options options;
    options.fs = &fs_;
    options.clock = &clock_;
    options.config = config_;
    options.machine.draw_session_id = [this] { return ++last_session_; };
    options.housekeeping_period = absl::ZeroDuration();
    chief_ = Chief::Create(std::move(options)).value();
  }

  Chief* chief() { return chief_.get(); }
  const config::v1::RunSpec& config() const { return config_; }

  uint64_t OpenSession() {
    const auto opened = chief_->sessions()->OpenSession(Kept<Declaration>(static_cast<uint8_t>(last_session_)));
    CHECK(opened.ok()) << opened.status();
    return opened->session_id();
  }

  // Advances the time, so that all leases that have not been renewed expire.
  void LetTimePass() {
    clock_.Advance(kMoreThanALease);
    chief_->Housekeep();
  }

 private:
  MemoryFileSystem fs_;
  SimulatedClock clock_;
  const config::v1::RunSpec& config_;
  uint64_t last_session_ = 0;
  std::unique_ptr<Chief> chief_;
};

// A stream to the chief. Handles messages as StepCall does.
class Stream {
 public:
  explicit Stream(Chief* chief) : receiver_(chief) {}
  ~Stream() {
    if (connection_ != nullptr) connection_->Close();
  }

  // Sends a message. An error ends the stream.
  absl::Status Send(const grpc::ByteBuffer& message) {
    Decoded<StepFrame> decoded;
    absl::Status status = receiver_.Decode(message, &decoded);
    if (status.ok() && connection_ == nullptr) {
      auto connection = receiver_.Connect(decoded.frame, std::make_shared<SilentListener>());
      if (!connection.ok()) return connection.status();
      connection_ = *std::move(connection);
    }
    if (bool waits = false; status.ok()) status = receiver_.Deliver(&decoded.frame, &waits);
    return status;
  }

  // Takes and encodes all replies. Returns the newest token in them, if any.
  absl::optional<v1::Token> TakeReplies(bool* finished) {
    absl::optional<v1::Token> token;
    for (StepReplyFrame reply; connection_ != nullptr && connection_->NextReply(&reply); Clear(&reply)) {
      connection_->CountSent(static_cast<int64_t>(EncodeStepReply(reply).Length()));
      if (reply.token) token = reply.token;
      *finished = *finished || reply.finished;
    }
    return token;
  }

 private:
  StepFrameReceiver receiver_;
  std::shared_ptr<StepConnection> connection_;
};

// Returns a frame that contributes zeros for the token or, without a token, a frame that requests one.
StepFrame ContributionFor(const absl::optional<v1::Token>& token, const config::v1::RunSpec& config) {
  static const float zeros[3] = {};
  StepFrame frame;
  frame.end = true;
  if (!token) return frame;
  frame.step = token->step();
  frame.block = {token->first_slot(), token->slot_count()};
  for (int64_t slot = frame.block.first; slot < frame.block.end(); ++slot) {
    frame.reports.emplace_back();
    frame.reports.back().set_slot(slot);
    frame.reports.back().add_update(std::string(2 * sizeof(float), '\0'));
    if (!config.compression().has_top_k()) continue;
    for (const int64_t variable : {0, 2}) frame.gradients.push_back(SparsePiece(slot, variable, 0, ""));
  }
  if (config.compression().has_top_k()) return frame;
  const bool rounded = config.compression().gradients() == config::v1::CompressionConfig::BFLOAT16;
  for (const int64_t variable : {0, 2}) {
    StepPiece piece;
    piece.variable = variable;
    const int64_t elements = Model().variables(static_cast<int>(variable)).shape(0);
    piece.content = rounded ? FloatChunks(v1::DT_BFLOAT16, reinterpret_cast<const uint16_t*>(zeros), elements)
                            : FloatChunks(zeros, elements);
    frame.gradients.push_back(std::move(piece));
  }
  return frame;
}

// Checks that after any input, an honest worker can advance the run, unless the run is over.
void CheckStepsGoOn(FuzzedChief* fuzzed) {
  Chief* const chief = fuzzed->chief();
  const auto is_over = [](const v1::RunStatus& status) {
    return status.phase() == v1::RunStatus::FAILED || status.phase() == v1::RunStatus::FINISHED;
  };
  const int64_t before = chief->GetStatus().global_step();
  const uint64_t session = fuzzed->OpenSession();
  Stream honest(chief);
  absl::optional<v1::Token> token;
  bool finished = false;
  for (int frames = 0; frames < 8; ++frames) {
    StepFrame frame = ContributionFor(token, fuzzed->config());
    frame.session_id = session;
    frame.generation = chief->generation();
    const absl::Status sent = honest.Send(EncodeStepRequest(frame));
    const v1::RunStatus status = chief->GetStatus();
    CHECK(sent.ok() || is_over(status)) << sent;
    if (is_over(status) || status.global_step() > before) return;
    token = honest.TakeReplies(&finished);
    CHECK(token.has_value()) << "a free worker gets no token";
  }
  LOG(FATAL) << "no step in " << chief->GetStatus().ShortDebugString();
}

// The input is a byte for the configuration, followed by messages of hostile workers, each preceded by the number of
// its stream and its length. The number 255 advances the time instead.
bool Run(absl::string_view input) {
  FuzzInput in(input);
  FuzzedChief fuzzed(in.TakeByte());
  for (int i = 0; i < kHostile; ++i) fuzzed.OpenSession();
  std::array<std::unique_ptr<Stream>, kHostile> streams;
  bool all_taken = true;
  while (!in.empty()) {
    const uint8_t number = in.TakeByte();
    if (number == 255) {
      fuzzed.LetTimePass();
      continue;
    }
    std::unique_ptr<Stream>& stream = streams[number % kHostile];
    if (stream == nullptr) stream = std::make_unique<Stream>(fuzzed.chief());
    const absl::string_view message = in.TakeSized();
    const grpc::Slice slice(message.data(), message.size());
    bool finished = false;
    stream->TakeReplies(&finished);
    if (stream->Send(grpc::ByteBuffer(&slice, 1)).ok()) {
      stream->TakeReplies(&finished);
    } else {
      stream.reset();
      all_taken = false;
    }
  }
  for (auto& stream : streams) stream.reset();
  CheckStepsGoOn(&fuzzed);
  return all_taken;
}

std::string Message(int number, const StepFrame& frame) {
  std::vector<grpc::Slice> slices;
  CHECK(EncodeStepRequest(frame).Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return std::string(1, static_cast<char>(number)) + Sized(bytes);
}

// Returns the messages of two honest workers, one of which hangs for a while, over three steps. They are the same for
// every chief, because all fuzzed chiefs start at the same time.
std::string SeedFor(uint8_t bits) {
  std::string seed(1, static_cast<char>(bits));
  FuzzedChief fuzzed(bits);
  std::array<std::unique_ptr<Stream>, kHostile> streams;
  std::array<absl::optional<v1::Token>, kHostile> tokens;
  std::array<bool, kHostile> waits = {};
  for (int i = 0; i < kHostile; ++i) {
    fuzzed.OpenSession();
    streams[i] = std::make_unique<Stream>(fuzzed.chief());
  }
  for (int round = 0; round < 3 * kHostile; ++round) {
    const int i = round % kHostile;
    if (round == 3) {
      seed += '\xff';
      fuzzed.LetTimePass();
    }
    bool finished = false;
    if (waits[i]) tokens[i] = streams[i]->TakeReplies(&finished);
    if (waits[i] && !tokens[i]) continue;
    StepFrame frame = ContributionFor(tokens[i], fuzzed.config());
    frame.session_id = static_cast<uint64_t>(i) + 1;
    frame.generation = fuzzed.chief()->generation();
    const absl::Status sent = streams[i]->Send(EncodeStepRequest(frame));
    CHECK(sent.ok()) << sent;
    seed += Message(i, frame);
    tokens[i] = streams[i]->TakeReplies(&finished);
    waits[i] = !tokens[i];
  }
  return seed;
}

std::vector<std::string> Seeds() { return {SeedFor(0), SeedFor(1), SeedFor(3), SeedFor(5), SeedFor(9)}; }

// The limit covers a chief, and message descriptors that are created on first use.
const FuzzTarget kTarget({"step_frames", 4 << 20, 200, Run, Seeds});

}  // namespace
}  // namespace lockstep
