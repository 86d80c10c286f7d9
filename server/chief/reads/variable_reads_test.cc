#include "lockstep/server/chief/reads/variable_reads.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/server/ps/variable_store.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "w" has 6 elements, "mean" 2, and "big" 40,000, which with its momentum take 5 parts of 64 KiB.
constexpr char kModel[] = R"(
  variables { name: "w" shape: 2 shape: 3 dtype: DT_FLOAT trainable: true initializer { normal { stddev: 1 } } }
  variables { name: "mean" shape: 2 dtype: DT_FLOAT }
  variables { name: "big" shape: 40000 dtype: DT_FLOAT trainable: true initializer { normal { stddev: 1 } } }
)";

// A variable as read.
struct Received {
  std::string name;
  v1::DataType dtype;
  std::vector<int64_t> shape;
  std::string content;
};

class VariableReadsTest : public ::testing::Test {
 protected:
  VariableReadsTest() {
    v1::ModelSpec model;
    config::v1::OptimizerConfig optimizer;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kModel, &model));
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("momentum { momentum: 0.9 }", &optimizer));
    store_ = VariableStore::Create(model, optimizer).value();
    store_->Initialize(7);
    EXPECT_TRUE(fs_.CreateDirectory("d").ok());
    options_.clock = &clock_;
    options_.draw_id = [this] { return draws_.empty() ? ++last_id_ : Draw(); };
    options_.step = [this] { return store_->step(); };
    options_.take_snapshot = [this] { return store_->TakeSnapshot(); };
    options_.reply_bytes = 1;
    options_.limits.max_reads = 2;
  }
  void Make() { reads_ = std::make_unique<VariableReads>(options_); }

  uint64_t Draw() {
    const uint64_t id = draws_.back();
    draws_.pop_back();
    return id;
  }
  // Advances the global step by one.
  void Step() {
    store_->BeginUpdate();
    std::vector<float> sum(ParameterLayout::kSegmentElements, 1.0f);
    const auto& segments = store_->layout().segments();
    for (size_t i = 0; i < segments.size(); ++i) {
      if (!store_->layout().variables()[segments[i].variable].spec.trainable()) continue;
      store_->ApplySegment(static_cast<int>(i), sum.data(), 1);
    }
    store_->CommitUpdate({});
  }
  absl::StatusOr<v1::ReadVariablesReply> Begin(const std::vector<std::string>& names = {}) {
    v1::ReadVariablesRequest request;
    for (const std::string& name : names) request.add_name(name);
    return reads_->Read(request);
  }
  absl::StatusOr<v1::ReadVariablesReply> Continue(const v1::ReadVariablesReply& last) {
    v1::ReadVariablesRequest request;
    request.set_read_id(last.read_id());
    request.set_position(last.next_position());
    return reads_->Read(request);
  }
  // Reads the rest of a read that began with `reply`.
  std::vector<Received> Rest(v1::ReadVariablesReply reply) {
    std::vector<Received> received;
    for (const int64_t step = reply.step();;) {
      EXPECT_EQ(reply.step(), step);
      EXPECT_LE(reply.ByteSizeLong(), options_.reply_bytes + (64 << 10) + 100);
      for (const v1::VariablePart& part : reply.part()) {
        if (!part.name().empty()) {
          received.push_back({part.name(), part.dtype(), {part.shape().begin(), part.shape().end()}, ""});
        }
        received.back().content += part.content();
      }
      if (reply.next_position() == 0) return received;
      auto next = Continue(reply);
      EXPECT_TRUE(next.ok()) << next.status();
      if (!next.ok()) return received;
      reply = *std::move(next);
    }
  }
  // Returns the variables as stored in a checkpoint of the store.
  std::vector<Received> Saved() {
    const std::string prefix = absl::StrCat("d/model.ckpt-", store_->step());
    auto writer = BundleWriter::Create(&fs_, prefix).value();
    EXPECT_TRUE(WriteSnapshot(store_->TakeSnapshot(), writer.get()).ok());
    EXPECT_TRUE(writer->Finish().ok());
    const auto reader = BundleReader::Open(&fs_, prefix).value();
    std::vector<Received> saved;
    for (const SnapshotEntry& entry : EntriesOf(store_->TakeSnapshot())) {
      const Tensor tensor = reader->Read(entry.key).value();
      saved.push_back({entry.key,
                       tensor.dtype(),
                       {tensor.shape().dims().begin(), tensor.shape().dims().end()},
                       std::string(tensor.bytes())});
    }
    EXPECT_EQ(saved.size(), reader->names().size());
    return saved;
  }
  static void ExpectEqual(const std::vector<Received>& read, const std::vector<Received>& saved) {
    ASSERT_EQ(read.size(), saved.size());
    for (size_t i = 0; i < read.size(); ++i) {
      EXPECT_EQ(read[i].name, saved[i].name);
      EXPECT_EQ(read[i].dtype, saved[i].dtype) << read[i].name;
      EXPECT_EQ(read[i].shape, saved[i].shape) << read[i].name;
      EXPECT_TRUE(read[i].content == saved[i].content) << read[i].name;
    }
  }
  SimulatedClock clock_;
  MemoryFileSystem fs_;
  std::unique_ptr<VariableStore> store_;
  std::vector<uint64_t> draws_;
  uint64_t last_id_ = 100;
  VariableReads::Options options_;
  std::unique_ptr<VariableReads> reads_;
};

