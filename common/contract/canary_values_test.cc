#include "lockstep/common/contract/canary_values.h"

#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

ParameterLayout Layout() {
  v1::ModelSpec model;
  const auto add = [&](const char* name, const std::vector<int64_t>& shape) {
    v1::VariableSpec* const variable = model.add_variables();
    variable->set_name(name);
    variable->set_dtype(v1::DT_FLOAT);
    variable->set_trainable(true);
    for (const int64_t size : shape) variable->add_shape(size);
  };
  add("kernel", {3, 100, 300});
  add("other", {3, 100, 300});
  add("bias", {300});
  add("scale", {});
  return ParameterLayout::Create(model).value();
}

std::vector<float> Values(uint64_t seed, int variable, int64_t offset, size_t size) {
  const ParameterLayout layout = Layout();
  std::vector<float> values(size);
  FillCanaryValues(seed, layout.variables()[variable], offset, absl::MakeSpan(values));
  return values;
}

// Run records hold results computed from these values, so they must not change.
TEST(CanaryValuesTest, AreTheSameForEver) {
  EXPECT_EQ(Values(7, 0, 0, 3), (std::vector<float>{0x1.47f4aep-4f, -0x1.a534cep-7f, -0x1.181e2p-4f}));
  EXPECT_EQ(Values(7, 2, 0, 3), (std::vector<float>{0x1.506684p+0f, 0x1.999b62p-1f, 0x1.2a0fe6p-1f}));
}

TEST(CanaryValuesTest, DoNotDependOnThePiecesDrawn) {
  const std::vector<float> whole = Values(7, 0, 0, 90000);
  for (const int64_t offset : {4, 4096, 65536}) {
    const std::vector<float> rest = Values(7, 0, offset, 90000 - static_cast<size_t>(offset));
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + offset)) << offset;
  }
}

TEST(CanaryValuesTest, DependOnTheSeedAndTheName) {
  EXPECT_NE(Values(7, 0, 0, 100), Values(8, 0, 0, 100));
  EXPECT_NE(Values(7, 0, 0, 100), Values(7, 1, 0, 100));
}

TEST(CanaryValuesTest, KeepOutputsAtTheSizeOfInputs) {
  double squares = 0;
  for (const float value : Values(7, 0, 0, 90000)) {
    EXPECT_LE(value, 0.1f);  // sqrt(3 / 300)
    EXPECT_GE(value, -0.1f);
    squares += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(squares / 90000, 1.0 / 300, 1e-4);
  for (const float value : Values(7, 2, 0, 300)) EXPECT_TRUE(value >= 0.5f && value < 1.5f) << value;
  EXPECT_GE(Values(7, 3, 0, 1)[0], 0.5f);
}

}  // namespace
}  // namespace lockstep
