#ifndef LOCKSTEP_TESTS_FUZZ_FUZZ_TARGET_H_
#define LOCKSTEP_TESTS_FUZZ_FUZZ_TARGET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep {

// A parser of untrusted bytes, and the properties that must hold for all inputs. Each readers/NAME_fuzzer.cc defines
// such a target as a constant, which registers itself under its name. docs/testing.md explains how to add and run
// targets.
class FuzzTarget {
 public:
  struct Options {
    const char* name = nullptr;
    // Limit on the memory (operator new) that `run` may hold at any time: a fixed part, plus a part per input byte.
    uint64_t fixed_bytes = 0;
    uint64_t bytes_per_byte = 0;
    // Returns true if the parser accepted the whole input. Ends the process if a property does not hold.
    bool (*run)(absl::string_view input) = nullptr;
    // Returns valid inputs, made with the product's own writers, from which fuzzing starts.
    std::vector<std::string> (*seeds)() = nullptr;
    // The maximum length of inputs and seeds in bytes. Longer inputs would not reach more code.
    size_t longest = 1024;
  };

  explicit FuzzTarget(const Options& options);
  FuzzTarget(const FuzzTarget&) = delete;
  FuzzTarget& operator=(const FuzzTarget&) = delete;

  // Returns null if there is no target with that name.
  static const FuzzTarget* Find(absl::string_view name);
  // Returns the sorted names of all targets.
  static std::vector<std::string> Names();

  // Runs the target. Ends the process if it exceeds its memory limit.
  bool Run(absl::string_view input) const;
  std::vector<std::string> Seeds() const { return options_.seeds(); }
  size_t longest() const { return options_.longest; }

 private:
  const Options options_;
};

// Memory that protobuf briefly reserves for a string whose encoded length is wrong, even in a short message. Added to
// the limit of targets that parse one message at a time.
constexpr uint64_t kProtobufReserve = 50'000'000;

// An input that is split into parts. Past its end, the functions return empty strings and zeros.
class FuzzInput {
 public:
  explicit FuzzInput(absl::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  uint8_t TakeByte();
  // Reads a two-byte little-endian length, and returns that number of bytes.
  absl::string_view TakeSized();
  absl::string_view rest() const { return rest_; }

 private:
  absl::string_view rest_;
};

// Returns the result of make(byte), which is called on first use and cached for later inputs. Not thread-safe.
template <auto make>
const auto& Kept(uint8_t byte) {
  using Made = decltype(make(byte));
  static auto* const kept = new std::array<std::unique_ptr<const Made>, 256>;
  std::unique_ptr<const Made>& made = (*kept)[byte];
  if (made == nullptr) made = std::make_unique<const Made>(make(byte));
  return *made;
}

// Returns `bytes` in the format that TakeSized reads. `bytes` must be shorter than 64 KiB.
std::string Sized(absl::string_view bytes);

// Returns the contents of a file in the source tree; `path` is relative to the root.
std::string FileOfTree(const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_FUZZ_FUZZ_TARGET_H_
