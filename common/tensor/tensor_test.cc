#include "lockstep/common/tensor/tensor.h"

#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TensorTest, IsEmptyAtFirst) {
  const Tensor tensor;
  EXPECT_EQ(tensor.dtype(), v1::DT_INVALID);
  EXPECT_EQ(tensor.num_elements(), 0);
  EXPECT_TRUE(tensor.bytes().empty());
  EXPECT_TRUE(tensor.flat<float>().empty());
}

TEST(TensorTest, HoldsItsElementsInAlignedMemory) {
  for (int64_t n = 1; n < 40; ++n) {
    Tensor tensor(v1::DT_DOUBLE, {n, 3});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % kTensorAlignment, 0);
    EXPECT_EQ(tensor.num_elements(), 3 * n);
    EXPECT_EQ(tensor.bytes().size(), 24 * n);
    EXPECT_EQ(tensor.flat<double>().size(), 3 * n);
    std::memset(tensor.data(), 0, tensor.bytes().size());
  }
}

TEST(TensorTest, MayHaveNoElements) {
  Tensor tensor(v1::DT_FLOAT, {0, 5});
  EXPECT_EQ(tensor.num_elements(), 0);
  EXPECT_TRUE(tensor.flat<float>().empty());
}

TEST(TensorTest, TakesValuesRowByRow) {
  const Tensor tensor = Tensor::FromValues<int32_t>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(tensor.dtype(), v1::DT_INT32);
  EXPECT_EQ(tensor.shape(), (Shape{2, 2}));
  EXPECT_THAT(tensor.flat<int32_t>(), ElementsAre(1, 2, 3, 4));
}

TEST(TensorTest, CopiesShareTheMemory) {
  Tensor tensor = Tensor::FromValues<float>({2}, {1, 2});
  const Tensor copy = tensor;
  tensor.flat<float>()[0] = 9;
  EXPECT_THAT(copy.flat<float>(), ElementsAre(9, 2));
}

TEST(TensorTest, ProtosCarryIt) {
  const Tensor tensor = Tensor::FromValues<int64_t>({3, 1}, {1, -2, 3});
  const auto copy = Tensor::FromProto(tensor.ToProto());
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(copy->dtype(), v1::DT_INT64);
  EXPECT_EQ(copy->shape(), tensor.shape());
  EXPECT_EQ(copy->bytes(), tensor.bytes());
}

std::string ErrorOf(const v1::TensorProto& proto) {
  const auto tensor = Tensor::FromProto(proto);
  EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(tensor.status().message());
}

TEST(TensorTest, RefusesInconsistentProtos) {
  const v1::TensorProto good = Tensor::FromValues<float>({2, 3}, {1, 2, 3, 4, 5, 6}).ToProto();

  v1::TensorProto proto = good;
  proto.mutable_content()->resize(20);
  EXPECT_THAT(ErrorOf(proto), HasSubstr("a float32 tensor of shape [2,3] with 20 bytes"));
  proto.mutable_content()->resize(25);
  EXPECT_THAT(ErrorOf(proto), HasSubstr("with 25 bytes"));

  proto = good;
  proto.set_dtype(v1::DT_STRING);
  EXPECT_THAT(ErrorOf(proto), HasSubstr("a tensor of type string"));
  proto.set_dtype(v1::DT_INVALID);
  EXPECT_THAT(ErrorOf(proto), HasSubstr("a tensor of type invalid"));

  proto = good;
  proto.mutable_shape()->mutable_dim(0)->set_size(-2);
  EXPECT_THAT(ErrorOf(proto), HasSubstr("negative"));
  proto.mutable_shape()->mutable_dim(0)->set_size(int64_t{1} << 61);
  EXPECT_THAT(ErrorOf(proto), HasSubstr("2^62"));
  // The number of elements times the element size wraps around to 24 in 64-bit arithmetic.
  proto = good;
  proto.mutable_shape()->mutable_dim(0)->set_size((int64_t{1} << 61) + 2);
  proto.mutable_shape()->mutable_dim(1)->set_size(1);
  EXPECT_THAT(ErrorOf(proto), HasSubstr("with 24 bytes"));
}

TEST(TensorTest, AnEmptyProtoIsAnEmptyTensor) {
  v1::TensorProto proto;
  proto.set_dtype(v1::DT_FLOAT);
  proto.mutable_shape()->add_dim()->set_size(0);
  const auto tensor = Tensor::FromProto(proto);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->num_elements(), 0);
}

}  // namespace
}  // namespace lockstep
