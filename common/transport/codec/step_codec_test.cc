#include "lockstep/common/transport/codec/step_codec.h"

#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "lockstep/common/tensor/rounding.h"

namespace lockstep {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

std::string Join(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// Returns the bytes in slices cut at `cuts`, as the network may deliver them.
grpc::ByteBuffer Cut(const std::string& bytes, const std::vector<size_t>& cuts = {}) {
  std::vector<grpc::Slice> slices;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    if (cut <= begin || cut >= bytes.size()) continue;
    slices.emplace_back(bytes.substr(begin, cut - begin));
    begin = cut;
  }
  slices.emplace_back(bytes.substr(begin));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// Decodes a request with limits that do not matter to the test.
absl::Status Decode(const grpc::ByteBuffer& buffer, Decoded<StepFrame>* decoded) {
  StepFrameLimits limits;
  limits.reports = 1000;
  limits.pieces = 1000;
  limits.bytes = 1 << 20;
  return DecodeStepRequest(buffer, limits, decoded);
}

std::string ContentOf(const StepPiece& piece) {
  std::vector<float> values(piece.content.size());
  piece.content.CopyTo(0, piece.content.size(), values.data());
  if (piece.content.type() != v1::DT_FLOAT) {
    std::vector<uint16_t> encoded(values.size());
    Encode16(piece.content.type(), piece.content.size(), values.data(), encoded.data());
    return std::string(reinterpret_cast<const char*>(encoded.data()), encoded.size() * sizeof(uint16_t));
  }
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

v1::TensorPiece ToProto(const StepPiece& piece) {
  v1::TensorPiece proto;
  proto.set_variable(static_cast<uint32_t>(piece.variable));
  proto.set_offset(static_cast<uint64_t>(piece.offset));
  if (piece.shared) {
    proto.mutable_shared()->set_offset(piece.shared->offset);
    proto.mutable_shared()->set_bytes(piece.shared->bytes);
    return proto;
  }
  proto.set_content(ContentOf(piece));
  if (piece.content.type() != v1::DT_FLOAT) proto.set_dtype(piece.content.type());
  proto.set_slot(piece.slot);
  proto.set_sparse(piece.sparse);
  return proto;
}

v1::StepRequest ToProto(const StepFrame& frame) {
  v1::StepRequest request;
  request.set_session_id(frame.session_id);
  request.set_generation(frame.generation);
  request.set_step(frame.step);
  request.set_first_slot(frame.block.first);
  request.set_slot_count(frame.block.count);
  for (const v1::SlotReport& report : frame.reports) *request.add_report() = report;
  for (const StepPiece& piece : frame.gradients) *request.add_gradient() = ToProto(piece);
  request.set_end(frame.end);
  request.set_startup_delay_steps(frame.startup_delay_steps);
  request.set_leave(frame.leave);
  if (frame.gradient_memory) *request.mutable_gradient_memory() = *frame.gradient_memory;
  *request.mutable_digest() = {frame.digests.begin(), frame.digests.end()};
  request.set_end_of_input(frame.end_of_input);
  if (frame.ring) *request.mutable_ring() = *frame.ring;
  return request;
}

v1::StepReply ToProto(const StepReplyFrame& frame) {
  v1::StepReply reply;
  reply.set_result(frame.result);
  reply.set_values_step(frame.values_step);
  for (const StepPiece& piece : frame.values) *reply.add_value() = ToProto(piece);
  for (const StepPiece& piece : frame.estimates) *reply.add_estimate() = ToProto(piece);
  reply.set_estimates_step(frame.estimates_step);
  if (frame.token) *reply.mutable_token() = *frame.token;
  reply.set_finished(frame.finished);
  reply.set_finish_message(frame.finish_message);
  if (frame.values_memory) *reply.mutable_values_memory() = *frame.values_memory;
  if (frame.constants_memory) *reply.mutable_constants_memory() = *frame.constants_memory;
  if (frame.ring) *reply.mutable_ring() = *frame.ring;
  if (frame.settings) *reply.mutable_settings() = *frame.settings;
  return reply;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t Below(uint64_t n) { return engine_() % n; }
  bool Coin() { return Below(2) == 0; }
  int64_t Number() {
    const uint64_t bits = engine_();
    switch (Below(4)) {
      case 0:
        return 0;
      case 1:
        return static_cast<int64_t>(bits % 200);
      case 2:
        return static_cast<int64_t>(bits >> 1);
      default:
        return static_cast<int64_t>(bits);
    }
  }
  std::string Bytes(size_t n) {
    std::string bytes(n, '\0');
    for (char& byte : bytes) byte = static_cast<char>(engine_());
    return bytes;
  }
  std::string Ascii(size_t n) {
    std::string text(n, '\0');
    for (char& letter : text) letter = static_cast<char>('a' + Below(26));
    return text;
  }

 private:
  std::mt19937_64 engine_;
};

// A factory of frames whose tensors live as long as the factory.
class FrameMaker {
 public:
  explicit FrameMaker(uint64_t seed) : random_(seed) {}

  StepFrame Request() {
    StepFrame frame;
    frame.session_id = static_cast<uint64_t>(random_.Number());
    frame.generation = random_.Number();
    frame.step = random_.Number();
    frame.block = {random_.Number(), random_.Number()};
    for (uint64_t n = random_.Below(4); n > 0; --n) {
      v1::SlotReport report;
      report.set_slot(random_.Number());
      report.set_loss(static_cast<float>(random_.Below(100)));
      for (uint64_t m = random_.Below(3); m > 0; --m) report.add_update(random_.Bytes(random_.Below(20)));
      frame.reports.push_back(report);
    }
    for (uint64_t n = random_.Below(4); n > 0; --n) {
      frame.gradients.push_back(random_.Coin() ? Piece() : SharedPiece());
    }
    if (random_.Coin()) frame.gradient_memory = Memory();
    frame.end = random_.Coin();
    frame.leave = random_.Coin();
    frame.startup_delay_steps = random_.Number();
    for (uint64_t n = random_.Below(4); n > 0; --n) frame.digests.push_back(static_cast<uint64_t>(random_.Number()));
    frame.end_of_input = random_.Coin();
    if (random_.Coin()) frame.ring = Memory();
    return frame;
  }
  StepReplyFrame Reply() {
    StepReplyFrame frame;
    frame.result = static_cast<v1::ContributionResult>(random_.Below(3));
    frame.values_step = random_.Number();
    for (uint64_t n = random_.Below(4); n > 0; --n) frame.values.push_back(Piece());
    for (uint64_t n = random_.Below(3); n > 0; --n) frame.estimates.push_back(Piece());
    frame.estimates_step = random_.Number();
    if (random_.Coin()) {
      v1::Token token;
      token.set_step(random_.Number());
      token.set_first_slot(random_.Number());
      token.set_slot_count(random_.Number());
      frame.token = token;
    }
    frame.finished = random_.Coin();
    frame.finish_message = random_.Ascii(random_.Below(20));
    if (random_.Coin()) frame.values_memory = Memory();
    if (random_.Coin()) frame.constants_memory = Memory();
    if (random_.Coin()) frame.ring = Memory();
    if (random_.Coin()) frame.settings.emplace().set_batch_size(random_.Number());
    return frame;
  }
  Random* random() { return &random_; }

 private:
  StepPiece Piece() {
    tensors_.push_back(std::make_unique<std::vector<float>>(1 + random_.Below(300)));
    for (float& value : *tensors_.back()) value = static_cast<float>(random_.Below(1000));
    StepPiece piece;
    piece.variable = static_cast<int64_t>(random_.Below(5) * random_.Below(1000));
    piece.offset = static_cast<int64_t>(random_.Below(3)) * 65536;
    piece.slot = random_.Number();
    piece.sparse = random_.Coin();
    const auto size = static_cast<int64_t>(tensors_.back()->size());
    piece.content = FloatChunks(tensors_.back()->data(), size);
    if (random_.Coin()) {
      const v1::DataType type = random_.Coin() ? v1::DT_BFLOAT16 : v1::DT_HALF;
      encoded_.push_back(std::make_unique<std::vector<uint16_t>>(tensors_.back()->size()));
      Encode16(type, size, tensors_.back()->data(), encoded_.back()->data());
      piece.content = FloatChunks(type, encoded_.back()->data(), size);
    }
    return piece;
  }

  StepPiece SharedPiece() {
    StepPiece piece;
    piece.variable = static_cast<int64_t>(random_.Below(5));
    piece.offset = static_cast<int64_t>(random_.Below(3)) * 65536;
    piece.shared = SharedSpan{static_cast<uint64_t>(random_.Number()), static_cast<uint64_t>(random_.Number())};
    return piece;
  }
  v1::SharedMemoryHandle Memory() {
    v1::SharedMemoryHandle handle;
    handle.set_machine(random_.Ascii(random_.Below(40)));
    handle.set_process(random_.Number());
    handle.set_file_descriptor(random_.Number());
    handle.set_device(static_cast<uint64_t>(random_.Number()));
    handle.set_inode(static_cast<uint64_t>(random_.Number()));
    handle.set_bytes(static_cast<uint64_t>(random_.Number()));
    return handle;
  }

  Random random_;
  std::vector<std::unique_ptr<std::vector<float>>> tensors_;
  std::vector<std::unique_ptr<std::vector<uint16_t>>> encoded_;
};

TEST(StepCodecTest, TheBytesAreTheseForEver) {
  const float gradient[2] = {1.0f, -2.0f};
  StepFrame frame;
  frame.session_id = 3;
  frame.generation = 2;
  frame.step = 300;
  frame.block = {4, 2};
  frame.reports.resize(1);
  frame.reports[0].set_slot(4);
  frame.reports[0].set_loss(0.5f);
  frame.gradients.resize(1);
  frame.gradients[0].variable = 1;
  frame.gradients[0].offset = 65536;
  frame.gradients[0].content = FloatChunks(gradient, 2);
  frame.end = true;
  EXPECT_EQ(absl::BytesToHexString(Join(EncodeStepRequest(frame))),
            "0803"    // session_id
            "1002"    // generation
            "18ac02"  // step
            "2004"    // first_slot
            "2802"    // slot_count
            "320708041500"
            "00003f"  // report { slot loss }
            "4001"    // end
            "3a10"
            "0801"
            "10808004"
            "1a08"  // gradient { variable offset content
            "0000803f"
            "000000c0");  // }
  StepReplyFrame reply;
  reply.result = v1::CONTRIBUTION_ACCEPTED;
  reply.values_step = 301;
  reply.token.emplace();
  reply.token->set_step(301);
  reply.token->set_slot_count(1);
  reply.values.resize(1);
  reply.values[0].content = FloatChunks(gradient, 1);
  EXPECT_EQ(absl::BytesToHexString(Join(EncodeStepReply(reply))),
            "0801"            // result
            "10ad02"          // values_step
            "220508ad021801"  // token { step slot_count }
            "1a061a04"        // value { content
            "0000803f");      // }
}

TEST(StepCodecTest, TimesTakeTenBytes) {
  StepFrame frame;
  frame.end = true;
  frame.times = 0x0102030405060708;
  const std::string bytes = Join(EncodeStepRequest(frame));
  EXPECT_EQ(absl::BytesToHexString(bytes),
            "40018101"
            "0807060504030201")
      << "end, times";
  Decoded<StepFrame> decoded;
  ASSERT_TRUE(Decode(EncodeStepRequest(frame), &decoded).ok());
  EXPECT_EQ(decoded.frame.times, frame.times);
}

TEST(StepCodecTest, TheBytesOf16BitPiecesAreTheseForEver) {
  const uint16_t numbers[2] = {0x3f80, 0xc000};
  StepFrame frame;
  frame.gradients.resize(1);
  frame.gradients[0].variable = 1;
  frame.gradients[0].content = FloatChunks(v1::DT_BFLOAT16, numbers, 2);
  EXPECT_EQ(absl::BytesToHexString(Join(EncodeStepRequest(frame))),
            "3a0a"
            "0801"
            "200e"
            "1a04"  // gradient { variable dtype content
            "803f"
            "00c0");  // }
  StepReplyFrame reply;
  reply.values.resize(1);
  reply.values[0].content = FloatChunks(v1::DT_HALF, numbers, 1);
  EXPECT_EQ(absl::BytesToHexString(Join(EncodeStepReply(reply))),
            "1a06"
            "2013"
            "1a02"  // value { dtype content
            "803f");
}

TEST(StepCodecTest, SparsePieceAndEstimateBytesAreFixed) {
  const char differences[] = "\x05\x00\x00\x00\x80\x3f";
  StepFrame frame;
  frame.gradients.resize(1);
  frame.gradients[0].variable = 1;
  frame.gradients[0].slot = 3;
  frame.gradients[0].sparse = true;
  frame.gradients[0].content.Append(absl::string_view(differences, 6));
  EXPECT_EQ(absl::BytesToHexString(Join(EncodeStepRequest(frame))),
            "3a0e"
            "0801"
            "2803"
            "3001"
            "1a06"  // gradient { variable slot sparse content
            "0500"
            "0000803f");  // }
  const float estimate = 1;
  StepReplyFrame reply;
  reply.estimates_step = 7;
  reply.estimates.resize(1);
  reply.estimates[0].slot = 2;
  reply.estimates[0].content = FloatChunks(&estimate, 1);
  EXPECT_EQ(absl::BytesToHexString(Join(EncodeStepReply(reply))),
            "4007"  // estimates_step
            "3a08"
            "2802"
            "1a04"        // estimate { slot content
            "0000803f");  // }
}

TEST(StepCodecTest, SharedPieceBytesAreFixed) {
  StepFrame frame;
  frame.gradients.resize(1);
  frame.gradients[0].variable = 1;
  frame.gradients[0].shared = SharedSpan{256, 8};
  frame.gradient_memory.emplace();
  frame.gradient_memory->set_machine("m");
  frame.gradient_memory->set_process(7);
  frame.gradient_memory->set_file_descriptor(5);
  frame.gradient_memory->set_device(1);
  frame.gradient_memory->set_inode(300);
  frame.gradient_memory->set_bytes(512);
  EXPECT_EQ(absl::BytesToHexString(Join(EncodeStepRequest(frame))),
            "5a0f"
            "0a016d"
            "1007"
            "1805"
            "2001"
            "28ac02"
            "308004"  // gradient_memory { machine process file_descriptor device inode bytes }
            "3a09"
            "0801"
            "3a05"
            "088002"
            "1008");  // gradient { variable shared { offset bytes } }
}

TEST(StepCodecTest, AnEmptySparsePieceIsAPiece) {
  StepFrame frame;
  frame.gradients.resize(1);
  frame.gradients[0].sparse = true;
  Decoded<StepFrame> decoded;
  ASSERT_TRUE(Decode(EncodeStepRequest(frame), &decoded).ok());
  ASSERT_EQ(decoded.frame.gradients.size(), 1u);
  EXPECT_TRUE(decoded.frame.gradients[0].sparse);
  EXPECT_EQ(decoded.frame.gradients[0].content.bytes(), 0u);
}

TEST(StepCodecTest, APieceIsFloat32ByDefault) {
  const std::pair<const char*, v1::DataType> cases[] = {{"3a061a040000803f", v1::DT_FLOAT},
                                                        {"3a0820001a040000803f", v1::DT_FLOAT},
                                                        {"3a0820011a040000803f", v1::DT_FLOAT},
                                                        {"3a081a040000803f200e", v1::DT_BFLOAT16},
                                                        {"3a0820131a040000803f", v1::DT_HALF}};
  for (const auto& test : cases) {
    Decoded<StepFrame> decoded;
    ASSERT_TRUE(Decode(Cut(absl::HexStringToBytes(test.first)), &decoded).ok()) << test.first;
    EXPECT_EQ(decoded.frame.gradients[0].content.type(), test.second) << test.first;
    EXPECT_EQ(decoded.frame.gradients[0].content.size(), test.second == v1::DT_FLOAT ? 1 : 2) << test.first;
    EXPECT_EQ(decoded.frame.encoded_bytes, static_cast<int64_t>(std::strlen(test.first) / 2));
  }
}

// The memory of each part lives until the message is destroyed, since gRPC may still read it.
TEST(StepCodecTest, AMessageHoldsEachPiecesOwner) {
  const std::vector<float> numbers(300, 1.5f);
  StepFrame frame;
  std::vector<std::shared_ptr<int>> owners;
  for (const int64_t elements : {300, 200, 2}) {
    owners.push_back(std::make_shared<int>());
    StepPiece piece;
    piece.content = FloatChunks(numbers.data(), elements);
    piece.owner = owners.back();
    frame.gradients.push_back(std::move(piece));
  }
  {
    const grpc::ByteBuffer message = EncodeStepRequest(frame);
    Clear(&frame);
    EXPECT_EQ(owners[0].use_count(), 2);
    EXPECT_EQ(owners[1].use_count(), 2);
    EXPECT_EQ(owners[2].use_count(), 1) << "so few bytes are copied";
  }
  for (const auto& owner : owners) EXPECT_EQ(owner.use_count(), 1);
}

TEST(StepCodecTest, ProtobufReadsOurBytes) {
  FrameMaker maker(1);
  for (int i = 0; i < 300; ++i) {
    const StepFrame frame = maker.Request();
    v1::StepRequest request;
    ASSERT_TRUE(request.ParseFromString(Join(EncodeStepRequest(frame))));
    EXPECT_TRUE(MessageDifferencer::Equals(request, ToProto(frame)));
    const StepReplyFrame reply_frame = maker.Reply();
    v1::StepReply reply;
    ASSERT_TRUE(reply.ParseFromString(Join(EncodeStepReply(reply_frame))));
    EXPECT_TRUE(MessageDifferencer::Equals(reply, ToProto(reply_frame)));
  }
}

TEST(StepCodecTest, ReadsProtobufsBytesCutAnywhere) {
  FrameMaker maker(2);
  Decoded<StepFrame> decoded;
  Decoded<StepReplyFrame> decoded_reply;
  for (int i = 0; i < 300; ++i) {
    decoded.Clear();  // nothing of the previous one is left
    decoded_reply.Clear();
    const v1::StepRequest request = ToProto(maker.Request());
    const std::string bytes = request.SerializeAsString();
    std::vector<size_t> cuts;
    for (size_t at = 0; at < bytes.size(); at += 1 + maker.random()->Below(40)) cuts.push_back(at);
    ASSERT_TRUE(Decode(Cut(bytes, cuts), &decoded).ok());
    EXPECT_TRUE(MessageDifferencer::Equals(ToProto(decoded.frame), request));
    const v1::StepReply reply = ToProto(maker.Reply());
    const std::string reply_bytes = reply.SerializeAsString();
    ASSERT_TRUE(DecodeStepReply(Cut(reply_bytes, cuts), &decoded_reply).ok());
    EXPECT_TRUE(MessageDifferencer::Equals(ToProto(decoded_reply.frame), reply));
  }
}

TEST(StepCodecTest, AnEmptyMessageIsAFrame) {
  Decoded<StepFrame> decoded;
  EXPECT_TRUE(Decode(grpc::ByteBuffer(), &decoded).ok());
  EXPECT_TRUE(Decode(Cut(""), &decoded).ok());
  EXPECT_EQ(decoded.frame.block.count, 0);
  EXPECT_TRUE(decoded.frame.gradients.empty());
}

TEST(StepCodecTest, ReferencesTensorsAndKeepsTheirOwner) {
  auto owner = std::make_shared<std::vector<float>>(100000, 1.0f);
  StepReplyFrame frame;
  frame.values.resize(1);
  frame.values[0].content = FloatChunks(owner->data(), 100000);
  frame.values_owner = owner;
  grpc::ByteBuffer buffer = EncodeStepReply(frame);
  frame = StepReplyFrame();
  EXPECT_GT(owner.use_count(), 1);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(buffer.Dump(&slices).ok());
  EXPECT_EQ(static_cast<const void*>(slices.back().begin()), owner->data());
  slices.clear();
  buffer.Clear();
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(StepCodecTest, AnEmptyTensorIsNoCrash) {
  StepFrame frame;
  frame.gradients.resize(1);
  v1::StepRequest request;
  ASSERT_TRUE(request.ParseFromString(Join(EncodeStepRequest(frame))));
  EXPECT_EQ(request.gradient_size(), 1);
}

TEST(StepCodecTest, UnknownFieldsAreSkipped) {
  FrameMaker maker(3);
  const v1::StepRequest request = ToProto(maker.Request());
  // Fields 100 (varint), 101 (fixed64), 102 (bytes), 103 (fixed32), and field 9 inside a piece.
  const std::string unknown = absl::HexStringToBytes(
      "a00605"
      "a9060102030405060708"
      "b206026869"
      "bd0601020304");
  Decoded<StepFrame> decoded;
  ASSERT_TRUE(Decode(Cut(unknown + request.SerializeAsString() + unknown), &decoded).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(ToProto(decoded.frame), request));
  Decoded<StepFrame> piece;
  ASSERT_TRUE(Decode(Cut(absl::HexStringToBytes("3a0a"
                                                "48ff01"
                                                "0802"
                                                "1a03616263")),
                     &piece)
                  .ok());
  ASSERT_EQ(piece.frame.gradients.size(), 1u);
  EXPECT_EQ(piece.frame.gradients[0].variable, 2);
  EXPECT_EQ(piece.frame.gradients[0].content.bytes(), 3u);
}

TEST(StepCodecTest, DigestsMayBePackedOrNot) {
  v1::StepRequest request;
  request.add_digest(7);
  const uint64_t second = 0x0123456789abcdef;
  std::string bytes = request.SerializeAsString();
  bytes.push_back(static_cast<char>((v1::StepRequest::kDigestFieldNumber << 3) | 1));  // one element, as fixed64
  bytes.append(reinterpret_cast<const char*>(&second), sizeof(second));
  Decoded<StepFrame> decoded;
  ASSERT_TRUE(Decode(Cut(bytes, {bytes.size() - 3}), &decoded).ok());
  EXPECT_EQ(decoded.frame.digests, (std::vector<uint64_t>{7, second}));
  bytes.pop_back();
  Decoded<StepFrame> truncated;
  EXPECT_EQ(Decode(Cut(bytes), &truncated).message(), "field 12 is malformed");
}

TEST(StepCodecTest, MalformedMessagesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"00", "a malformed tag"},
      {"80", "a malformed tag"},
      {"08", "field 1 is malformed"},
      {"0880808080808080808080"
       "01",
       "field 1 is malformed"},
      {"3a05", "field 7 is malformed"},
      {"3affffffffffffffffff01", "field 7 is malformed"},
      {"3a021a05", "field 7 is malformed"},
      {"3a021a0561626364", "field 7 is malformed"},
      {"3a0608ffffffff1f", "field 7 is malformed"},            // a variable above 2^32
      {"3a0b10ffffffffffffffffff01", "field 7 is malformed"},  // an offset above 2^63
      {"3a0420071a00",
       "a piece of variable number 0 has type 7 (string), must be a type of a variable, bfloat16 or float16"},
      {"3a0c2080808080808080808080"
       "01",
       "field 7 is malformed"},  // a type of more than 64 bits
      {"3a0720808080808020", "has type 1099511627776 (invalid)"},
      {"32027a7a", "the bytes are no StepRequest"},
      {"0b0c", "field 1 is malformed"},  // a group
  };
  for (const auto& test : cases) {
    Decoded<StepFrame> decoded;
    const absl::Status status = Decode(Cut(absl::HexStringToBytes(test.first)), &decoded);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << test.first;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.second)) << test.first;
  }
}

