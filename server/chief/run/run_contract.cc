#include "lockstep/server/chief/run/run_contract.h"

#include <openssl/evp.h>

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/version.h"
#include "lockstep/common/config/text/first_difference.h"
#include "lockstep/common/contract/build_info.h"
#include "lockstep/server/chief/run/program_change.h"

namespace lockstep {
namespace {

// Maximum length, in bytes, of text from a peer in messages to users.
constexpr size_t kMaxName = 200;

std::string Sha256(const v1::ModelSpec& model) {
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

std::string Name(const std::string& text) { return absl::CHexEscape(text.substr(0, kMaxName)); }

std::string PeerOf(const v1::OpenSessionRequest& request) { return IdentityOf(request).ToString(); }

template <typename Message>
absl::optional<v1::DataDigest> DataOf(const Message& message) {
  return message.has_data() ? absl::make_optional(message.data()) : absl::nullopt;
}

std::string Text(const absl::optional<v1::DataDigest>& data) {
  if (!data) return "none";
  return absl::StrCat(data->examples(), " examples with CRC32C ", absl::Hex(data->crc32c(), absl::kZeroPad8));
}

bool Same(const absl::optional<v1::DataDigest>& a, const absl::optional<v1::DataDigest>& b) {
  if (!a || !b) return !a && !b;
  return a->examples() == b->examples() && a->crc32c() == b->crc32c();
}

bool Same(const v1::NamedDigest& a, const v1::NamedDigest& b) {
  return a.name() == b.name() && a.digest() == b.digest();
}

v1::RunRecord DeclaredBy(const v1::OpenSessionRequest& request) {
  v1::RunRecord declared;
  declared.set_declared_by(PeerOf(request));
  *declared.mutable_model_part() = request.model_part();
  if (request.has_framework()) *declared.mutable_framework() = request.framework();
  return declared;
}

v1::RunRecord DeclaredIn(const v1::RunRecord& record) {
  v1::RunRecord declared;
  declared.set_declared_by(record.declared_by());
  *declared.mutable_model_part() = record.model_part();
  if (record.has_framework()) *declared.mutable_framework() = record.framework();
  return declared;
}

// Returns the names of the results whose digests a canary holds, in order.
std::vector<std::string> ResultsOf(const v1::ModelSpec& model) {
  std::vector<std::string> results;
  for (const v1::VariableSpec& variable : model.variables()) {
    if (variable.trainable()) results.push_back(absl::StrCat("gradient of ", variable.name()));
  }
  for (const v1::UpdateOpSpec& op : model.update_ops()) results.push_back(absl::StrCat("update of ", op.variable()));
  return results;
}

absl::optional<v1::Canary> CanaryOf(const v1::OpenSessionRequest& request) {
  const std::vector<std::string> results = ResultsOf(request.model());
  if (request.canary_digest_size() != static_cast<int>(results.size())) return absl::nullopt;
  v1::Canary canary;
  canary.set_computed_by(PeerOf(request));
  for (size_t i = 0; i < results.size(); ++i) {
    v1::NamedDigest* const result = canary.add_result();
    result->set_name(results[i]);
    result->set_digest(request.canary_digest(static_cast<int>(i)));
  }
  return canary;
}

absl::optional<v1::Canary> CanaryOf(const v1::RunRecord& record) {
  const bool whole = record.canary().result_size() == static_cast<int>(ResultsOf(record.model()).size());
  return record.has_canary() && whole ? absl::make_optional(record.canary()) : absl::nullopt;
}

// Returns the name of the worker whose declarations the request is compared with.
std::string Declarer(const v1::RunRecord& declared) {
  return declared.declared_by().empty() ? "an earlier worker" : declared.declared_by();
}

std::string FrameworkText(const v1::RunRecord& declared) {
  if (!declared.has_framework()) return "Lockstep's own layers";
  const v1::Framework& framework = declared.framework();
  return absl::StrCat(Name(framework.name()), framework.version().empty() ? "" : " ", Name(framework.version()));
}

// Describes the first difference between two lists of model parts. `own` or `run` is null if its list has no more
// parts.
std::string PartDifference(const std::string& worker, const v1::NamedDigest* own, const std::string& declarer,
                           const v1::NamedDigest* run) {
  if (own == nullptr) return absl::StrCat(worker, " has no ", Name(run->name()), ", ", declarer, " has");
  if (run == nullptr) return absl::StrCat(worker, " has ", Name(own->name()), ", ", declarer, " has not");
  if (own->name() == run->name()) {
    return absl::StrCat(Name(own->name()), " of ", worker, " differs from that of ", declarer);
  }
  return absl::StrCat(worker, " has ", Name(own->name()), " where ", declarer, " has ", Name(run->name()));
}

// Returns "fc1/kernel" (256, 784).
std::string Text(const v1::VariableSpec& variable) {
  return absl::StrCat("\"", Name(variable.name()), "\" (", absl::StrJoin(variable.shape(), ", ").substr(0, kMaxName),
                      ")");
}

// Describes the first variable whose name or shape differs, or that one of the models lacks. Returns an empty string if
// there is none.
std::string VariableDifference(const std::string& worker, const v1::ModelSpec& own, const std::string& declarer,
                               const v1::ModelSpec& run) {
  const auto same = [](const v1::VariableSpec& a, const v1::VariableSpec& b) {
    return a.name() == b.name() && absl::c_equal(a.shape(), b.shape());
  };
  const auto [at_run, at_own] = std::mismatch(run.variables().begin(), run.variables().end(), own.variables().begin(),
                                              own.variables().end(), same);
  const bool run_ends = at_run == run.variables().end(), own_ends = at_own == own.variables().end();
  if (run_ends && own_ends) return "";
  return absl::StrCat("variable ", at_run - run.variables().begin() + 1, " is ", own_ends ? "none" : Text(*at_own),
                      " in ", worker, ", ", run_ends ? "none" : Text(*at_run), " in ", declarer);
}

}  // namespace

WorkerIdentity IdentityOf(const v1::OpenSessionRequest& request) {
  WorkerIdentity worker(request.worker());
  worker.host = request.host();
  worker.build = request.build();
  worker.build.DiscardUnknownFields();  // their size is not checked
  return worker;
}

absl::Status CheckVersions(const v1::OpenSessionRequest& request, const std::string& host) {
  const v1::BuildInfo& build = request.build();
  const auto refuse = [&](const char* what, int worker, int run) {
    return absl::FailedPreconditionError(absl::StrCat(
        PeerOf(request), ", Lockstep ", build.version().empty() ? "of unknown version" : Name(build.version()),
        ", has ", what, " version ", worker, "; the chief on ", host, ", Lockstep ", kVersion, ", has ", run,
        ": give both the same release"));
  };
  if (build.wire_version() != kWireVersion) return refuse("wire", build.wire_version(), kWireVersion);
  if (build.arithmetic_version() != kArithmeticVersion) {
    return refuse("arithmetic", build.arithmetic_version(), kArithmeticVersion);
  }
  if (!request.has_framework() && LayersVersion(build) != kLayersVersion) {
    return refuse("layers", LayersVersion(build), kLayersVersion);
  }
  return absl::OkStatus();
}

absl::Status CheckTransforms(const v1::OpenSessionRequest& request, const config::v1::OptimizerConfig& optimizer) {
  const auto& clip = optimizer.clip();
  const bool clips = clip.by_value() > 0 || clip.by_norm() > 0 || clip.by_global_norm() > 0;
  if (request.transforms_gradients() || (!clips && optimizer.multipliers().empty())) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the run has optimizer.", clips ? "clip" : "multipliers",
                   ", which a worker applies to the gradients of each slot; ", PeerOf(request),
                   " does not say that it does (OpenSessionRequest.transforms_gradients)",
                   clips ? ". The chief applies clip.mean_by_global_norm, for any worker" : ""));
}

