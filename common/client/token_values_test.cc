#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/client/streamed_step_channel.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/common/tensor/rounding.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

// Returns a layout with the variables a[2], which is trainable, and b[1], which is frozen.
ParameterLayout Layout() {
  v1::ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(variables { name: "a" dtype: DT_FLOAT shape: 2 trainable: true }
           variables { name: "b" dtype: DT_FLOAT shape: 1 })pb",
      &model));
  return ParameterLayout::Create(model).value();
}

StepReplyFrame TokenOf(int64_t step) {
  StepReplyFrame reply;
  reply.token.emplace();
  reply.token->set_step(step);
  reply.token->set_slot_count(1);
  return reply;
}

std::unique_ptr<SharedMemory> MemoryOf(int64_t elements, float first) {
  auto memory = SharedMemory::Create(static_cast<size_t>(elements) * sizeof(float)).value();
  *reinterpret_cast<float*>(memory->data()) = first;
  return memory;
}

class TokenValuesTest : public ::testing::Test {
 protected:
  // Returns a reply with all values of a step, which the fixture owns: a = {step, 1}, b = {2}.
  StepReplyFrame Values(int64_t step) {
    numbers_.push_back(std::make_unique<std::vector<float>>(std::vector<float>{static_cast<float>(step), 1, 2}));
    StepReplyFrame reply;
    reply.values_step = step;
    reply.values.resize(2);
    reply.values[0].content = FloatChunks(numbers_.back()->data(), 2);
    reply.values[1].variable = 1;
    reply.values[1].content = FloatChunks(numbers_.back()->data() + 2, 1);
    return reply;
  }
  static std::shared_ptr<const AlignedBuffer> FlatOf(int64_t elements, float first) {
    auto flat = std::make_shared<AlignedBuffer>(static_cast<size_t>(elements) * sizeof(float));
    std::memset(flat->data(), 0, flat->size());
    flat->as<float>()[0] = first;
    return flat;
  }
  HandedOverValues HandOver(float a, float b) {
    HandedOverValues values;
    values.flat = FlatOf(layout_.constants_offset(), a);
    values.constants = FlatOf(layout_.constant_elements(), b);
    return values;
  }

  const ParameterLayout layout_ = Layout();
  VariableBuffers buffers_{layout_, sizeof(float)};
  std::vector<std::unique_ptr<std::vector<float>>> numbers_;
};

TEST_F(TokenValuesTest, AreEmptyBeforeTheFirstToken) {
  TokenValues values(&layout_, v1::DT_FLOAT, &buffers_);
  EXPECT_TRUE(values.values().empty());
  EXPECT_TRUE(values.OnReply(Values(7)).ok());
  EXPECT_TRUE(values.values().empty());
}

TEST_F(TokenValuesTest, ComeInRepliesBeforeOrWithTheToken) {
  TokenValues values(&layout_, v1::DT_FLOAT, &buffers_);
  ASSERT_TRUE(values.OnReply(Values(7)).ok());
  ASSERT_TRUE(values.OnReply(TokenOf(7)).ok());
  EXPECT_EQ(values.values()[0][0], 7);
  EXPECT_EQ(values.values()[1][0], 2);
  EXPECT_FALSE(values.mapped());
  values.Release();
  StepReplyFrame both = Values(8);
  both.token = TokenOf(8).token;
  ASSERT_TRUE(values.OnReply(both).ok());
  EXPECT_EQ(values.values()[0][0], 8);
}

TEST_F(TokenValuesTest, ATokenWithoutItsValuesIsRefused) {
  TokenValues values(&layout_, v1::DT_FLOAT, &buffers_);
  ASSERT_TRUE(values.OnReply(Values(7)).ok());
  const absl::Status status = values.OnReply(TokenOf(8));
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("a token for step 8 without all values"));
}

