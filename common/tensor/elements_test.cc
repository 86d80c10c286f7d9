#include "lockstep/common/tensor/elements.h"

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

v1::DataType TypeOf(const Elements& elements) { return elements.dtype(); }

TEST(ElementsTest, HaveTheTypeOfWhatTheyComeFrom) {
  const std::vector<float> floats = {1, 2};
  const int64_t integers[] = {3, 4, 5};
  const bool flag = true;
  EXPECT_EQ(TypeOf(floats), v1::DT_FLOAT);
  EXPECT_EQ(TypeOf(absl::MakeConstSpan(floats)), v1::DT_FLOAT);
  EXPECT_EQ(TypeOf(integers), v1::DT_INT64);
  EXPECT_EQ(TypeOf({&flag, 1}), v1::DT_BOOL);
  EXPECT_EQ(TypeOf(std::vector<int32_t>{1}), v1::DT_INT32);
  EXPECT_EQ(TypeOf(std::vector<uint8_t>{1}), v1::DT_UINT8);
  const Elements elements(integers);
  EXPECT_EQ(elements.size(), 3);
  EXPECT_EQ(elements.bytes().size(), 24u);
  EXPECT_EQ(elements.as<int64_t>()[2], 5);
  EXPECT_EQ(Elements(v1::DT_INT64, elements.bytes()).size(), 3);
}

}  // namespace
}  // namespace lockstep
