#include "lockstep/train/hooks/base/hook_registry.h"

#include <sstream>
#include <utility>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Is called by its parameters: "print(a=1, b=2)".
class PrintHook : public Hook {
 public:
  explicit PrintHook(const HookParameters& parameters)
      : name_(absl::StrCat("print(", absl::StrJoin(parameters, ", ", absl::PairFormatter("=")), ")")) {}
  std::string name() const override { return name_; }

 private:
  const std::string name_;
};

REGISTER_HOOK("print", [](const HookParameters& parameters) -> absl::StatusOr<std::unique_ptr<Hook>> {
  if (parameters.count("bad") > 0) return absl::InvalidArgumentError("parameter 'bad' is not known");
  return std::make_unique<PrintHook>(parameters);
});

std::vector<std::string> NamesOf(const std::vector<std::string>& texts) {
  const auto hooks = CreateHooks(texts);
  EXPECT_EQ(hooks.status(), absl::OkStatus());
  std::vector<std::string> names;
  if (hooks.ok()) {
    for (const auto& hook : *hooks) names.push_back(hook->name());
  }
  return names;
}

TEST(HookRegistryTest, MakesTheHooksOfTheFlagInTheirOrder) {
  CommandLine command_line("trainer", "Trains.");
  std::vector<std::string> hooks;
  AddHookFlag(&command_line, &hooks);
  std::ostringstream out, err;
  EXPECT_EQ(command_line.Parse({"--hook=print:b=2,a=1", "--hook", "print"}, out, err), absl::nullopt) << err.str();
  EXPECT_THAT(NamesOf(hooks), ElementsAre("print(a=1, b=2)", "print()"));
  EXPECT_THAT(command_line.Help(), HasSubstr("print"));
}

TEST(HookRegistryTest, WithoutTextsThereAreNoHooks) { EXPECT_THAT(NamesOf({}), IsEmpty()); }

TEST(HookRegistryTest, AValueEndsAtTheComma) {
  EXPECT_THAT(NamesOf({"print:expression=a=b:c,empty="}), ElementsAre("print(empty=, expression=a=b:c)"));
}

TEST(HookRegistryTest, SaysWhatIsWrongInWhichText) {
  const std::pair<const char*, const char*> cases[] = {
      {"print:", "--hook=print:: '' must be key=value"},
      {"print:a", "--hook=print:a: 'a' must be key=value"},
      {"print:a=1,", "--hook=print:a=1,: '' must be key=value"},
      {"print:=1", "--hook=print:=1: '=1' must be key=value"},
      {"print:a=1,a=1", "--hook=print:a=1,a=1: 'a' is given twice, must be given once"},
      {"print:bad=1", "--hook=print:bad=1: parameter 'bad' is not known"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(CreateHooks({"print", text}).status(), absl::InvalidArgumentError(message));
  }
}

TEST(HookRegistryTest, NamesTheRegisteredHooksWhenOneIsUnknown) {
  EXPECT_THAT(RegisteredHooks(), Contains("print"));
  for (const char* text : {"prnt", "prnt:a=1"}) {
    const absl::Status status = CreateHooks({text}).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("'prnt', a hook that this program lacks; it has print"));
  }
}

TEST(HookRegistryTest, RefusesBadNames) {
  EXPECT_TRUE(absl::IsAlreadyExists(RegisterHook("print", nullptr)));
  EXPECT_TRUE(absl::IsInvalidArgument(RegisterHook("", nullptr)));
  EXPECT_TRUE(absl::IsInvalidArgument(RegisterHook("print:a", nullptr)));
}

}  // namespace
}  // namespace lockstep::train