// A hostile chief's replies never cause an access outside the variables, whatever they contain.
TEST_F(TokenValuesTest, RefusesPiecesOutsideTheModel) {
  TokenValues values(&layout_, v1::DT_FLOAT, &buffers_);
  for (const int64_t variable : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{1} << 40}) {
    for (const int64_t offset : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{1} << 40}) {
      for (const int64_t size : {0, 1, 2, 3}) {
        const std::vector<float> numbers(3);
        StepReplyFrame reply;
        reply.values.resize(1);
        reply.values[0].variable = variable;
        reply.values[0].offset = offset;
        reply.values[0].content = FloatChunks(numbers.data(), size);
        const bool inside = variable < 2 && offset + size <= layout_.variables()[variable].elements;
        EXPECT_EQ(values.OnReply(reply).ok(), inside) << variable << " " << offset << " " << size;
      }
    }
  }
}

TEST_F(TokenValuesTest, LieInMemoryOfTheChief) {
  const auto memory = MemoryOf(layout_.constants_offset(), 5), constants = MemoryOf(layout_.constant_elements(), 6);
  TokenValues values(&layout_, v1::DT_FLOAT, &buffers_);
  StepReplyFrame reply = TokenOf(3);
  reply.values_memory = memory->handle();
  EXPECT_TRUE(absl::IsInvalidArgument(values.OnReply(reply))) << "the constant ones are in no memory";
  reply.constants_memory = constants->handle();
  ASSERT_TRUE(values.OnReply(reply).ok());
  EXPECT_EQ(values.values()[0][0], 5);
  EXPECT_EQ(values.values()[1][0], 6);
  EXPECT_TRUE(values.mapped());
  // The next values may be sent as bytes, if the system could not give the chief shared memory for this version.
  ASSERT_TRUE(values.OnReply(Values(4)).ok());
  ASSERT_TRUE(values.OnReply(TokenOf(4)).ok());
  EXPECT_EQ(values.values()[0][0], 4);
  EXPECT_FALSE(values.mapped());
}

TEST_F(TokenValuesTest, ReadsInProcessValuesInPlace) {
  TokenValues values(&layout_, v1::DT_FLOAT, &buffers_);
  StepReplyFrame reply = TokenOf(3);
  reply.handed_over = HandOver(5, 6);
  ASSERT_TRUE(values.OnReply(reply).ok());
  EXPECT_EQ(values.values()[0], reply.handed_over->flat->as<float>());
  EXPECT_EQ(values.values()[1][0], 6);
  EXPECT_FALSE(values.mapped());
}

TEST_F(TokenValuesTest, DecodesInProcessSixteenBitsOnce) {
  TokenValues values(&layout_, v1::DT_FLOAT, &buffers_);
  std::vector<uint16_t> encoded(static_cast<size_t>(layout_.flat_elements()));
  const float rounded = 1.5f;
  Encode16(v1::DT_BFLOAT16, 1, &rounded, encoded.data());
  StepReplyFrame reply = TokenOf(3);
  reply.handed_over = HandOver(1.50001f, 6.00001f);
  reply.handed_over->encoded = encoded.data();
  reply.handed_over->type = v1::DT_BFLOAT16;
  ASSERT_TRUE(values.OnReply(reply).ok());
  EXPECT_EQ(values.values()[0][0], 1.5f);
  EXPECT_EQ(values.values()[1][0], 6.00001f) << "what is not trained is not rounded";
  encoded[0] = 0;
  ASSERT_TRUE(values.OnReply(reply).ok());
  EXPECT_EQ(values.values()[0][0], 1.5f) << "the same version";
  reply.handed_over = HandOver(0, 6);
  reply.handed_over->encoded = encoded.data();
  reply.handed_over->type = v1::DT_BFLOAT16;
  ASSERT_TRUE(values.OnReply(reply).ok());
  EXPECT_EQ(values.values()[0][0], 0);
}

