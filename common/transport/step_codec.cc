#include "lockstep/common/transport/step_codec.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "glog/logging.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/rounding.h"
#include "lockstep/common/transport/bounded_parse.h"
#include "lockstep/common/transport/wire_reader.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

constexpr uint32_t kLengthDelimited = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;

// The limit for a SharedRange, which has two numbers.
constexpr uint64_t kMaxRangeBytes = 64;
// The limit for a reply: more than any chief sends.
constexpr size_t kMaxReplyPieces = 1 << 20;

uint32_t Tag(int field) { return (static_cast<uint32_t>(field) << 3) | kLengthDelimited; }

void AppendVarint(uint64_t value, std::string* out) {
  uint8_t bytes[10];
  const uint8_t* end = CodedOutputStream::WriteVarint64ToArray(value, bytes);
  out->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(end - bytes));
}

// Everything of a TensorPiece before its content, with the tag and length of the piece and of the content.
void AppendPieceHeader(int field, const StepPiece& piece, std::string* out) {
  const uint64_t bytes = piece.content.bytes();
  std::string fields;
  if (piece.variable != 0) {
    fields.push_back(static_cast<char>((v1::TensorPiece::kVariableFieldNumber << 3) | WireFormatLite::WIRETYPE_VARINT));
    AppendVarint(static_cast<uint64_t>(piece.variable), &fields);
  }
  if (piece.offset != 0) {
    fields.push_back(static_cast<char>((v1::TensorPiece::kOffsetFieldNumber << 3) | WireFormatLite::WIRETYPE_VARINT));
    AppendVarint(static_cast<uint64_t>(piece.offset), &fields);
  }
  if (piece.content.type() != v1::DT_FLOAT) {
    fields.push_back(static_cast<char>((v1::TensorPiece::kDtypeFieldNumber << 3) | WireFormatLite::WIRETYPE_VARINT));
    AppendVarint(static_cast<uint64_t>(piece.content.type()), &fields);
  }
  if (piece.slot != 0) {
    fields.push_back(static_cast<char>((v1::TensorPiece::kSlotFieldNumber << 3) | WireFormatLite::WIRETYPE_VARINT));
    AppendVarint(static_cast<uint64_t>(piece.slot), &fields);
  }
  if (piece.sparse) {
    fields.push_back(static_cast<char>((v1::TensorPiece::kSparseFieldNumber << 3) | WireFormatLite::WIRETYPE_VARINT));
    fields.push_back(1);
  }
  fields.push_back(static_cast<char>(Tag(v1::TensorPiece::kContentFieldNumber)));
  AppendVarint(bytes, &fields);
  AppendVarint(Tag(field), out);
  AppendVarint(fields.size() + bytes, out);
  out->append(fields);
}

// A piece that lies in shared memory: the message has no bytes of it.
void AppendSharedPiece(int field, const StepPiece& piece, std::string* out) {
  v1::TensorPiece small;
  small.set_variable(static_cast<uint32_t>(piece.variable));
  small.set_offset(static_cast<uint64_t>(piece.offset));
  small.mutable_shared()->set_offset(piece.shared->offset);
  small.mutable_shared()->set_bytes(piece.shared->bytes);
  AppendVarint(Tag(field), out);
  AppendVarint(small.ByteSizeLong(), out);
  small.AppendToString(out);
}

void ReleaseOwner(void* owner) { delete static_cast<std::shared_ptr<const void>*>(owner); }

// Collects the slices of one message: small bytes are copied together, tensors are referenced.
class SliceCollector {
 public:
  std::string* small() { return &small_; }

  // `content` must be one run of memory, which `owner` keeps alive.
  void AddTensor(const FloatChunks& content, const std::shared_ptr<const void>& owner) {
    const char* data = content.SingleRun();
    if (content.bytes() == 0) return;
    CHECK(data != nullptr) << "a tensor to be sent lies in several pieces";
    Flush();
    slices_.emplace_back(const_cast<char*>(data), content.bytes(), ReleaseOwner,
                         new std::shared_ptr<const void>(owner));
  }

  grpc::ByteBuffer Finish() {
    Flush();
    return grpc::ByteBuffer(slices_.data(), slices_.size());
  }

 private:
  void Flush() {
    if (!small_.empty()) slices_.emplace_back(small_);
    small_.clear();
  }

