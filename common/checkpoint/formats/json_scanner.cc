#include "lockstep/common/checkpoint/formats/json_scanner.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/utf8.h"

namespace lockstep {
namespace {

bool IsSurrogate(uint32_t code) { return code >= 0xd800 && code < 0xe000; }

void AppendUtf8(uint32_t code, std::string* out) {
  const auto add = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  const auto add_last = [&](int count) {
    for (int i = count - 1; i >= 0; --i) add(0x80 | (code >> (6 * i) & 0x3f));
  };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6);
    add_last(1);
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add_last(2);
  } else {
    add(0xf0 | code >> 18);
    add_last(3);
  }
}

// Consumes four hexadecimal digits.
bool TakeHex(absl::string_view* text, uint32_t* code) {
  if (text->size() < 4) return false;
  *code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = absl::ascii_tolower((*text)[i]);
    if (!absl::ascii_isxdigit(c)) return false;
    *code = *code << 4 | static_cast<uint32_t>(absl::ascii_isdigit(c) ? c - '0' : c - 'a' + 10);
  }
  text->remove_prefix(4);
  return true;
}

}  // namespace

void JsonScanner::SkipSpace() {
  const size_t begin = rest_.find_first_not_of(" \t\r\n");
  rest_.remove_prefix(begin == absl::string_view::npos ? rest_.size() : begin);
}

bool JsonScanner::TakeChar(char c) {
  SkipSpace();
  return absl::ConsumePrefix(&rest_, absl::string_view(&c, 1));
}

bool JsonScanner::at_end() {
  SkipSpace();
  return rest_.empty();
}

// `text` begins after the backslash.
bool JsonScanner::TakeEscape(absl::string_view* text, std::string* out) const {
  constexpr absl::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  if (text->empty()) return false;
  const size_t simple = kEscapes.find(text->front());
  const bool is_code = text->front() == 'u';
  text->remove_prefix(1);
  if (simple != absl::string_view::npos) {
    out->push_back(kMeanings[simple]);
    return true;
  }
  uint32_t code = 0, low = 0;
  if (!is_code || !TakeHex(text, &code)) return false;
  if (IsSurrogate(code)) {
    const bool is_pair =
        code < 0xdc00 && absl::ConsumePrefix(text, "\\u") && TakeHex(text, &low) && low >= 0xdc00 && low < 0xe000;
    if (!is_pair) return false;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  AppendUtf8(code, out);
  return true;
}

bool JsonScanner::TakeString(std::string* out) {
  SkipSpace();
  absl::string_view text = rest_;
  if (!absl::ConsumePrefix(&text, "\"")) return false;
  std::string taken;
  while (!absl::ConsumePrefix(&text, "\"")) {
    if (text.empty() || static_cast<unsigned char>(text.front()) < 0x20) return false;
    if (absl::ConsumePrefix(&text, "\\")) {
      if (!TakeEscape(&text, &taken)) return false;
      continue;
    }
    taken.push_back(text.front());
    text.remove_prefix(1);
  }
  if (!IsUtf8(taken)) return false;
  rest_ = text;
  *out = std::move(taken);
  return true;
}

bool JsonScanner::TakeNumber(int64_t* out) {
  SkipSpace();
  size_t digits = 0;
  while (digits < rest_.size() && absl::ascii_isdigit(rest_[digits])) ++digits;
  const absl::string_view number = rest_.substr(0, digits);
  if (digits == 0 || (digits > 1 && number[0] == '0') || !absl::SimpleAtoi(number, out)) return false;
  rest_.remove_prefix(digits);
  return true;
}

bool JsonScanner::TakeNumbers(std::vector<int64_t>* out) {
  const absl::string_view before = rest_;
  std::vector<int64_t> taken;
  bool ok = TakeChar('[');
  if (ok && !TakeChar(']')) {
    do {
      taken.emplace_back();
      ok = TakeNumber(&taken.back());
    } while (ok && TakeChar(','));
    ok = ok && TakeChar(']');
  }
  if (!ok) {
    rest_ = before;
    return false;
  }
  *out = std::move(taken);
  return true;
}

}  // namespace lockstep
