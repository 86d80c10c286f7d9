// The libFuzzer program, built by ./lockstep fuzz. FUZZ_TARGET names the target. With FUZZ_SEEDS, writes the target's
// seeds to that folder instead of fuzzing. Without FUZZ_TARGET, prints the names of all targets. Inputs have at most
// the target's maximum length, unless -max_len is given.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "google/protobuf/stubs/logging.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"

namespace {

const lockstep::FuzzTarget* target = nullptr;

void WriteSeeds(const std::string& folder) {
  int number = 0;
  for (const std::string& seed : target->Seeds()) {
    const absl::Status written = lockstep::WriteFileAtomically(
        lockstep::FileSystem::Real(), lockstep::JoinPath(folder, absl::StrCat("seed-", number++)), seed);
    CHECK(written.ok()) << written;
  }
}

// Inserts a flag before the caller's flags, which take precedence.
void AddFlag(const std::string& flag, int* argc, char*** argv) {
  static std::vector<char*> arguments(*argv, *argv + *argc);
  static std::string text = flag;
  arguments.insert(arguments.begin() + 1, &text[0]);
  *argc = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  *argv = arguments.data();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  FLAGS_logtostderr = true;
  setenv("TZ", "UTC", /*overwrite=*/0);  // otherwise each log message reads a file
  google::protobuf::SetLogHandler(nullptr);
  const char* const name = std::getenv("FUZZ_TARGET");
  if (name == nullptr) {
    for (const std::string& known : lockstep::FuzzTarget::Names()) std::cout << known << "\n";
    std::exit(0);
  }
  target = lockstep::FuzzTarget::Find(name);
  CHECK(target != nullptr) << "no fuzz target '" << name << "'";
  const char* const seeds = std::getenv("FUZZ_SEEDS");
  if (seeds == nullptr) {
    AddFlag(absl::StrCat("-max_len=", target->longest()), argc, argv);
    return 0;
  }
  WriteSeeds(seeds);
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target->Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
