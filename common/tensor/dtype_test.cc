#include "lockstep/common/tensor/dtype.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(DTypeTest, HasTheSizesOfItsElements) {
  EXPECT_EQ(SizeOf(v1::DT_FLOAT), 4);
  EXPECT_EQ(SizeOf(v1::DT_DOUBLE), 8);
  EXPECT_EQ(SizeOf(v1::DT_HALF), 2);
  EXPECT_EQ(SizeOf(v1::DT_BFLOAT16), 2);
  EXPECT_EQ(SizeOf(v1::DT_BOOL), 1);
  EXPECT_EQ(SizeOf(v1::DT_INT8), 1);
  EXPECT_EQ(SizeOf(v1::DT_UINT8), 1);
  EXPECT_EQ(SizeOf(v1::DT_INT16), 2);
  EXPECT_EQ(SizeOf(v1::DT_UINT16), 2);
  EXPECT_EQ(SizeOf(v1::DT_INT32), 4);
  EXPECT_EQ(SizeOf(v1::DT_UINT32), 4);
  EXPECT_EQ(SizeOf(v1::DT_INT64), 8);
  EXPECT_EQ(SizeOf(v1::DT_UINT64), 8);
}

TEST(DTypeTest, TypesWithoutAFixedSizeHaveNone) {
  EXPECT_EQ(SizeOf(v1::DT_STRING), 0);
  EXPECT_EQ(SizeOf(v1::DT_INVALID), 0);
  EXPECT_EQ(SizeOf(static_cast<v1::DataType>(12345)), 0);
}

TEST(DTypeTest, EveryTypeHasItsName) {
  const auto* type = v1::DataType_descriptor();
  for (int i = 0; i < type->value_count(); ++i) {
    const auto dtype = static_cast<v1::DataType>(type->value(i)->number());
    EXPECT_EQ(NameOf(dtype) == "invalid", dtype == v1::DT_INVALID) << type->value(i)->name();
  }
  EXPECT_EQ(NameOf(v1::DT_FLOAT), "float32");
  EXPECT_EQ(NameOf(static_cast<v1::DataType>(12345)), "invalid");
}

TEST(DTypeTest, VariablesAreFloat32OrIntegers) {
  for (const auto dtype : {v1::DT_FLOAT, v1::DT_INT32, v1::DT_INT64, v1::DT_UINT8, v1::DT_BOOL}) {
    EXPECT_TRUE(IsVariableType(dtype)) << NameOf(dtype);
    EXPECT_EQ(IsIntegerVariableType(dtype), dtype != v1::DT_FLOAT) << NameOf(dtype);
  }
  EXPECT_FALSE(IsVariableType(v1::DT_DOUBLE) || IsVariableType(v1::DT_INVALID));
}

TEST(DTypeTest, CppTypesHaveTheirDataType) {
  EXPECT_EQ(SizeOf(DataTypeOf<float>::value), sizeof(float));
  EXPECT_EQ(SizeOf(DataTypeOf<double>::value), sizeof(double));
  EXPECT_EQ(SizeOf(DataTypeOf<int32_t>::value), sizeof(int32_t));
  EXPECT_EQ(SizeOf(DataTypeOf<int64_t>::value), sizeof(int64_t));
  EXPECT_EQ(SizeOf(DataTypeOf<uint8_t>::value), sizeof(uint8_t));
}

}  // namespace
}  // namespace lockstep
