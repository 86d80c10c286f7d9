// A worker's values and its outgoing gradients share memory (common/client/values/received_values.h). These tests use
// random chiefs that follow the protocol, and random senders that release gradients late and in any order, to check
// that no memory is overwritten too early.
#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/client/streamed_step_channel.h"

namespace lockstep {
namespace {

constexpr int64_t kValuePiece = 2;
constexpr int kConstant = 1;  // the variable "frozen"

ParameterLayout Layout() {
  v1::ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(variables { name: "a" dtype: DT_FLOAT shape: 7 trainable: true }
           variables { name: "frozen" dtype: DT_FLOAT shape: 3 }
           variables { name: "b" dtype: DT_FLOAT shape: 1 trainable: true }
           variables { name: "c" dtype: DT_FLOAT shape: 12 trainable: true })pb",
      &model));
  return ParameterLayout::Create(model).value();
}

// Always positive; the worker writes negative numbers.
float ValueAt(int64_t step, int variable, int64_t element) {
  return static_cast<float>(step * 1000 + variable * 100 + element + 1);
}

class Chance {
 public:
  explicit Chance(uint64_t seed) : engine_(seed) {}
  int64_t Below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  bool OneIn(int64_t n) { return Below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

// A stream that sends values as a correct chief may: the values of the token's step before the token, in any order, and
// the next step's values once the worker has begun to send its contribution or while it waits. Steps may complete
// without the worker. The constant variable is sent before the first token, and again whenever it has been set, which
// happens between steps.
class RandomStream : public StepStream {
 public:
  RandomStream(const ParameterLayout* layout, Chance* chance) : layout_(*layout), chance_(*chance) { SetConstant(); }

  FrameSizes sizes() const override {
    FrameSizes sizes;
    sizes.frame_bytes = 20;
    sizes.piece_elements = 3;
    return sizes;
  }
  absl::Status Send(const StepFrame& frame) override {
    for (const StepPiece& piece : frame.gradients) {
      held_.push_back({piece, Copy(piece)});
      for (const float number : held_.back().numbers) EXPECT_LT(number, 0) << "no gradient";
    }
    token_step_ = frame.end ? -1 : token_step_;
    sends_ = !frame.end;
    LetGoOfSome();
    return absl::OkStatus();
  }
  absl::Status Poll(Receiver* receiver) override {
    LetGoOfSome();
    if (!sends_ || token_step_ < 0 || chance_.OneIn(2)) return absl::OkStatus();
    if (coming_ == token_step_) Begin(token_step_ + 1);
    return SendPieces(receiver);
  }
  absl::StatusOr<bool> Receive(Receiver* receiver) override {
    while (true) {
      LetGoOfSome();
      if (chance_.OneIn(3)) step_ += 1 + (chance_.OneIn(4) ? chance_.Below(3) : 0);
      if (chance_.OneIn(8)) SetConstant();
      const bool there = complete_ == step_ || (coming_ == step_ && pieces_.empty());
      if (!there && coming_ < step_) Begin(step_);
      if (there && coming_ == step_ && chance_.OneIn(2)) Begin(step_ + 1);
      const absl::Status status = SendPieces(receiver);
      if (!status.ok()) return status;
      if (!there || !constant_pieces_.empty() || chance_.OneIn(2)) continue;
      StepReplyFrame reply;
      reply.token.emplace();
      reply.token->set_step(step_);
      reply.token->set_slot_count(1);
      token_step_ = step_;
      const absl::StatusOr<bool> more = receiver->OnReply(reply);
      if (!more.ok()) return more.status();
      return !*more;
    }
  }
  void Drain() override {}
  absl::Status Close() override { return absl::UnavailableError("closed"); }
  void CancelWait() override {}
  void Cancel() override {}

  // Returns the expected value of a variable's element at a step.
  float Expected(int64_t step, int variable, int64_t element) const {
    return ValueAt(variable == kConstant ? edition_ : step, variable, element);
  }

  // Checks that pieces that are still being sent have not changed since they were handed over.
  void CheckHeld() const {
    for (const Held& held : held_) ASSERT_EQ(Copy(held.piece), held.numbers);
  }

 private:
  struct Held {
    StepPiece piece;
    std::vector<float> numbers;
  };

  static std::vector<float> Copy(const StepPiece& piece) {
    std::vector<float> numbers(static_cast<size_t>(piece.content.size()));
    piece.content.CopyTo(0, piece.content.size(), numbers.data());
    return numbers;
  }
  void LetGoOfSome() {
    CheckHeld();
    held_.erase(std::remove_if(held_.begin(), held_.end(), [this](const Held&) { return chance_.OneIn(4); }),
                held_.end());
  }
  // Queues all pieces of a variable, in any order.
  void Queue(int variable, std::vector<std::pair<int, int64_t>>* pieces) {
    for (int64_t offset = 0; offset < layout_.variables()[variable].elements; offset += kValuePiece) {
      pieces->insert(pieces->begin() + chance_.Below(static_cast<int64_t>(pieces->size()) + 1), {variable, offset});
    }
  }
  void SetConstant() {
    ++edition_;
    constant_pieces_.clear();
    Queue(kConstant, &constant_pieces_);
  }
  // Queues all pieces of the values of `step`.
  void Begin(int64_t step) {
    if (pieces_.empty()) complete_ = coming_;
    coming_ = step;
    pieces_.clear();
    for (int variable = 0; variable < static_cast<int>(layout_.variables().size()); ++variable) {
      if (variable != kConstant) Queue(variable, &pieces_);
    }
  }
  absl::Status SendPieces(Receiver* receiver) {
    StepReplyFrame reply;
    reply.values_step = coming_;
    std::deque<std::vector<float>> memory;
    for (int64_t n = chance_.Below(5); n > 0 && !(pieces_.empty() && constant_pieces_.empty()); --n) {
      const bool constant = !constant_pieces_.empty() && (pieces_.empty() || chance_.OneIn(2));
      auto& pieces = constant ? constant_pieces_ : pieces_;
      const auto [variable, offset] = pieces.back();
      pieces.pop_back();
      memory.emplace_back();
      const int64_t end = std::min(offset + kValuePiece, layout_.variables()[variable].elements);
      for (int64_t i = offset; i < end; ++i) memory.back().push_back(Expected(coming_, variable, i));
      StepPiece piece;
      piece.variable = variable;
      piece.offset = offset;
      piece.content = FloatChunks(memory.back().data(), end - offset);
      reply.values.push_back(std::move(piece));
    }
    return reply.values.empty() ? absl::OkStatus() : receiver->OnReply(reply).status();
  }

  const ParameterLayout& layout_;
  Chance& chance_;
  std::vector<Held> held_;
  int64_t step_ = 0;         // the chief's
  int64_t token_step_ = -1;  // the worker's, until it has ended its contribution
  bool sends_ = false;
  int64_t complete_ = -1;
  int64_t coming_ = -1;
  std::vector<std::pair<int, int64_t>> pieces_;  // of coming_, not yet sent
  int64_t edition_ = 0;                          // of the constant variable
  std::vector<std::pair<int, int64_t>> constant_pieces_;
};

TEST(StepChannelMemoryTest, NothingThatIsReadIsWritten) {
  const ParameterLayout layout = Layout();
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Chance chance(seed);
    auto owned = std::make_unique<RandomStream>(&layout, &chance);
    RandomStream* const stream = owned.get();
    StreamedStepChannel channel(std::move(owned), {}, layout);
    for (int block = 0; block < 60; ++block) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", block ", block));
      const auto assignment = channel.AwaitToken();
      ASSERT_TRUE(assignment.ok()) << assignment.status();
      const auto check = [&] {
        for (int variable = 0; variable < static_cast<int>(layout.variables().size()); ++variable) {
          for (int64_t i = 0; i < layout.variables()[variable].elements; ++i) {
            ASSERT_EQ(assignment->values[variable][i], stream->Expected(assignment->token.step(), variable, i));
          }
        }
        stream->CheckHeld();
      };
      check();
      ASSERT_TRUE(channel.SendReports({v1::SlotReport()}).ok());
      // Occasionally abandons the block in the middle.
      const int64_t sent = chance.OneIn(6) ? chance.Below(3) : 3;
      const int last_first[] = {3, 2, 0};
      for (int64_t i = 0; i < sent; ++i) {
        const int variable = last_first[i];
        const auto elements = static_cast<size_t>(layout.variables()[variable].elements);
        std::fill_n(channel.GradientBuffer(variable), elements, -1 - static_cast<float>(block));
        check();
        ASSERT_TRUE(channel.SendGradient(variable).ok());
        check();
      }
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace lockstep
