#ifndef LOCKSTEP_TRAIN_HOOKS_BASE_HOOK_REGISTRY_H_
#define LOCKSTEP_TRAIN_HOOKS_BASE_HOOK_REGISTRY_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/base/name_registry.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/train/hooks/base/hook.h"

namespace lockstep::train {

using HookParameters = std::map<std::string, std::string>;

// Makes a hook from its parameters. InvalidArgument names the one that is wrong, missing or unknown.
using HookFactory = std::function<absl::StatusOr<std::unique_ptr<Hook>>(const HookParameters& parameters)>;

// Registers the factory under `name`, which has no ":". Thread-safe. AlreadyExists for a name in use, InvalidArgument
// for an empty one or one with a ":".
absl::Status RegisterHook(absl::string_view name, HookFactory factory);

// NotFound names those that are registered. Thread-safe.
absl::StatusOr<HookFactory> FindHook(absl::string_view name);

// Sorted. Thread-safe.
std::vector<std::string> RegisteredHooks();

// At namespace scope of a source file; its library needs alwayslink = True. A name used twice ends the program:
//   REGISTER_HOOK("patience", [](const HookParameters& parameters) { return Patience::Create(parameters); });
#define REGISTER_HOOK(name, ...) LOCKSTEP_REGISTERED_(::lockstep::train::RegisterHook(name, __VA_ARGS__))

// For a program that lets its user choose hooks; `hooks` is for CreateHooks, after the command line was parsed:
//   Program program(argc, argv, "Trains.");
//   std::vector<std::string> hooks;
//   AddHookFlag(&program.command_line(), &hooks);
//   return program.Run([&]() -> absl::Status { ASSIGN_OR_RETURN(auto made, CreateHooks(hooks)); ... });
// Declares --hook, which may be repeated. Its help names the registered hooks.
void AddHookFlag(CommandLine* command_line, std::vector<std::string>* hooks);

// A hook for each text, in their order: "NAME" or "NAME:key=value,key=value". A value is everything up to the next
// comma, "=" included. Errors: InvalidArgument for a text that is not like this or a key given twice; NotFound for an
// unknown name; those of the factory; each with the text.
absl::StatusOr<std::vector<std::unique_ptr<Hook>>> CreateHooks(absl::Span<const std::string> texts);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_BASE_HOOK_REGISTRY_H_
