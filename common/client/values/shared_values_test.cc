#include "lockstep/common/client/values/shared_values.h"

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

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
  const auto found = values.Find(memory->handle());
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
  for (const auto& version : versions) first.push_back((**values.Find(version->handle()))[0]);
  for (size_t i = 0; i < versions.size(); ++i) {
    const v1::SharedMemoryHandle handle = versions[i]->handle();
    versions[i].reset();  // it could not be mapped again
    const auto found = values.Find(handle);
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
    ASSERT_TRUE(values.Find(version->handle()).ok());
    ASSERT_TRUE(values.Find(first->handle()).ok());
  }
  EXPECT_TRUE(absl::IsUnavailable(values.Find(oldest).status())) << "its creator has let go of it too";
  EXPECT_EQ((*values.Find(first->handle()).value())[0][0], 1);
}

TEST(SharedValuesTest, MemoryOfAnotherSizeIsRefused) {
  const ParameterLayout layout = TwoVariables();
  const auto memory = SharedMemory::Create(64).value();
  SharedValues values(&layout);
  EXPECT_TRUE(absl::IsInvalidArgument(values.Find(memory->handle()).status()));
}

}  // namespace
}  // namespace lockstep
