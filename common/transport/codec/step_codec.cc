#include "lockstep/common/transport/codec/step_codec.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "google/protobuf/wire_format_lite.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/rounding.h"
#include "lockstep/common/transport/codec/bounded_parse.h"
#include "lockstep/common/transport/codec/wire_format.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {
namespace {

using google::protobuf::internal::WireFormatLite;

constexpr uint32_t kLengthDelimited = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;

// Maximum encoded size of a SharedRange, which has two numbers.
constexpr uint64_t kMaxRangeBytes = 64;
// Maximum number of pieces in a reply, which is more than any chief sends.
constexpr size_t kMaxReplyPieces = 1 << 20;

using Runs = WireReader::Runs;

// Extracts the slices of a received message, and appends the runs of bytes in them to `runs`.
absl::Status TakeSlices(const grpc::ByteBuffer& buffer, std::vector<grpc::Slice>* slices, Runs* runs) {
  if (!buffer.Valid()) return absl::OkStatus();  // an empty message
  const grpc::Status status = buffer.Dump(slices);
  if (!status.ok()) return absl::InternalError(absl::StrCat("cannot read a message: ", status.error_message()));
  for (const grpc::Slice& slice : *slices) {
    runs->emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return absl::OkStatus();
}

// Reads one TensorPiece of `length` bytes, which must not exceed the remaining bytes, and its declared element type.
bool ReadPiece(WireReader* reader, uint64_t length, StepPiece* piece, uint64_t* type_number) {
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

// A field that holds pieces, and the list that receives them.
struct PieceField {
  uint32_t field;
  std::vector<StepPiece>* pieces;
};

absl::Status Malformed(uint32_t field) {
  return absl::InvalidArgumentError(absl::StrCat("field ", field, " is malformed"));
}

absl::Status TooMany(int64_t most, absl::string_view what) {
  return absl::ResourceExhaustedError(absl::StrCat("more than ", most, " ", what, " in one message"));
}

// The fields that hold pieces, the maximum number of pieces in total, and the maximum number of occurrences of one
// other field, `counted`.
struct SplitOptions {
  absl::InlinedVector<PieceField, 2> piece_fields;
  int64_t max_pieces = 0;
  uint32_t counted = 0;
  int64_t max_counted = 0;
  const char* counted_name = "";
};

// Returns a bit mask of the numbers of a message's fields. Looking each of them up in the descriptor would take longer
// than the rest of the decoding.
uint64_t FieldsOf(const google::protobuf::Descriptor& message_type) {
  uint64_t fields = 0;
  for (int i = 0; i < message_type.field_count(); ++i) {
    CHECK_LT(message_type.field(i)->number(), 64) << message_type.full_name();
    fields |= uint64_t{1} << message_type.field(i)->number();
  }
  return fields;
}

// Reads a piece of `length` bytes.
absl::Status TakePiece(uint32_t field, uint64_t length, WireReader* reader, StepPiece* piece) {
  uint64_t type_number;
  if (!ReadPiece(reader, length, piece, &type_number)) return Malformed(field);
  if (type_number == v1::DT_INVALID) type_number = v1::DT_FLOAT;  // absent
  const v1::DataType dtype = type_number <= INT32_MAX ? static_cast<v1::DataType>(type_number) : v1::DT_INVALID;
  if (!IsFloatType(dtype) && !IsIntegerVariableType(dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("a piece of variable number ", piece->variable, " has type ",
                                                   type_number, " (", NameOf(dtype),
                                                   "), must be a type of a variable, bfloat16 or float16"));
  }
  piece->content.set_type(dtype);
  return absl::OkStatus();
}

// Splits a message into its pieces and the bytes of all other fields in `known_fields` (FieldsOf). The bytes stay in
// place.
absl::Status Split(const Runs& runs, uint64_t known_fields, const SplitOptions& options, Runs* rest) {
  WireReader reader(runs);
  WireReader behind(runs);  // at the first byte that is neither kept nor dropped
  const auto keep = [&](uint64_t left) { return behind.ReadRuns(behind.left() - left, rest); };
  int64_t pieces = 0, counted = 0;
  while (reader.left() > 0) {
    const uint64_t left = reader.left();
    uint32_t field, type;
    if (!reader.ReadTag(&field, &type)) return absl::InvalidArgumentError("a malformed tag");
    const bool known = field < 64 && (known_fields >> field & 1) != 0;
    const auto target = std::find_if(options.piece_fields.begin(), options.piece_fields.end(), [&](const auto& other) {
      return other.field == field && type == kLengthDelimited;
    });
    if (known && target == options.piece_fields.end()) {
      if (!reader.SkipField(type)) return Malformed(field);
      if (field == options.counted && type == kLengthDelimited && ++counted > options.max_counted) {
        return TooMany(options.max_counted, options.counted_name);
      }
      continue;
    }
    keep(left);
    if (known) {
      uint64_t length;
      if (!reader.ReadVarint(&length) || length > reader.left()) return Malformed(field);
      if (++pieces > options.max_pieces) return TooMany(options.max_pieces, "pieces");
      target->pieces->emplace_back();
      RETURN_IF_ERROR(TakePiece(field, length, &reader, &target->pieces->back()));
    } else if (!reader.SkipField(type)) {
      return Malformed(field);
    }
    behind.Skip(behind.left() - reader.left());
  }
  keep(0);
  return absl::OkStatus();
}

// Returns the bytes of all runs, copied to `storage` if there are several runs.
absl::string_view Join(const Runs& runs, std::string* storage) {
  if (runs.size() == 1) return runs[0];
  for (const absl::string_view run : runs) storage->append(run.data(), run.size());
  return *storage;
}

}  // namespace

// The encoders write fields in the order of their numbers, as protobuf does.

grpc::ByteBuffer EncodeStepRequest(const StepFrame& frame) {
  using Request = v1::StepRequest;
  MessageWriter writer;
  writer.AddNumber(Request::kSessionIdFieldNumber, frame.session_id);
  writer.AddNumber(Request::kGenerationFieldNumber, frame.generation);
  writer.AddNumber(Request::kStepFieldNumber, frame.step);
  writer.AddNumber(Request::kFirstSlotFieldNumber, frame.block.first);
  writer.AddNumber(Request::kSlotCountFieldNumber, frame.block.count);
  for (const v1::SlotReport& report : frame.reports) writer.AddMessage(Request::kReportFieldNumber, report);
  writer.AddNumber(Request::kEndFieldNumber, int64_t{frame.end});
  writer.AddNumber(Request::kStartupDelayStepsFieldNumber, frame.startup_delay_steps);
  writer.AddNumber(Request::kLeaveFieldNumber, int64_t{frame.leave});
  if (frame.gradient_memory) writer.AddMessage(Request::kGradientMemoryFieldNumber, *frame.gradient_memory);
  if (!frame.digests.empty()) {
    // The field is packed fixed64, so its encoding equals the layout of the numbers in memory.
    writer.AddBytes(Request::kDigestFieldNumber, {reinterpret_cast<const char*>(frame.digests.data()),
                                                  frame.digests.size() * sizeof(frame.digests[0])});
  }
  writer.AddNumber(Request::kEndOfInputFieldNumber, int64_t{frame.end_of_input});
  if (frame.ring) writer.AddMessage(Request::kRingFieldNumber, *frame.ring);
  writer.AddFixed64(Request::kTimesFieldNumber, frame.times);
  for (const StepPiece& piece : frame.gradients) writer.AddPiece(Request::kGradientFieldNumber, piece, piece.owner);
  return writer.Finish();
}

grpc::ByteBuffer EncodeStepReply(const StepReplyFrame& frame) {
  using Reply = v1::StepReply;
  MessageWriter writer;
  writer.AddNumber(Reply::kResultFieldNumber, int64_t{frame.result});
  writer.AddNumber(Reply::kValuesStepFieldNumber, frame.values_step);
  if (frame.token) writer.AddMessage(Reply::kTokenFieldNumber, *frame.token);
  writer.AddNumber(Reply::kFinishedFieldNumber, int64_t{frame.finished});
  if (!frame.finish_message.empty()) writer.AddBytes(Reply::kFinishMessageFieldNumber, frame.finish_message);
  writer.AddNumber(Reply::kEstimatesStepFieldNumber, frame.estimates_step);
  if (frame.values_memory) writer.AddMessage(Reply::kValuesMemoryFieldNumber, *frame.values_memory);
  if (frame.constants_memory) writer.AddMessage(Reply::kConstantsMemoryFieldNumber, *frame.constants_memory);
  if (frame.ring) writer.AddMessage(Reply::kRingFieldNumber, *frame.ring);
  if (frame.settings) writer.AddMessage(Reply::kSettingsFieldNumber, *frame.settings);
  for (const StepPiece& piece : frame.values) {
    writer.AddPiece(Reply::kValueFieldNumber, piece, frame.values_owner);
  }
  for (const StepPiece& piece : frame.estimates) {
    writer.AddPiece(Reply::kEstimateFieldNumber, piece, frame.estimates_owner);
  }
  return writer.Finish();
}

absl::Status DecodeStepRequest(const grpc::ByteBuffer& buffer, const StepFrameLimits& limits,
                               Decoded<StepFrame>* decoded) {
  Runs runs;
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
  Runs rest;
  RETURN_IF_ERROR(Split(runs, known_fields, options, &rest));
  std::string storage;
  RETURN_IF_ERROR(ParseBounded(Join(rest, &storage), static_cast<uint64_t>(limits.bytes), &small));
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
  frame.times = small.times();
  frame.digests.assign(small.digest().begin(), small.digest().end());
  frame.encoded_bytes = static_cast<int64_t>(buffer.Length());
  return absl::OkStatus();
}

absl::Status DecodeStepReply(const grpc::ByteBuffer& buffer, Decoded<StepReplyFrame>* decoded) {
  Runs runs;
  RETURN_IF_ERROR(TakeSlices(buffer, &decoded->slices, &runs));
  StepReplyFrame& frame = decoded->frame;
  v1::StepReply small;
  SplitOptions options;
  options.piece_fields.push_back({v1::StepReply::kValueFieldNumber, &frame.values});
  options.piece_fields.push_back({v1::StepReply::kEstimateFieldNumber, &frame.estimates});
  options.max_pieces = kMaxReplyPieces;
  static const uint64_t known_fields = FieldsOf(*v1::StepReply::descriptor());
  Runs rest;
  RETURN_IF_ERROR(Split(runs, known_fields, options, &rest));
  std::string storage;
  const absl::string_view bytes = Join(rest, &storage);
  if (bytes.size() > INT32_MAX || !small.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return absl::InvalidArgumentError("the message is malformed");
  frame.result = small.result();
  frame.values_step = small.values_step();
  if (small.has_token()) frame.token = small.token();
  frame.finished = small.finished();
  frame.finish_message = small.finish_message();
  frame.estimates_step = small.estimates_step();
  if (small.has_values_memory()) frame.values_memory = std::move(*small.mutable_values_memory());
  if (small.has_constants_memory()) frame.constants_memory = std::move(*small.mutable_constants_memory());
  if (small.has_ring()) frame.ring = std::move(*small.mutable_ring());
  if (small.has_settings()) frame.settings = std::move(*small.mutable_settings());
  return absl::OkStatus();
}

}  // namespace lockstep
