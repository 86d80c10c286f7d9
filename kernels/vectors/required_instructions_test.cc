#include "lockstep/kernels/vectors/required_instructions.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// The features of Haswell, the first processor with x86-64-v3.
constexpr ProcessorFeatures kHaswell = {0x7ffafbff, 0x27ab, 0x21, 7};

TEST(RequiredInstructionsTest, ThisProcessorLacksNothing) { EXPECT_EQ(MissingInstructions(ThisProcessor()), nullptr); }

TEST(RequiredInstructionsTest, AHaswellLacksNothing) { EXPECT_EQ(MissingInstructions(kHaswell), nullptr); }

TEST(RequiredInstructionsTest, AnOlderProcessorLacksAvx2First) {
  ProcessorFeatures nehalem;
  nehalem.leaf1_ecx = 0x98e3fd;
  nehalem.extended_ecx = 1;
  EXPECT_STREQ(MissingInstructions(nehalem), "AVX2");
  EXPECT_STREQ(MissingInstructions(ProcessorFeatures()), "AVX2");
}

TEST(RequiredInstructionsTest, Avx2WithoutTheRestIsNotEnough) {
  ProcessorFeatures features = kHaswell;
  features.leaf1_ecx &= ~(1u << 12);
  EXPECT_STREQ(MissingInstructions(features), "FMA");
  features = kHaswell;
  features.leaf7_ebx &= ~(1u << 8);
  EXPECT_STREQ(MissingInstructions(features), "BMI2");
  features = kHaswell;
  features.leaf1_ecx &= ~(1u << 29);
  EXPECT_STREQ(MissingInstructions(features), "F16C");
  features = kHaswell;
  features.extended_ecx &= ~(1u << 5);
  EXPECT_STREQ(MissingInstructions(features), "LZCNT");
}

TEST(RequiredInstructionsTest, UnsavedRegistersAreMissing) {
  ProcessorFeatures features = kHaswell;
  features.xcr0 = 3;
  EXPECT_STREQ(MissingInstructions(features), "AVX registers that the system saves");
  features.xcr0 = 0;
  EXPECT_STREQ(MissingInstructions(features), "AVX registers that the system saves");
}

}  // namespace
}  // namespace lockstep