  std::string small_;
  std::vector<grpc::Slice> slices_;
};

// The runs of a received message.
absl::Status TakeSlices(const grpc::ByteBuffer& buffer, std::vector<grpc::Slice>* slices,
                        std::vector<absl::string_view>* runs) {
  if (!buffer.Valid()) return absl::OkStatus();  // an empty message
  const grpc::Status status = buffer.Dump(slices);
  if (!status.ok()) return absl::InternalError(absl::StrCat("cannot read a message: ", status.error_message()));
  for (const grpc::Slice& slice : *slices) {
    runs->emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return absl::OkStatus();
}

// Reads one TensorPiece of `length` bytes, and what it says of the type of its elements.
bool ReadPiece(WireReader* reader, uint64_t length, StepPiece* piece, uint64_t* type_number) {
  if (length > reader->left()) return false;
  const uint64_t end = reader->left() - length;
  *type_number = v1::DT_INVALID;
  while (reader->left() > end) {
    uint32_t field, type;
    uint64_t value;
    if (!reader->ReadTag(&field, &type)) return false;
    if (field == v1::TensorPiece::kContentFieldNumber && type == kLengthDelimited) {
      piece->content = FloatChunks();
      if (!reader->ReadVarint(&value) || !reader->ReadChunks(value, &piece->content)) return false;
    } else if (field == v1::TensorPiece::kSharedFieldNumber && type == kLengthDelimited) {
      std::string bytes;
      v1::SharedRange range;
      if (!reader->ReadVarint(&value) || value > kMaxRangeBytes || value > reader->left() ||
          !reader->ReadString(value, &bytes))
        return false;
      if (!range.ParseFromString(bytes)) return false;
      piece->shared = SharedSpan{range.offset(), range.bytes()};
    } else if (field == v1::TensorPiece::kVariableFieldNumber && type == WireFormatLite::WIRETYPE_VARINT) {
      if (!reader->ReadVarint(&value) || value > UINT32_MAX) return false;
      piece->variable = static_cast<int64_t>(value);
    } else if (field == v1::TensorPiece::kOffsetFieldNumber && type == WireFormatLite::WIRETYPE_VARINT) {
      if (!reader->ReadVarint(&value) || value > INT64_MAX) return false;
      piece->offset = static_cast<int64_t>(value);
    } else if (field == v1::TensorPiece::kDtypeFieldNumber && type == WireFormatLite::WIRETYPE_VARINT) {
      if (!reader->ReadVarint(type_number)) return false;
    } else if (field == v1::TensorPiece::kSlotFieldNumber && type == WireFormatLite::WIRETYPE_VARINT) {
      if (!reader->ReadVarint(&value)) return false;
      piece->slot = static_cast<int64_t>(value);
    } else if (field == v1::TensorPiece::kSparseFieldNumber && type == WireFormatLite::WIRETYPE_VARINT) {
      if (!reader->ReadVarint(&value)) return false;
      piece->sparse = value != 0;
    } else if (!reader->SkipField(type)) {
      return false;
    }
  }
  return reader->left() == end;
}

// Where the pieces of a field go.
struct PieceField {
  uint32_t field;
  std::vector<StepPiece>* pieces;
};

absl::Status TooMany(int64_t most, absl::string_view what) {
  return absl::ResourceExhaustedError(absl::StrCat("more than ", most, " ", what, " in one message"));
}

// Where the pieces of a message go, and how many there may be in all; how often the field `counted` may come.
struct SplitOptions {
  std::vector<PieceField> piece_fields;
  int64_t max_pieces = 0;
  uint32_t counted = 0;
  int64_t max_counted = 0;
  const char* counted_name = "";
};

// The numbers of a message's fields, as bits: looking them up in its descriptor would take longer than the rest.
uint64_t FieldsOf(const google::protobuf::Descriptor& message_type) {
  uint64_t fields = 0;
  for (int i = 0; i < message_type.field_count(); ++i) {
    CHECK_LT(message_type.field(i)->number(), 64) << message_type.full_name();
    fields |= uint64_t{1} << message_type.field(i)->number();
  }
  return fields;
}

// Splits a message into its pieces and the bytes of everything else that is known: `known_fields`, of FieldsOf.
absl::Status Split(const std::vector<absl::string_view>& runs, uint64_t known_fields, const SplitOptions& options,
                   std::string* rest) {
  const std::vector<PieceField>& piece_fields = options.piece_fields;
  WireReader reader(runs);
  int64_t pieces = 0, counted = 0;
  while (reader.left() > 0) {
    uint32_t field, type;
    if (!reader.ReadTag(&field, &type)) return absl::InvalidArgumentError("a malformed tag");
    const auto malformed = [&] { return absl::InvalidArgumentError(absl::StrCat("field ", field, " is malformed")); };
    uint64_t value = 0;
    const bool known = field < 64 && (known_fields >> field & 1) != 0;
    if (known && type == kLengthDelimited) {
      if (!reader.ReadVarint(&value) || value > reader.left()) return malformed();
      if (field == options.counted && ++counted > options.max_counted) {
        return TooMany(options.max_counted, options.counted_name);
      }
      const auto target = std::find_if(piece_fields.begin(), piece_fields.end(),
                                       [field](const PieceField& other) { return other.field == field; });
      if (target != piece_fields.end()) {
        if (++pieces > options.max_pieces) return TooMany(options.max_pieces, "pieces");
        StepPiece piece;
        uint64_t type_number;
        if (!ReadPiece(&reader, value, &piece, &type_number)) return malformed();
        if (type_number == v1::DT_INVALID) type_number = v1::DT_FLOAT;  // absent
        const v1::DataType dtype = type_number <= INT32_MAX ? static_cast<v1::DataType>(type_number) : v1::DT_INVALID;
        if (!IsFloatType(dtype)) {
          return absl::InvalidArgumentError(absl::StrCat("a piece of variable number ", piece.variable, " has type ",
                                                         type_number, " (", NameOf(dtype),
                                                         "), must be float32, bfloat16 or float16"));
        }
        piece.content.set_type(dtype);
        target->pieces->push_back(std::move(piece));
        continue;
      }
      std::string bytes;
      if (!reader.ReadString(value, &bytes)) return malformed();
      AppendVarint(Tag(static_cast<int>(field)), rest);
      AppendVarint(value, rest);
      rest->append(bytes);
    } else if (known && type == WireFormatLite::WIRETYPE_VARINT) {
      if (!reader.ReadVarint(&value)) return malformed();
      AppendVarint((static_cast<uint64_t>(field) << 3) | type, rest);
      AppendVarint(value, rest);
    } else if (known && (type == WireFormatLite::WIRETYPE_FIXED64 || type == WireFormatLite::WIRETYPE_FIXED32)) {
      // As the elements of a repeated field come that is not packed.
      std::string bytes;
      if (!reader.ReadString(type == WireFormatLite::WIRETYPE_FIXED64 ? 8 : 4, &bytes)) return malformed();
      AppendVarint((static_cast<uint64_t>(field) << 3) | type, rest);
      rest->append(bytes);
    } else if (!reader.SkipField(type)) {
      return malformed();
    }
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ByteBuffer EncodeStepRequest(const StepFrame& frame, const std::shared_ptr<const void>& owner) {
  v1::StepRequest small;
  small.set_session_id(frame.session_id);
  small.set_generation(frame.generation);
  small.set_step(frame.step);
  small.set_first_slot(frame.block.first);
  small.set_slot_count(frame.block.count);
  for (const v1::SlotReport& report : frame.reports) *small.add_report() = report;
  small.set_end(frame.end);
  small.set_startup_delay_steps(frame.startup_delay_steps);
  small.set_leave(frame.leave);
  small.set_end_of_input(frame.end_of_input);
  if (frame.gradient_memory) *small.mutable_gradient_memory() = *frame.gradient_memory;
  if (frame.ring) *small.mutable_ring() = *frame.ring;
  *small.mutable_digest() = {frame.digests.begin(), frame.digests.end()};
  SliceCollector collector;
  small.AppendToString(collector.small());
  for (const StepPiece& piece : frame.gradients) {
    if (piece.shared) {
      AppendSharedPiece(v1::StepRequest::kGradientFieldNumber, piece, collector.small());
      continue;
    }
    AppendPieceHeader(v1::StepRequest::kGradientFieldNumber, piece, collector.small());
    if (piece.sparse && piece.content.bytes() > 0) {
      collector.small()->append(piece.content.SingleRun(), piece.content.bytes());
    } else {
      collector.AddTensor(piece.content, owner);
    }
  }
  return collector.Finish();
}

grpc::ByteBuffer EncodeStepReply(const StepReplyFrame& frame) {
  v1::StepReply small;
  small.set_result(frame.result);
  small.set_values_step(frame.values_step);
  if (frame.token) *small.mutable_token() = *frame.token;
  small.set_finished(frame.finished);
  small.set_finish_message(frame.finish_message);
  small.set_estimates_step(frame.estimates_step);
  if (frame.values_memory) *small.mutable_values_memory() = *frame.values_memory;
  if (frame.ring) *small.mutable_ring() = *frame.ring;
  SliceCollector collector;
  small.AppendToString(collector.small());
  for (const StepPiece& piece : frame.values) {
    AppendPieceHeader(v1::StepReply::kValueFieldNumber, piece, collector.small());
    collector.AddTensor(piece.content, frame.values_owner);
  }
  for (const StepPiece& piece : frame.estimates) {
    AppendPieceHeader(v1::StepReply::kEstimateFieldNumber, piece, collector.small());
    collector.AddTensor(piece.content, frame.estimates_owner);
  }
  return collector.Finish();
}

absl::Status DecodeStepRequest(const grpc::ByteBuffer& buffer, const StepFrameLimits& limits,
                               Decoded<StepFrame>* decoded) {
  std::vector<absl::string_view> runs;
  RETURN_IF_ERROR(TakeSlices(buffer, &decoded->slices, &runs));
  StepFrame& frame = decoded->frame;
  v1::StepRequest small;
  SplitOptions options;
  options.piece_fields.push_back({v1::StepRequest::kGradientFieldNumber, &frame.gradients});
  options.max_pieces = limits.pieces;
  options.counted = v1::StepRequest::kReportFieldNumber;
  options.max_counted = limits.reports;
  options.counted_name = "reports";
  static const uint64_t known_fields = FieldsOf(*v1::StepRequest::descriptor());
  std::string rest;
  RETURN_IF_ERROR(Split(runs, known_fields, options, &rest));
  RETURN_IF_ERROR(ParseBounded(rest, static_cast<uint64_t>(limits.bytes), &small));
  frame.session_id = small.session_id();
  frame.generation = small.generation();
  frame.step = small.step();
  frame.block = {small.first_slot(), small.slot_count()};
  for (v1::SlotReport& report : *small.mutable_report()) frame.reports.push_back(std::move(report));
  frame.end = small.end();
  frame.startup_delay_steps = small.startup_delay_steps();
  frame.leave = small.leave();
  frame.end_of_input = small.end_of_input();
  if (small.has_gradient_memory()) frame.gradient_memory = std::move(*small.mutable_gradient_memory());
  if (small.has_ring()) frame.ring = std::move(*small.mutable_ring());
  frame.digests.assign(small.digest().begin(), small.digest().end());
  frame.encoded_bytes = static_cast<int64_t>(buffer.Length());
  return absl::OkStatus();
}

absl::Status DecodeStepReply(const grpc::ByteBuffer& buffer, Decoded<StepReplyFrame>* decoded) {
  std::vector<absl::string_view> runs;
  RETURN_IF_ERROR(TakeSlices(buffer, &decoded->slices, &runs));
  StepReplyFrame& frame = decoded->frame;
  v1::StepReply small;
  SplitOptions options;
  options.piece_fields.push_back({v1::StepReply::kValueFieldNumber, &frame.values});
  options.piece_fields.push_back({v1::StepReply::kEstimateFieldNumber, &frame.estimates});
  options.max_pieces = kMaxReplyPieces;
  static const uint64_t known_fields = FieldsOf(*v1::StepReply::descriptor());
  std::string rest;
  RETURN_IF_ERROR(Split(runs, known_fields, options, &rest));
  if (!small.ParseFromString(rest)) return absl::InvalidArgumentError("the message is malformed");
  frame.result = small.result();
  frame.values_step = small.values_step();
  if (small.has_token()) frame.token = small.token();
  frame.finished = small.finished();
  frame.finish_message = small.finish_message();
  frame.estimates_step = small.estimates_step();
  if (small.has_values_memory()) frame.values_memory = std::move(*small.mutable_values_memory());
  if (small.has_ring()) frame.ring = std::move(*small.mutable_ring());
  return absl::OkStatus();
}

}  // namespace lockstep
