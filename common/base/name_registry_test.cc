#include "lockstep/common/base/name_registry.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

TEST(NameRegistryTest, FindsAddedValues) {
  NameRegistry<int> registry("a number");
  ASSERT_TRUE(registry.Add("two", 2).ok());
  ASSERT_TRUE(registry.Add("one", 1).ok());
  EXPECT_EQ(registry.Find("two"), 2);
  EXPECT_EQ(registry.Find("three"), absl::nullopt);
  EXPECT_THAT(registry.Names(), ElementsAre("one", "two"));
}

TEST(NameRegistryTest, KeepsTheFirstOfAName) {
  NameRegistry<int> registry("a number");
  ASSERT_TRUE(registry.Add("two", 2).ok());
  EXPECT_EQ(registry.Add("two", 3), absl::AlreadyExistsError("a number 'two' is registered already"));
  EXPECT_EQ(registry.Find("two"), 2);
  EXPECT_EQ(registry.Add("", 3), absl::InvalidArgumentError("a number needs a name to be registered"));
}

TEST(NameRegistryTest, ErrorsListTheNames) {
  NameRegistry<int> registry("a number");
  EXPECT_EQ(registry.Lacks("x is 4", "count on"),
            absl::NotFoundError("x is 4, a number that this program lacks; it has none (count on)"));
  ASSERT_TRUE(registry.Add("two", 2).ok());
  ASSERT_TRUE(registry.Add("one", 1).ok());
  EXPECT_EQ(registry.Lacks("x is 4", "count on"),
            absl::NotFoundError("x is 4, a number that this program lacks; it has one, two (count on)"));
}

TEST(NameRegistryDeathTest, AFailedRegistrationEndsTheProgram) {
  EXPECT_TRUE(MustBeRegistered(absl::OkStatus()));
  EXPECT_DEATH(MustBeRegistered(absl::AlreadyExistsError("a number 'two' is registered already")), "'two'");
}

}  // namespace
}  // namespace lockstep