RunContract::RunContract(const v1::OpenSessionRequest& first)
    : model_(first.model()),
      model_digest_(Sha256(model_)),
      declared_(DeclaredBy(first)),
      knows_parts_(true),
      knows_data_(true),
      data_(DataOf(first)),
      canary_(CanaryOf(first)) {}

RunContract::RunContract(const v1::RunRecord& record)
    : model_(record.model()),
      model_digest_(Sha256(model_)),
      declared_(DeclaredIn(record)),
      knows_parts_(record.build().version() == kVersion && !record.declared_by().empty()),
      knows_data_(record.has_data() || record.config().input().split_size() == 0),
      data_(DataOf(record)),
      canary_(CanaryOf(record)) {}

RunContract::RunContract(const RunContract& known, const v1::OpenSessionRequest& request)
    : model_(known.model_),
      model_digest_(known.model_digest_),
      declared_(known.knows_parts_ ? known.declared_ : DeclaredBy(request)),
      knows_parts_(true),
      knows_data_(true),
      data_(known.knows_data_ ? known.data_ : DataOf(request)),
      canary_(known.canary_ ? known.canary_ : CanaryOf(request)) {}

RunContract::RunContract(const RunContract& known, Forgets forgets)
    : model_(known.model_),
      model_digest_(known.model_digest_),
      declared_(forgets == Forgets::kCanary ? known.declared_ : v1::RunRecord()),
      knows_parts_(forgets == Forgets::kCanary && known.knows_parts_),
      knows_data_(known.knows_data_),
      data_(known.data_) {}

