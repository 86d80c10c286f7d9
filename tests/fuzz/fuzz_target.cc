#include "lockstep/tests/fuzz/fuzz_target.h"

#include <algorithm>
#include <map>

#include "glog/logging.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/tests/fuzz/memory_meter.h"

namespace lockstep {
namespace {

std::map<std::string, const FuzzTarget*>& Targets() {
  static auto* const targets = new std::map<std::string, const FuzzTarget*>;
  return *targets;
}

}  // namespace

FuzzTarget::FuzzTarget(const Options& options) : options_(options) { Targets()[options.name] = this; }

const FuzzTarget* FuzzTarget::Find(absl::string_view name) {
  const auto found = Targets().find(std::string(name));
  return found == Targets().end() ? nullptr : found->second;
}

std::vector<std::string> FuzzTarget::Names() {
  std::vector<std::string> names;
  for (const auto& [name, target] : Targets()) names.push_back(name);
  return names;
}

bool FuzzTarget::Run(absl::string_view input) const {
  const MemoryMeter meter;
  const bool taken = options_.run(input);
  const uint64_t limit = options_.fixed_bytes + options_.bytes_per_byte * input.size();
  CHECK_LE(meter.peak(), limit) << options_.name << ": bytes of memory for an input of " << input.size() << " bytes";
  return taken;
}

uint8_t FuzzInput::TakeByte() {
  if (rest_.empty()) return 0;
  const auto byte = static_cast<uint8_t>(rest_[0]);
  rest_.remove_prefix(1);
  return byte;
}

absl::string_view FuzzInput::TakeSized() {
  const size_t low = TakeByte();
  const size_t high = TakeByte();
  const size_t size = std::min(rest_.size(), low | high << 8);
  const absl::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(taken.size());
  return taken;
}

std::string Sized(absl::string_view bytes) {
  CHECK_LT(bytes.size(), size_t{1} << 16);
  std::string sized = {static_cast<char>(bytes.size()), static_cast<char>(bytes.size() >> 8)};
  sized.append(bytes.data(), bytes.size());
  return sized;
}

std::string FileOfTree(const std::string& path) {
  auto contents = ReadFile(FileSystem::Real(), path);
  CHECK(contents.ok()) << contents.status() << "; start in the root of the tree";
  return *std::move(contents);
}

}  // namespace lockstep
