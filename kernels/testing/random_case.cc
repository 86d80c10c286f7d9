#include "lockstep/kernels/testing/random_case.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/kernels/testing/guarded_memory.h"

namespace lockstep {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSpecial[] = {0.0f,
                              -0.0f,
                              kInfinity,
                              -kInfinity,
                              std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::denorm_min(),
                              -std::numeric_limits<float>::denorm_min(),
                              0x1.5p-130f,
                              -0x1.5p-130f,
                              std::numeric_limits<float>::min(),
                              std::numeric_limits<float>::max(),
                              -std::numeric_limits<float>::max(),
                              88.8f,
                              -104.0f,
                              1e20f,
                              -1e-20f};

// Kinds of random numbers.
enum { kNearOne, kWhole, kEverySize };

template <typename Number>
void MakeNansAlike(std::string* bytes) {
  for (size_t at = 0; at < bytes->size(); at += sizeof(Number)) {
    Number x;
    std::memcpy(&x, &(*bytes)[at], sizeof(x));
    if (!std::isnan(x)) continue;
    x = std::numeric_limits<Number>::quiet_NaN();
    std::memcpy(&(*bytes)[at], &x, sizeof(x));
  }
}

// Formats an element of `size` bytes as a hexadecimal number.
std::string Element(const std::string& bytes, size_t at, size_t size) {
  uint64_t word = 0;
  std::memcpy(&word, &bytes[at], size);
  if (size != sizeof(float)) return absl::StrCat("0x", absl::Hex(word));
  float number;
  std::memcpy(&number, &bytes[at], sizeof(number));
  return absl::StrCat("0x", absl::Hex(word), " (", number, ")");
}

}  // namespace

bool SameFloats(float a, float b) { return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof(a)) == 0; }

RandomCase::RandomCase(int number) : number_(number), state_(static_cast<uint64_t>(number) << 32) {}

// SplitMix64 (Steele, Lea and Flood 2014).
uint64_t RandomCase::Next() {
  state_ += 0x9E3779B97F4A7C15;
  uint64_t x = state_;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

int64_t RandomCase::Between(int64_t least, int64_t most) {
  const auto range = static_cast<uint64_t>(most - least) + 1;
  drawn_.push_back(least + static_cast<int64_t>(Next() % range));
  return drawn_.back();
}

int64_t RandomCase::Size(int64_t least, int64_t most) {
  const uint64_t kind = Next() % 4;
  if (kind <= 1) return Between(least, std::min(most, least + 20));
  const int64_t size = Between(least, most);
  if (kind == 2) return size;
  drawn_.back() = std::clamp(size / 8 * 8 + static_cast<int64_t>(Next() % 3) - 1, least, most);
  return drawn_.back();
}

float RandomCase::Positive(float about) { return about * std::abs(Number(kNearOne)) + about * 0x1p-10f; }

float RandomCase::Number(int kind) {
  const uint64_t bits = Next();
  switch (kind) {
    case kWhole:
      return static_cast<float>(static_cast<int>(bits % 9) - 4);
    case kEverySize:
      return std::ldexp(static_cast<float>(static_cast<int32_t>(bits)), static_cast<int>((bits >> 32) % 255) - 158);
    default:
      return static_cast<float>(static_cast<int32_t>(bits)) * 0x1p-30f;
  }
}

std::vector<float> RandomCase::Numbers(int64_t size) {
  const uint64_t kind = Next() % 8;
  std::vector<float> values(size);
  for (float& x : values) x = Number(kind == 0 ? kWhole : kind == 1 ? kEverySize : kNearOne);
  if (kind >= 6 && size > 0) {
    const uint64_t count = 1 + Next() % (1 + size / 16);
    for (uint64_t i = 0; i < count; ++i) values[Next() % size] = kSpecial[Next() % std::size(kSpecial)];
  }
  return values;
}

std::vector<float> RandomCase::FiniteNumbers(int64_t size) {
  const int kind = Next() % 4 == 0 ? kWhole : kNearOne;
  std::vector<float> values(size);
  for (float& x : values) x = Number(kind);
  return values;
}

void* RandomCase::Placed(const void* from, size_t size) {
  char* const data = GuardedMemory::Get().Place(slots_++, size, Next() % 2 == 0);
  if (size > 0) std::memcpy(data, from, size);
  return data;
}

std::string RandomCase::Description() const {
  return absl::StrCat("case ", number_, ", which drew ", absl::StrJoin(drawn_, " "));
}

std::string RandomCase::Violation() const {
  for (int slot = 0; slot < slots_; ++slot) {
    if (!GuardedMemory::Get().BorderIntact(slot)) return absl::StrCat("wrote next to array ", slot);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const OutputArray& output = outputs_[i];
    if (output.rows.count == 0) continue;
    for (size_t element = 0; element < output.size / output.element_size; ++element) {
      const bool unwritten =
          std::memcmp(output.data + element * output.element_size, output.unwritten.data(), output.element_size) == 0;
      const bool in_gap = static_cast<int64_t>(element) % output.rows.stride >= output.rows.columns;
      if (in_gap && !unwritten) return absl::StrCat("wrote between the rows of output ", i, ", element ", element);
      if (!in_gap && unwritten && output.kind != Kind::kOther) {
        return absl::StrCat("did not write element ", element, " of output ", i);
      }
    }
  }
  return "";
}

std::vector<std::string> RandomCase::Results() const {
  std::vector<std::string> results;
  for (const OutputArray& output : outputs_) {
    results.emplace_back(output.data, output.size);
    if (output.kind == Kind::kFloat) MakeNansAlike<float>(&results.back());
    if (output.kind == Kind::kDouble) MakeNansAlike<double>(&results.back());
  }
  return results;
}

std::string RandomCase::DifferenceFrom(const std::vector<std::string>& expected) const {
  const std::vector<std::string> results = Results();
  if (results.size() != expected.size()) return absl::StrCat(results.size(), " outputs, not ", expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] == expected[i]) continue;
    const size_t size = outputs_[i].element_size;
    size_t at = 0;
    while (results[i].compare(at, size, expected[i], at, size) == 0) at += size;
    return absl::StrCat("element ", at / size, " of output ", i, " is ", Element(results[i], at, size), ", and ",
                        Element(expected[i], at, size), " on another target");
  }
  return "";
}

void BeginCase(int number) {
  GuardedMemory::Get().Describe(absl::StrCat("A fault in case ", number, " on ", TargetName(CurrentTarget())));
}

void EndCase(const RandomCase& random_case, std::vector<std::string>* expected) {
  SCOPED_TRACE(random_case.Description());
  EXPECT_EQ(random_case.Violation(), "");
  if (expected->empty()) *expected = random_case.Results();
  EXPECT_EQ(random_case.DifferenceFrom(*expected), "");
  if (testing::Test::HasFailure()) ADD_FAILURE() << "The case failed.";
}

}  // namespace lockstep