TEST_F(VariableReadsTest, ReadsWhatACheckpointHolds) {
  for (const size_t reply_bytes : {size_t{1}, size_t{100000}, size_t{1} << 20}) {
    options_.reply_bytes = reply_bytes;
    Make();
    Step();
    const auto first = Begin();
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(first->step(), store_->step());
    ExpectEqual(Rest(*first), Saved());
    EXPECT_FALSE(reads_->pinned_step().has_value());
  }
}

TEST_F(VariableReadsTest, ReadsTheNamedOnesInTheirOrder) {
  Make();
  Step();
  const std::vector<Received> all = Saved();
  const std::vector<Received> read = Rest(*Begin({"global_step", "big/Momentum", "mean"}));
  std::vector<std::string> names;
  for (const Received& received : all) names.push_back(received.name);
  EXPECT_THAT(names, ElementsAre("w", "w/Momentum", "mean", "big", "big/Momentum", "global_step"));
  ExpectEqual(read, {all[5], all[4], all[2]});
}

TEST_F(VariableReadsTest, AReadStaysAtItsStepWhileTheStepsGoOn) {
  Make();
  Step();
  const std::vector<Received> saved = Saved();
  const auto first = Begin();
  for (int i = 0; i < 5; ++i) Step();
  ExpectEqual(Rest(*first), saved);
}

TEST_F(VariableReadsTest, ARepeatedCallHasTheSameReply) {
  Make();
  const auto first = Begin();
  Step();
  const auto second = Continue(*first);
  EXPECT_EQ(Continue(*first)->SerializeAsString(), second->SerializeAsString());
}

TEST_F(VariableReadsTest, AVersionIsHeldOnlyWhileItIsRead) {
  Make();
  const std::weak_ptr<const AlignedBuffer> version = store_->values();
  const auto first = Begin();
  Step();
  Step();
  EXPECT_EQ(reads_->pinned_step(), 0);
  EXPECT_FALSE(version.expired());
  Rest(*first);
  EXPECT_FALSE(reads_->pinned_step().has_value());
  EXPECT_TRUE(version.expired());
  EXPECT_TRUE(absl::IsAborted(Continue(*first).status())) << "the last reply ends it";
}

TEST_F(VariableReadsTest, KeepsOneVersionAndCutsSlowReaders) {
  const std::weak_ptr<const AlignedBuffer> version = store_->values();
  options_.take_snapshot = [&] {
    EXPECT_EQ(version.expired(), store_->step() > 0) << "never two versions, not even for an instant";
    return store_->TakeSnapshot();
  };
  Make();
  const auto slow = Begin();
  Step();
  clock_.Advance(absl::Seconds(1));
  const auto joined = Begin();
  EXPECT_EQ(joined->step(), 0) << "within the grace";
  EXPECT_TRUE(absl::IsUnavailable(Begin().status())) << "two are allowed";
  clock_.Advance(absl::Seconds(1));
  const auto fresh = Begin();
  ASSERT_TRUE(fresh.ok()) << fresh.status();
  EXPECT_EQ(fresh->step(), 1);
  EXPECT_EQ(reads_->pinned_step(), 1);
  for (const auto& cut : {slow, joined}) {
    const absl::Status status = Continue(*cut).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("the values of step 0 are gone"));
  }
  ExpectEqual(Rest(*fresh), Saved());
}

