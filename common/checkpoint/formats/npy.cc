#include "lockstep/common/checkpoint/formats/npy.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/common/io/foreign_file.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
// NumPy aligns the elements to this number of bytes.
constexpr size_t kAlignment = 64;
// Maximum number of characters of a type to include in an error message.
constexpr size_t kShownTypeBytes = 60;
// NumPy's limit.
constexpr size_t kMostDimensions = 64;

struct NumpyType {
  // Kind and element size, without the byte order.
  const char* code;
  v1::DataType dtype;
};
constexpr NumpyType kTypes[] = {
    {"f4", v1::DT_FLOAT}, {"f8", v1::DT_DOUBLE}, {"i4", v1::DT_INT32},  {"u1", v1::DT_UINT8},
    {"i2", v1::DT_INT16}, {"i1", v1::DT_INT8},   {"i8", v1::DT_INT64},  {"b1", v1::DT_BOOL},
    {"f2", v1::DT_HALF},  {"u2", v1::DT_UINT16}, {"u4", v1::DT_UINT32}, {"u8", v1::DT_UINT64},
};

// The three entries of the dictionary, verbatim.
struct Fields {
  absl::string_view descr, fortran_order, shape;
};

// Scans the Python literals that occur in a header.
class LiteralScanner {
 public:
  explicit LiteralScanner(absl::string_view text) : rest_(text) {}

  void SkipSpace() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }
  bool TakeChar(char c) {
    SkipSpace();
    return absl::ConsumePrefix(&rest_, absl::string_view(&c, 1));
  }
  // Takes a quoted string without escapes, and returns its content.
  bool TakeString(absl::string_view* out) {
    SkipSpace();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    const size_t end = rest_.find(rest_[0], 1);
    if (end == absl::string_view::npos) return false;
    *out = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  // Takes everything up to a comma or brace outside of brackets and quotes.
  bool TakeValue(absl::string_view* out) {
    SkipSpace();
    int depth = 0;
    char quote = '\0';
    size_t end = 0;
    for (; end < rest_.size(); ++end) {
      const char c = rest_[end];
      if (quote != '\0') {
        if (c == quote) quote = '\0';
        continue;
      }
      if (c == '\'' || c == '"') quote = c;
      if (depth == 0 && (c == ',' || c == '}')) break;
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') --depth;
    }
    *out = absl::StripTrailingAsciiWhitespace(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return !out->empty() && quote == '\0' && depth == 0;
  }
  bool at_end() {
    SkipSpace();
    return rest_.empty();
  }

 private:
  absl::string_view rest_;
};

absl::Status Damaged(absl::string_view name, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(name, ": no .npy array: ", what));
}

bool ParseFields(absl::string_view text, Fields* fields) {
  LiteralScanner scanner(text);
  if (!scanner.TakeChar('{')) return false;
  while (!scanner.TakeChar('}')) {
    absl::string_view key, value;
    if (!scanner.TakeString(&key) || !scanner.TakeChar(':') || !scanner.TakeValue(&value)) return false;
    absl::string_view* const field = key == "descr"           ? &fields->descr
                                     : key == "fortran_order" ? &fields->fortran_order
                                     : key == "shape"         ? &fields->shape
                                                              : nullptr;
    if (field == nullptr || !field->empty()) return false;
    *field = value;
    if (scanner.TakeChar(',')) continue;
    if (!scanner.TakeChar('}')) return false;
    break;
  }
  return scanner.at_end() && !fields->descr.empty() && !fields->fortran_order.empty() && !fields->shape.empty();
}

// Parses "(3, 4)", "(3,)" or "()". Python 2 wrote "(3L,)".
bool ParseShape(absl::string_view text, std::vector<int64_t>* dims) {
  if (!absl::ConsumePrefix(&text, "(") || !absl::ConsumeSuffix(&text, ")")) return false;
  text = absl::StripAsciiWhitespace(text);
  while (!text.empty()) {
    const size_t comma = text.find(',');
    absl::string_view number = absl::StripAsciiWhitespace(text.substr(0, comma));
    absl::ConsumeSuffix(&number, "L");
    int64_t dim = 0;
    const bool has_digits = !number.empty() && std::all_of(number.begin(), number.end(), absl::ascii_isdigit);
    if (!has_digits || !absl::SimpleAtoi(number, &dim) || dims->size() == kMostDimensions) return false;
    dims->push_back(dim);
    if (comma == absl::string_view::npos) return dims->size() > 1;  // "(3)" is a number
    text = absl::StripLeadingAsciiWhitespace(text.substr(comma + 1));
  }
  return true;
}

// Returns advice on how to save an array of this unsupported element type in another form, or an empty string if there
// is none.
const char* SavedInstead(absl::string_view code) {
  if (code == "O") return "; convert Python objects with .astype('float32') or .astype('int64')";
  const bool is_text = absl::StartsWith(code, "U") || absl::StartsWith(code, "S");
  return is_text ? "; integers are classes: save numpy.unique(words, return_inverse=True)[1]" : "";
}

absl::StatusOr<v1::DataType> ParseType(absl::string_view descr, absl::string_view name) {
  LiteralScanner scanner(descr);
  absl::string_view type;
  const bool is_string = scanner.TakeString(&type) && scanner.at_end();
  const bool has_order = is_string && !type.empty() && absl::string_view("<>=|").find(type[0]) != type.npos;
  const absl::string_view code = has_order ? type.substr(1) : type;
  const auto known =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NumpyType& t) { return t.code == code; });
  if (!is_string || known == std::end(kTypes)) {
    return absl::UnimplementedError(absl::StrCat(name, " has elements of the type ",
                                                 Printable((is_string ? type : descr).substr(0, kShownTypeBytes)),
                                                 ", which is not read; numbers and booleans are", SavedInstead(code)));
  }
  if (type[0] == '>' && SizeOf(known->dtype) > 1) {
    return absl::UnimplementedError(
        absl::StrCat(name, " is big-endian (", type, "); save it with .astype(\"<", code, "\")"));
  }
  return known->dtype;
}

