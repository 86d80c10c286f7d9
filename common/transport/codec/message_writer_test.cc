#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/transport/codec/wire_format.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {
namespace {

std::vector<grpc::Slice> SlicesOf(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message.Dump(&slices).ok());
  return slices;
}

v1::StepReply Parse(const grpc::ByteBuffer& message) {
  std::string bytes;
  for (const grpc::Slice& slice : SlicesOf(message)) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  v1::StepReply reply;
  EXPECT_TRUE(reply.ParseFromString(bytes));
  return reply;
}

StepPiece PieceOf(const std::vector<float>& values) {
  StepPiece piece;
  piece.content = FloatChunks(values.data(), static_cast<int64_t>(values.size()));
  return piece;
}

TEST(MessageWriterTest, ProtobufReadsEveryKindOfField) {
  MessageWriter writer;
  writer.AddNumber(v1::StepReply::kValuesStepFieldNumber, int64_t{-1});
  v1::Token token;
  token.set_step(300);
  writer.AddMessage(v1::StepReply::kTokenFieldNumber, token);
  writer.AddNumber(v1::StepReply::kFinishedFieldNumber, int64_t{0});
  const std::string message(1000, 'x');
  writer.AddBytes(v1::StepReply::kFinishMessageFieldNumber, message);
  const v1::StepReply reply = Parse(writer.Finish());
  EXPECT_EQ(reply.values_step(), -1);
  EXPECT_EQ(reply.token().step(), 300);
  EXPECT_FALSE(reply.finished());
  EXPECT_EQ(reply.finish_message(), message);
}

TEST(MessageWriterTest, KeepsALargeTensorInPlaceWithItsOwner) {
  const std::vector<float> values(1000, 0.5f);
  const auto owner = std::make_shared<int>(0);
  {
    MessageWriter writer;
    writer.AddPiece(v1::StepReply::kValueFieldNumber, PieceOf(values), owner);
    const grpc::ByteBuffer message = writer.Finish();
    EXPECT_EQ(owner.use_count(), 2);
    const std::vector<grpc::Slice> slices = SlicesOf(message);
    ASSERT_EQ(slices.size(), 2u);
    EXPECT_EQ(static_cast<const void*>(slices[1].begin()), values.data());
    EXPECT_EQ(Parse(message).value(0).content().size(), values.size() * sizeof(float));
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(MessageWriterTest, CopiesSmallTensorsIntoOneSlice) {
  const auto owner = std::make_shared<int>(0);
  std::vector<float> values = {1, 2};
  MessageWriter writer;
  for (int i = 0; i < 100; ++i) writer.AddPiece(v1::StepReply::kValueFieldNumber, PieceOf(values), owner);
  const grpc::ByteBuffer message = writer.Finish();
  values = {3, 4};
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_EQ(SlicesOf(message).size(), 1u);
  const v1::StepReply reply = Parse(message);
  ASSERT_EQ(reply.value_size(), 100);
  const float expected[] = {1, 2};
  EXPECT_EQ(reply.value(99).content(), std::string(reinterpret_cast<const char*>(expected), sizeof(expected)));
}

TEST(MessageWriterTest, WithoutFieldsTheMessageIsEmpty) { EXPECT_EQ(MessageWriter().Finish().Length(), 0u); }

}  // namespace
}  // namespace lockstep
