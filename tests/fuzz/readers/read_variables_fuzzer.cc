#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/client/variable_parts.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/server/chief/reads/variable_reads.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/tests/fuzz/fuzz_target.h"

namespace lockstep {
namespace {

std::unique_ptr<VariableStore> NewStore() {
  v1::ModelSpec model;
  config::v1::OptimizerConfig optimizer;
  CHECK(google::protobuf::TextFormat::ParseFromString(
      R"pb(variables { name: "w" dtype: DT_FLOAT shape: 3 trainable: true }
           variables { name: "large" dtype: DT_FLOAT shape: 20000 })pb",
      &model));
  CHECK(google::protobuf::TextFormat::ParseFromString("momentum { momentum: 0.9 }", &optimizer));
  auto store = VariableStore::Create(model, optimizer).value();
  store->Initialize(1);
  return store;
}

// Reads of variables, as from a chief. Before each read, the time and the step advance as the input specifies.
class Reads {
 public:
  Reads() {
    VariableReads::Options options;
    options.clock = &clock_;
    options.draw_id = [this] { return ++last_id_; };
    options.step = [this] { return Snapshot().step; };
    options.take_snapshot = [this] { return Snapshot(); };
    options.reply_bytes = 1;
    reads_ = std::make_unique<VariableReads>(std::move(options));
  }
  // Advances the time and the steps, then makes the call.
  absl::StatusOr<v1::ReadVariablesReply> Call(uint8_t passes, const v1::ReadVariablesRequest& request) {
    clock_.Advance(absl::Seconds(passes % 16));
    step_ += passes / 16;
    return reads_->Read(request);
  }

 private:
  VariableSnapshot Snapshot() const {
    static const VariableStore* const store = NewStore().release();
    VariableSnapshot snapshot = store->TakeSnapshot();
    snapshot.step = step_;
    return snapshot;
  }

  SimulatedClock clock_;
  uint64_t last_id_ = 0;
  int64_t step_ = 0;
  std::unique_ptr<VariableReads> reads_;
};

// The input is a list of requests, each preceded by a byte that says how far the time and the step advance before it,
// and by its length.
bool RunRequests(absl::string_view bytes) {
  Reads reads;
  bool all = true;
  for (FuzzInput input(bytes); !input.empty();) {
    const uint8_t passes = input.TakeByte();
    v1::ReadVariablesRequest request;
    const absl::string_view message = input.TakeSized();
    if (!request.ParseFromArray(message.data(), static_cast<int>(message.size()))) return false;
    const auto reply = reads.Call(passes, request);
    if (reply.ok()) {
      CHECK_GT(reply->part_size(), 0);
      CHECK_LT(reply->ByteSizeLong(), 100'000u);
      CHECK(reply->next_position() == 0 || reply->next_position() > request.position());
      continue;
    }
    all = false;
    CHECK(absl::IsInvalidArgument(reply.status()) || absl::IsAborted(reply.status()) ||
          absl::IsUnavailable(reply.status()) || absl::IsResourceExhausted(reply.status()))
        << reply.status();
    CHECK_LT(reply.status().message().size(), 2000u);
  }
  return all;
}

// The input is a list of replies, each preceded by a byte that says whether only names were requested, and by its
// length.
bool RunReplies(absl::string_view bytes) {
  FuzzInput input(bytes);
  const bool names_only = input.TakeByte() != 0;
  VariableParts parts(names_only);
  while (!input.empty()) {
    v1::ReadVariablesReply reply;
    const absl::string_view message = input.TakeSized();
    if (!reply.ParseFromArray(message.data(), static_cast<int>(message.size()))) return false;
    const absl::Status added = parts.Add(reply);
    CHECK(added.ok() || absl::IsInternal(added)) << added;
    if (!added.ok()) return false;
  }
  const auto read = parts.Take();
  if (!read.ok()) return false;
  size_t total = 0;
  for (const VariablesAtStep::Variable& variable : read->variables) {
    total += variable.value.bytes().size();
    if (names_only) continue;
    CHECK_EQ(variable.value.bytes().size(),
             static_cast<size_t>(variable.shape.num_elements()) * SizeOf(variable.dtype));
  }
  CHECK_LE(total, bytes.size());
  return true;
}

// Returns the calls that make up a complete read.
std::vector<std::string> RequestSeeds() {
  v1::ReadVariablesRequest first;
  first.add_name("large");
  first.add_name("global_step");
  v1::ReadVariablesRequest second;
  second.set_read_id(1);
  second.set_position(65536);
  v1::ReadVariablesRequest names;
  names.set_names_only(true);
  const std::string whole = '\x00' + Sized(first.SerializeAsString()) + '\x21' + Sized(second.SerializeAsString());
  return {whole, '\x00' + Sized(names.SerializeAsString()), '\x00' + Sized("")};
}

std::vector<std::string> ReplySeeds() {
  Reads reads;
  v1::ReadVariablesRequest request;
  request.add_name("w");
  request.add_name("w/Momentum");
  request.add_name("global_step");
  std::string replies(1, '\0');
  do {
    const auto reply = reads.Call(0, request).value();
    replies += Sized(reply.SerializeAsString());
    request.clear_name();
    request.set_read_id(reply.read_id());
    request.set_position(reply.next_position());
  } while (request.position() != 0);
  request.Clear();
  request.set_names_only(true);
  std::string names(1, '\1');
  do {
    const auto reply = reads.Call(0, request).value();
    names += Sized(reply.SerializeAsString());
    request.set_position(reply.next_position());
  } while (request.position() != 0);
  return {replies, names};
}

const FuzzTarget kRequests({"read_request", kProtobufReserve, 1000, RunRequests, RequestSeeds});
const FuzzTarget kReplies({"read_reply", kProtobufReserve, 500, RunReplies, ReplySeeds});

}  // namespace
}  // namespace lockstep
