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

// A reader of foreign bytes, and what must hold whatever the bytes are. One for each NAME_fuzzer.cc, which defines it
// as a constant; it makes itself known under its name. docs/testing.md says how to add one and how to run it.
class FuzzTarget {
 public:
  struct Options {
    const char* name = nullptr;
    // What `run` may take of memory (operator new) beyond what it gives back: this much, and so much for each byte of
    // the input.
    uint64_t fixed_bytes = 0;
    uint64_t bytes_per_byte = 0;
    // Whether the reader took the whole input for good. Ends the process when something does not hold.
    bool (*run)(absl::string_view input) = nullptr;
    // Inputs that are taken, made with the product's own writers: fuzzing starts from them.
    std::vector<std::string> (*seeds)() = nullptr;
    // Fuzzing makes no longer inputs, since they reach nothing more, and no seed is longer. In bytes.
    size_t longest = 1024;
  };

  explicit FuzzTarget(const Options& options);
  FuzzTarget(const FuzzTarget&) = delete;
  FuzzTarget& operator=(const FuzzTarget&) = delete;

  // Null when there is none of that name.
  static const FuzzTarget* Find(absl::string_view name);
  // Sorted.
  static std::vector<std::string> Names();

  // Runs the target; ends the process when it took more memory than stated.
  bool Run(absl::string_view input) const;
  std::vector<std::string> Seeds() const { return options_.seeds(); }
  size_t longest() const { return options_.longest; }

 private:
  const Options options_;
};

// protobuf reserves this much, for a moment, for a string whose length is wrong, however short the message is. Readers
// of one message at a time may.
constexpr uint64_t kProtobufReserve = 50'000'000;

// An input, taken apart. What is beyond the end is empty, or zeros.
class FuzzInput {
 public:
  explicit FuzzInput(absl::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  uint8_t TakeByte();
  // A length of two bytes, little-endian, and so many bytes.
  absl::string_view TakeSized();
  absl::string_view rest() const { return rest_; }

 private:
  absl::string_view rest_;
};

// make(byte), which is made when it is first wanted and then kept: many inputs share it. Not thread-safe.
template <auto make>
const auto& Kept(uint8_t byte) {
  using Made = decltype(make(byte));
  static auto* const kept = new std::array<std::unique_ptr<const Made>, 256>;
  std::unique_ptr<const Made>& made = (*kept)[byte];
  if (made == nullptr) made = std::make_unique<const Made>(make(byte));
  return *made;
}

// What TakeSized takes. `bytes` is shorter than 64 KiB.
std::string Sized(absl::string_view bytes);

// A file of the tree, by its path from the root.
std::string FileOfTree(const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_FUZZ_FUZZ_TARGET_H_