TEST_F(VariableReadsTest, AReaderThatIsGoneIsForgotten) {
  Make();
  const auto first = Begin();
  clock_.Advance(absl::Seconds(9.9));
  reads_->ForgetIdle();
  EXPECT_EQ(reads_->pinned_step(), 0);
  clock_.Advance(absl::Seconds(0.1));
  reads_->ForgetIdle();
  EXPECT_FALSE(reads_->pinned_step().has_value());
  EXPECT_TRUE(absl::IsAborted(Continue(*first).status()));
}

TEST_F(VariableReadsTest, ABadRequestDisturbsNoReader) {
  Make();
  const auto first = Begin();
  Step();
  clock_.Advance(absl::Seconds(5));
  const absl::Status unknown = Begin({"w", "v\n"}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(unknown));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("no variable \"v\\n\""));
  const absl::Status too_long = Begin({std::string(60000, '\n')}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(too_long));
  EXPECT_LT(too_long.message().size(), 2000u) << "gRPC has to deliver it";
  const absl::Status twice = Begin({"w", "mean", "w"}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(twice));
  EXPECT_THAT(std::string(twice.message()), HasSubstr("\"w\" twice"));
  v1::ReadVariablesRequest request;
  request.set_position(24);
  EXPECT_TRUE(absl::IsInvalidArgument(reads_->Read(request).status())) << "a read begins at 0";
  request.set_read_id(first->read_id());
  EXPECT_TRUE(reads_->Read(request).ok());
  request.add_name("w");
  EXPECT_TRUE(absl::IsInvalidArgument(reads_->Read(request).status())) << "names are for the first call";
  request.clear_name();
  int64_t total = 0;
  for (const Received& saved : Saved()) total += static_cast<int64_t>(saved.content.size());
  for (const int64_t position : {int64_t{-1}, int64_t{3}, total - 4, total, INT64_MAX, INT64_MIN}) {
    request.set_position(position);
    EXPECT_TRUE(absl::IsInvalidArgument(reads_->Read(request).status())) << position;
  }
  request.set_names_only(true);
  EXPECT_TRUE(absl::IsInvalidArgument(reads_->Read(request).status()));
  EXPECT_TRUE(Continue(*first).ok());
}

TEST_F(VariableReadsTest, AnUnknownReadIsAborted) {
  Make();
  v1::ReadVariablesRequest request;
  request.set_read_id(12345);
  EXPECT_TRUE(absl::IsAborted(reads_->Read(request).status()));
}

TEST_F(VariableReadsTest, EveryReadHasAnIdOfItsOwn) {
  draws_ = {9, 7, 7, 0, 7};
  Make();
  EXPECT_EQ(Begin()->read_id(), 7u);
  EXPECT_EQ(Begin()->read_id(), 9u);
}

TEST_F(VariableReadsTest, NamesAloneKeepNothingAndCutNobody) {
  Make();
  const auto first = Begin();
  Step();
  clock_.Advance(absl::Seconds(5));
  v1::ReadVariablesRequest request;
  request.set_names_only(true);
  std::vector<std::string> names;
  do {
    const auto reply = reads_->Read(request);
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->read_id(), 0u);
    EXPECT_EQ(reply->step(), 1);
    for (const v1::VariablePart& part : reply->part()) {
      names.push_back(part.name());
      EXPECT_EQ(part.content(), "");
      EXPECT_EQ(part.dtype(), part.name() == "global_step" ? v1::DT_INT64 : v1::DT_FLOAT);
      EXPECT_EQ(part.shape_size(), part.name() == "global_step" ? 0 : part.name()[0] == 'w' ? 2 : 1);
    }
    request.set_position(reply->next_position());
  } while (request.position() != 0);
  EXPECT_THAT(names, ElementsAre("w", "w/Momentum", "mean", "big", "big/Momentum", "global_step"));
  EXPECT_EQ(reads_->pinned_step(), 0);
  EXPECT_TRUE(Continue(*first).ok());
  request.set_position(4);
  EXPECT_TRUE(absl::IsInvalidArgument(reads_->Read(request).status()));
}

TEST_F(VariableReadsTest, WithoutMemoryThereAreNamesButNoValues) {
  options_.memory = absl::FailedPreconditionError("no memory");
  Make();
  EXPECT_TRUE(absl::IsFailedPrecondition(Begin().status()));
  v1::ReadVariablesRequest request;
  request.set_names_only(true);
  EXPECT_TRUE(reads_->Read(request).ok());
}

}  // namespace
}  // namespace lockstep