TEST(StepCodecTest, RefusesMessagesOverALimit) {
  const auto expect_refused = [](const std::string& bytes, const StepFrameLimits& limits, const std::string& text) {
    Decoded<StepFrame> decoded;
    const absl::Status status = DecodeStepRequest(Cut(bytes), limits, &decoded);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    EXPECT_TRUE(decoded.frame.reports.empty());
  };
  const std::string piece("\x3a\0", 2), report("\x32\0", 2);
  // A first frame.
  expect_refused(piece, {}, "more than 0 pieces in one message");
  expect_refused(report, {}, "more than 0 reports in one message");
  StepFrameLimits limits;
  limits.pieces = 3;
  limits.reports = 2;
  Decoded<StepFrame> decoded;
  EXPECT_TRUE(DecodeStepRequest(Cut(piece + piece + piece + report + report), limits, &decoded).ok());
  expect_refused(piece + piece + piece + piece, limits, "more than 3 pieces in one message");
  expect_refused(report + report + report, limits, "more than 2 reports in one message");
  // A single report with many update values.
  v1::SlotReport full;
  for (int i = 0; i < 2000; ++i) full.add_update("");
  v1::StepRequest request;
  *request.add_report() = full;
  expect_refused(request.SerializeAsString(), limits, "takes more than 65536 bytes of memory");
}