// Number of bytes before the dictionary, and number of bytes up to its end.
struct Extent {
  size_t text = 0, header = 0;
};
absl::StatusOr<Extent> FindHeader(absl::string_view start, absl::string_view name) {
  if (start.substr(0, kMagic.size()) != kMagic) {
    const std::string foreign = ForeignFormat(start.substr(0, kForeignHeadBytes));
    return Damaged(name, absl::StrCat("it does not begin with \\x93NUMPY", foreign.empty() ? "" : "; ", foreign));
  }
  const bool is_known = start.size() > 7 && start[6] >= 1 && start[6] <= 3 && start[7] == 0;
  if (start.size() > 7 && !is_known) {
    return Damaged(name, absl::StrCat("version ", static_cast<int>(static_cast<uint8_t>(start[6])), ".",
                                      static_cast<int>(static_cast<uint8_t>(start[7])), ", known are 1.0 to 3.0"));
  }
  Extent extent;
  extent.text = start.size() > 7 && start[6] > 1 ? 12 : 10;
  if (start.size() < extent.text) return Damaged(name, absl::StrCat("it ends after ", start.size(), " bytes"));
  const uint64_t size =
      extent.text == 12 ? LoadLittleEndian<uint32_t>(start.data() + 8) : LoadLittleEndian<uint16_t>(start.data() + 8);
  if (size > kMostNpyHeaderBytes - extent.text) {
    return Damaged(
        name, absl::StrCat("a header of ", size, " bytes, at most ", kMostNpyHeaderBytes - extent.text, " are read"));
  }
  extent.header = extent.text + static_cast<size_t>(size);
  if (start.size() < extent.header) {
    return Damaged(name, absl::StrCat("it ends after ", start.size(), " bytes, its header has ", extent.header));
  }
  return extent;
}

}  // namespace

uint64_t NpyHeader::content_bytes() const { return static_cast<uint64_t>(shape.num_elements()) * SizeOf(dtype); }

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view start, absl::string_view name) {
  ASSIGN_OR_RETURN(const Extent extent, FindHeader(start, name));
  const absl::string_view text = start.substr(extent.text, extent.header - extent.text);
  Fields fields;
  std::vector<int64_t> dims;
  const bool parses = ParseFields(text, &fields) && ParseShape(fields.shape, &dims) &&
                      (fields.fortran_order == "True" || fields.fortran_order == "False");
  if (!parses) {
    return Damaged(name, absl::StrCat("its header is ", Printable(absl::StripTrailingAsciiWhitespace(text).substr(
                                                            0, 3 * kShownTypeBytes))));
  }
  NpyHeader header;
  header.header_bytes = extent.header;
  ASSIGN_OR_RETURN(header.dtype, ParseType(fields.descr, name));
  auto shape = Shape::Create(dims);
  if (!shape.ok()) return Damaged(name, shape.status().message());
  header.shape = *std::move(shape);
  if (header.shape.num_elements() > std::numeric_limits<int64_t>::max() / static_cast<int64_t>(SizeOf(header.dtype))) {
    return Damaged(name, absl::StrCat("shape ", header.shape.ToString(), " of ", NameOf(header.dtype),
                                      " has more than 2^63 bytes"));
  }
  // With one dimension, both orders are the same.
  if (fields.fortran_order == "True" && header.shape.rank() > 1) {
    return absl::UnimplementedError(
        absl::StrCat(name, " is in Fortran order; save numpy.ascontiguousarray of the array"));
  }
  return header;
}

absl::StatusOr<std::string> EncodeNpyHeader(v1::DataType dtype, const Shape& shape) {
  const auto known =
      std::find_if(std::begin(kTypes), std::end(kTypes), [dtype](const NumpyType& t) { return t.dtype == dtype; });
  if (known == std::end(kTypes)) {
    return absl::InvalidArgumentError(absl::StrCat("NumPy has no type ", NameOf(dtype)));
  }
  std::string text =
      absl::StrCat("{'descr': '", SizeOf(dtype) > 1 ? "<" : "|", known->code, "', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(shape.dims(), ", "), shape.rank() == 1 ? ",)" : ")", ", }");
  const size_t prefix = kMagic.size() + 4;
  text.append(kAlignment - 1 - (prefix + text.size()) % kAlignment, ' ');
  text.push_back('\n');
  std::string header(kMagic);
  header.push_back('\x01');
  header.push_back('\0');
  AppendLittleEndian<uint16_t>(&header, static_cast<uint16_t>(text.size()));
  return header + text;
}

absl::StatusOr<NpyHeader> ReadNpyHeader(const RandomAccessFile& file, const std::string& path) {
  std::string start(static_cast<size_t>(std::min<uint64_t>(file.size(), kMostNpyHeaderBytes)), '\0');
  RETURN_IF_ERROR(file.Read(0, start.size(), &start[0]));
  ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(start, path));
  const uint64_t follow = file.size() - header.header_bytes;
  if (follow == header.content_bytes()) return header;
  return absl::DataLossError(absl::StrCat(path, ": an array of ", NameOf(header.dtype), header.shape.ToString(), ", ",
                                          header.content_bytes(), " bytes, expected; ", follow, " bytes follow"));
}

}  // namespace lockstep