TEST_F(TokenValuesTest, FollowConstantsThatAreSet) {
  TokenValues mapped(&layout_, v1::DT_FLOAT, &buffers_), in_process(&layout_, v1::DT_FLOAT, &buffers_);
  const auto memory = MemoryOf(layout_.constants_offset(), 5);
  StepReplyFrame named = TokenOf(3), handed_over = TokenOf(3);
  named.values_memory = memory->handle();
  handed_over.handed_over = HandOver(5, 0);
  for (const float value : {6.0f, 7.0f, 8.0f}) {
    const auto constants = MemoryOf(layout_.constant_elements(), value);
    named.constants_memory = constants->handle();
    ASSERT_TRUE(mapped.OnReply(named).ok());
    EXPECT_EQ(mapped.values()[0][0], 5);
    EXPECT_EQ(mapped.values()[1][0], value);
    handed_over.handed_over->constants = FlatOf(layout_.constant_elements(), value);
    ASSERT_TRUE(in_process.OnReply(handed_over).ok());
    EXPECT_EQ(in_process.values()[0][0], 5);
    EXPECT_EQ(in_process.values()[1][0], value);
  }
}

ParameterLayout TwoVariables() {
  v1::ModelSpec model;
  for (const char* const name : {"a", "b"}) {
    v1::VariableSpec* const variable = model.add_variables();
    variable->set_name(name);
    variable->set_dtype(v1::DT_FLOAT);
    variable->add_shape(3);
    variable->set_trainable(true);
  }
  return ParameterLayout::Create(model).value();
}

std::unique_ptr<SharedMemory> NewVersion(const ParameterLayout& layout, float first) {
  auto memory = SharedMemory::Create(static_cast<size_t>(layout.flat_elements()) * sizeof(float)).value();
  auto* const flat = reinterpret_cast<float*>(memory->data());
  flat[0] = first;
  flat[layout.variables()[1].flat_offset + 2] = first + 1;
  return memory;
}

TEST(SharedValuesTest, FindsTheVariablesOfAVersion) {
  const ParameterLayout layout = TwoVariables();
  const auto memory = NewVersion(layout, 5);
  SharedValues values(&layout);
  const auto found = values.Find(memory->handle(), nullptr);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ((*found)->size(), 2u);
  EXPECT_EQ((**found)[0][0], 5);
  EXPECT_EQ((**found)[1][2], 6);
}

TEST(SharedValuesTest, VersionsThatComeInTurnAreMappedOnce) {
  const ParameterLayout layout = TwoVariables();
  std::vector<std::unique_ptr<SharedMemory>> versions;
  for (int i = 0; i < 4; ++i) versions.push_back(NewVersion(layout, static_cast<float>(i)));
  SharedValues values(&layout);
  std::vector<const float*> first;
  for (const auto& version : versions) first.push_back((**values.Find(version->handle(), nullptr))[0]);
  for (size_t i = 0; i < versions.size(); ++i) {
    const v1::SharedMemoryHandle handle = versions[i]->handle();
    versions[i].reset();  // it could not be mapped again
    const auto found = values.Find(handle, nullptr);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ((**found)[0], first[i]);
    EXPECT_EQ((**found)[0][0], static_cast<float>(i));
  }
}

TEST(SharedValuesTest, TheOneAskedForLongestAgoGoes) {
  const ParameterLayout layout = TwoVariables();
  const auto first = NewVersion(layout, 1);
  SharedValues values(&layout);
  v1::SharedMemoryHandle oldest;
  for (int i = 0; i < 5; ++i) {
    const auto version = NewVersion(layout, 2);
    if (i == 0) oldest = version->handle();
    ASSERT_TRUE(values.Find(version->handle(), nullptr).ok());
    ASSERT_TRUE(values.Find(first->handle(), nullptr).ok());
  }
  EXPECT_TRUE(absl::IsUnavailable(values.Find(oldest, nullptr).status())) << "its creator has let go of it too";
  EXPECT_EQ((*values.Find(first->handle(), nullptr).value())[0][0], 1);
}

TEST(SharedValuesTest, MemoryOfAnotherSizeIsRefused) {
  const ParameterLayout layout = TwoVariables();
  const auto memory = SharedMemory::Create(64).value();
  SharedValues values(&layout);
  EXPECT_TRUE(absl::IsInvalidArgument(values.Find(memory->handle(), nullptr).status()));
}

}  // namespace
}  // namespace lockstep