// Any input is either decoded or rejected. The sanitizers check that no access is out of bounds.
TEST(StepCodecTest, TruncatedMessagesNeverCrash) {
  FrameMaker maker(4);
  for (int i = 0; i < 20; ++i) {
    const std::string bytes = Join(EncodeStepRequest(maker.Request()));
    for (size_t n = 0; n < bytes.size(); n += 1 + n / 50) {
      Decoded<StepFrame> decoded;
      if (!Decode(Cut(bytes.substr(0, n), {n / 2}), &decoded).ok()) continue;
      v1::StepRequest request;
      EXPECT_TRUE(request.ParseFromString(bytes.substr(0, n))) << "protobuf refuses what we take";
    }
  }
}

TEST(StepCodecTest, RandomChangesNeverCrash) {
  FrameMaker maker(5);
  Random& random = *maker.random();
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = random.Below(4) == 0 ? random.Bytes(random.Below(64))
                        : random.Coin()      ? Join(EncodeStepRequest(maker.Request()))
                                             : Join(EncodeStepReply(maker.Reply()));
    for (uint64_t n = random.Below(5); n > 0 && !bytes.empty(); --n) {
      bytes[random.Below(std::min<size_t>(bytes.size(), 60))] = static_cast<char>(random.Below(256));
    }
    const grpc::ByteBuffer buffer = Cut(bytes, {random.Below(20), 20 + random.Below(20)});
    Decoded<StepFrame> request;
    if (Decode(buffer, &request).ok()) {
      for (const StepPiece& piece : request.frame.gradients) ContentOf(piece);
    }
    Decoded<StepReplyFrame> reply;
    if (DecodeStepReply(buffer, &reply).ok()) {
      for (const StepPiece& piece : reply.frame.values) ContentOf(piece);
      for (const StepPiece& piece : reply.frame.estimates) ContentOf(piece);
    }
  }
}

}  // namespace
}  // namespace lockstep