bool RunContract::Lacks(const v1::OpenSessionRequest& request) const {
  return !knows_parts_ || !knows_data_ || (!canary_ && request.canary_digest_size() > 0);
}

absl::Status RunContract::Check(const v1::OpenSessionRequest& request) const {
  RETURN_IF_ERROR(CheckModel(request));
  RETURN_IF_ERROR(CheckParts(request));
  RETURN_IF_ERROR(CheckData(request));
  return CheckCanary(request);
}

absl::Status RunContract::CheckModel(const v1::OpenSessionRequest& request) const {
  if (Sha256(request.model()) == model_digest_) return absl::OkStatus();
  const std::string difference = FirstDifference(model_, request.model());
  if (difference.empty()) return absl::OkStatus();
  const absl::string_view proceed =
      DifferInTrained(model_, request.model())
          ? ". Continue with the trained variables of before; once the run has ended well, others may be trained"
          : "";
  const std::string variable = VariableDifference(PeerOf(request), request.model(), Declarer(declared_), model_);
  return absl::FailedPreconditionError(absl::StrCat(
      "the worker's model is not the run's: ",
      variable.empty()
          ? absl::StrCat(difference, " in ", PeerOf(request), "; the run has that of ", Declarer(declared_), proceed)
          : variable));
}

absl::Status RunContract::CheckParts(const v1::OpenSessionRequest& request) const {
  if (!knows_parts_) return absl::OkStatus();
  const v1::RunRecord worker = DeclaredBy(request);
  const std::string& peer = worker.declared_by();
  const std::string framework = FirstDifference(declared_.framework(), worker.framework());
  if (declared_.has_framework() != worker.has_framework() || !framework.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the worker's framework is not the run's: ", peer, " computes with ", FrameworkText(worker), ", ",
        Declarer(declared_), " with ", FrameworkText(declared_), framework.empty() ? "" : ": ", framework));
  }
  const auto &run = declared_.model_part(), &own = worker.model_part();
  const auto same = [](const v1::NamedDigest& a, const v1::NamedDigest& b) { return Same(a, b); };
  const auto [at_run, at_own] = std::mismatch(run.begin(), run.end(), own.begin(), own.end(), same);
  if (at_run == run.end() && at_own == own.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the worker's model is not the run's: ",
                   PartDifference(peer, at_own == own.end() ? nullptr : &*at_own, Declarer(declared_),
                                  at_run == run.end() ? nullptr : &*at_run)));
}

absl::Status RunContract::CheckData(const v1::OpenSessionRequest& request) const {
  const absl::optional<v1::DataDigest> data = DataOf(request);
  if (!knows_data_ || Same(data_, data)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the worker's data are not the run's: ", PeerOf(request), " reads ",
                                                    Text(data), ", the run ", Text(data_), ", as ", Declarer(declared_),
                                                    " does; give it the same files, or use another logdir"));
}

absl::Status RunContract::CheckCanary(const v1::OpenSessionRequest& request) const {
  const int digests = request.canary_digest_size();
  if (digests == 0) return absl::OkStatus();
  const std::vector<std::string> results = ResultsOf(model_);
  if (digests != static_cast<int>(results.size())) {
    return absl::InvalidArgumentError(absl::StrCat("the canary of ", PeerOf(request), " has ", digests,
                                                   " digests; the model has ", results.size(),
                                                   " gradients and updates"));
  }
  if (!canary_) return absl::OkStatus();
  std::string first;
  int others = -1;
  for (int i = 0; i < digests; ++i) {
    if (request.canary_digest(i) == canary_->result(i).digest()) continue;
    if (++others == 0) first = results[i];
  }
  if (others < 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the worker computes other bits than the run: on the same values, the ", Name(first),
      others > 0 ? absl::StrCat(", and ", others, " more of ", digests, " results,") : "", " of ", PeerOf(request),
      " differs from that of ", canary_->computed_by(),
      "; one of the two errs: compare their programs, libraries and processors, or let a third host decide"));
}

void RunContract::FillRecord(v1::RunRecord* record) const {
  // Leaves out declarations that this version has not compared, so that the next worker makes them again.
  if (knows_parts_) record->MergeFrom(declared_);
  *record->mutable_model() = model_;
  if (data_) *record->mutable_data() = *data_;
  if (canary_) *record->mutable_canary() = *canary_;
}

}  // namespace lockstep
