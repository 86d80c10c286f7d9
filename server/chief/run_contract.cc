#include "server/chief/run_contract.h"

#include <openssl/evp.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/message_differencer.h"

namespace lockstep {
namespace {

// A peer's strings stand in the difference.
constexpr size_t kMaxDifference = 1000;

std::string Sha256(const ModelSpec& model) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    CHECK(model.SerializeToCodedStream(&coded));
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  CHECK_EQ(EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr), 1);
  return std::string(reinterpret_cast<const char*>(digest), size);
}

template <typename Message>
absl::optional<DataDigest> DataOf(const Message& message) {
  return message.has_data() ? absl::make_optional(message.data()) : absl::nullopt;
}

std::string Text(const absl::optional<DataDigest>& data) {
  if (!data) return "none";
  return absl::StrCat(data->examples(), " examples with CRC32C ", absl::Hex(data->crc32c(), absl::kZeroPad8));
}

bool Same(const absl::optional<DataDigest>& a, const absl::optional<DataDigest>& b) {
  if (!a || !b) return !a && !b;
  return a->examples() == b->examples() && a->crc32c() == b->crc32c();
}

absl::Status CheckSameModel(const ModelSpec& run, const ModelSpec& worker, const std::string& name) {
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  if (differencer.Compare(run, worker)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the worker's model is not the run's: ", difference.substr(0, std::min(difference.find('\n'), kMaxDifference)),
      " in ", name));
}

}  // namespace

RunContract::RunContract(const OpenSessionRequest& first)
    : model_(first.model()), model_digest_(Sha256(model_)), knows_data_(true), data_(DataOf(first)) {}

RunContract::RunContract(const RunRecord& record)
    : model_(record.model()),
      model_digest_(Sha256(model_)),
      knows_data_(record.has_data() || record.config().input().split_size() == 0),
      data_(DataOf(record)) {}

absl::Status RunContract::Check(const OpenSessionRequest& request) const {
  const std::string worker = absl::CHexEscape(request.worker());
  if (Sha256(request.model()) != model_digest_) RETURN_IF_ERROR(CheckSameModel(model_, request.model(), worker));
  const absl::optional<DataDigest> data = DataOf(request);
  if (!knows_data_ || Same(data_, data)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the worker's data are not the run's: ", worker, " reads ",
                                                    Text(data), ", the run ", Text(data_),
                                                    "; give it the same files, or use another logdir"));
}

void RunContract::FillRecord(RunRecord* record) const {
  *record->mutable_model() = model_;
  if (data_) *record->mutable_data() = *data_;
}

}  // namespace lockstep
