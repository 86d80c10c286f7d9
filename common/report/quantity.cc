#include "lockstep/common/report/quantity.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep {
namespace {

// Formats `value` in [0, 1000) with at most three digits and no trailing zeros after the point.
std::string ThreeDigits(double value) {
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::string text = absl::StrFormat("%.*f", decimals, value);
  if (decimals > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

struct Scaled {
  double value;
  int power;
};

// Divides `value` by 1000^power, with a power of at most `max_power`, so that the result is in [0, 999.5) if possible.
Scaled Scale(double value, int max_power) {
  Scaled scaled{value, 0};
  while (scaled.value >= 999.5 && scaled.power < max_power) {
    scaled.value /= 1000;
    ++scaled.power;
  }
  return scaled;
}

}  // namespace

std::string QuantityText(double value) {
  if (!std::isfinite(value)) return "-";
  static constexpr const char* kSuffixes[] = {"", "k", "M", "G", "T"};
  const Scaled scaled = Scale(std::fabs(value), 4);
  const std::string digits = ThreeDigits(scaled.value);
  return absl::StrCat(value < 0 && digits != "0" ? "-" : "", digits, kSuffixes[scaled.power]);
}

std::string BytesText(int64_t bytes) {
  static constexpr const char* kUnits[] = {" B", " kB", " MB", " GB", " TB", " PB", " EB"};
  const Scaled scaled = Scale(std::max<double>(0, bytes), 6);
  return absl::StrCat(ThreeDigits(scaled.value), kUnits[scaled.power]);
}

std::string MeasuredTimeText(absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  if (!std::isfinite(seconds) || seconds <= 0) return "-";
  if (seconds < 0.9995) return absl::StrCat(ThreeDigits(seconds * 1e3), " ms");
  if (seconds < 999.5) return absl::StrCat(ThreeDigits(seconds), " s");
  return absl::StrFormat("%.0f s", seconds);
}

std::string RemainingTimeText(absl::Duration duration) {
  if (duration >= absl::Hours(24) * 100000) return "-";
  const int64_t seconds = std::max<int64_t>(0, std::llround(absl::ToDoubleSeconds(duration)));
  if (seconds < 60) return absl::StrFormat("%ds", seconds);
  if (seconds < 3600) return absl::StrFormat("%dm %02ds", seconds / 60, seconds % 60);
  if (seconds < 86400) return absl::StrFormat("%dh %02dm", seconds / 3600, seconds % 3600 / 60);
  return absl::StrFormat("%dd %dh", seconds / 86400, seconds % 86400 / 3600);
}

std::string CountText(int64_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace lockstep
