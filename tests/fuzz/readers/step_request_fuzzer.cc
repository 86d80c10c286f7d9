#include <algorithm>

#include "glog/logging.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/common/transport/codec/step_codec.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {
namespace {

StepFrameLimits Limits() {
  StepFrameLimits limits;
  limits.reports = 4;
  limits.pieces = 6;
  return limits;
}

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  CHECK(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// Compares the frame with protobuf's result for the same bytes. Compares only numbers, because protobuf merges repeated
// submessages, while the decoder uses the last one.
void CheckAgainstProtobuf(absl::string_view message, const StepFrame& frame) {
  v1::StepRequest proto;
  if (!proto.ParseFromArray(message.data(), static_cast<int>(message.size()))) return;
  CHECK_EQ(proto.session_id(), frame.session_id);
  CHECK_EQ(proto.step(), frame.step);
  CHECK_EQ(proto.slot_count(), frame.block.count);
  CHECK_EQ(proto.report_size(), static_cast<int>(frame.reports.size()));
  CHECK_EQ(proto.gradient_size(), static_cast<int>(frame.gradients.size()));
  for (int i = 0; i < proto.gradient_size(); ++i) {
    CHECK_EQ(proto.gradient(i).variable(), frame.gradients[i].variable);
    CHECK_EQ(proto.gradient(i).offset(), static_cast<uint64_t>(frame.gradients[i].offset));
    CHECK_EQ(proto.gradient(i).content().size(), frame.gradients[i].content.bytes());
  }
}

// Encoding and decoding the frame again must return the same frame.
void CheckRoundTrip(const StepFrame& frame) {
  const std::string bytes = Bytes(EncodeStepRequest(frame));
  const grpc::Slice slice(bytes);
  Decoded<StepFrame> again;
  const absl::Status status = DecodeStepRequest(grpc::ByteBuffer(&slice, 1), Limits(), &again);
  CHECK(status.ok()) << status;
  CHECK(Bytes(EncodeStepRequest(again.frame)) == bytes);
}

// The input is the position at which the message is split into two slices, followed by the message.
bool Run(absl::string_view input) {
  FuzzInput in(input);
  const size_t cut = in.TakeByte();
  const absl::string_view message = in.rest();
  const size_t first = std::min(cut, message.size());
  const grpc::Slice slices[] = {grpc::Slice(message.data(), first),
                                grpc::Slice(message.data() + first, message.size() - first)};
  Decoded<StepFrame> decoded;
  const absl::Status status = DecodeStepRequest(grpc::ByteBuffer(slices, 2), Limits(), &decoded);
  if (!status.ok()) {
    CHECK(absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status)) << status;
    return false;
  }
  CHECK_LE(decoded.frame.reports.size(), 4u);
  CHECK_LE(decoded.frame.gradients.size(), 6u);
  CheckAgainstProtobuf(message, decoded.frame);
  if (cut == 0) CheckRoundTrip(decoded.frame);  // our encoder does not split a tensor into two slices
  return true;
}

std::vector<std::string> Seeds() {
  StepFrame frame;
  frame.session_id = 1;
  frame.generation = 7;
  frame.step = 300;
  frame.block = {2, 2};
  frame.reports.resize(2);
  frame.reports[0].set_slot(2);
  frame.reports[0].set_loss(0.5f);
  frame.reports[0].add_update("8 bytes!");
  frame.reports[1].set_continued(true);
  const float numbers[] = {1, 2, 3};
  StepPiece piece;
  piece.variable = 2;
  piece.offset = 65536;
  piece.content = FloatChunks(numbers, 3);
  frame.gradients = {piece, SparsePiece(3, 1, 0, "123456"), {}};
  frame.gradients[2].shared = SharedSpan{64, 12};
  frame.end = true;
  const std::string whole = Bytes(EncodeStepRequest(frame));
  StepFrame first;
  first.session_id = 1;
  first.generation = 7;
  first.startup_delay_steps = 3;
  first.gradient_memory.emplace();
  first.gradient_memory->set_machine("machine");
  first.gradient_memory->set_bytes(4096);
  first.leave = true;
  return {std::string(1, '\0') + whole, std::string(1, static_cast<char>(whole.size() / 2)) + whole,
          std::string(1, '\0') + Bytes(EncodeStepRequest(first))};
}

const FuzzTarget kTarget({"step_request", 256 << 10, 16, Run, Seeds});

}  // namespace
}  // namespace lockstep
