#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"
#include "lockstep/capi/answer.h"
#include "lockstep/capi/handle_table.h"
#include "lockstep/capi/lockstep.h"
#include "lockstep/capi/log_forwarding.h"
#include "lockstep/capi/run_text.h"
#include "lockstep/capi/tls_api.h"
#include "lockstep/cli/checkpoint/checkpoint_argument.h"
#include "lockstep/cli/report/run_status_text.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/version.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/client/read_all.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/config/run_spec.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/transport/grpc_connector.h"

namespace lockstep {
namespace {

// Variables and their dimensions in the form that the C interface uses.
struct Tensors {
  explicit Tensors(VariablesAtStep read) : content(std::move(read)) {
    for (const VariablesAtStep::Variable& variable : content.variables) {
      dtypes.emplace_back(NameOf(variable.dtype));
      shapes.emplace_back(variable.shape.dims().begin(), variable.shape.dims().end());
    }
  }
  const VariablesAtStep content;
  std::vector<std::string> dtypes;
  std::vector<std::vector<int64_t>> shapes;
};

HandleTable<Tensors>& TensorTable() {
  static auto* const tensors = new HandleTable<Tensors>("set of tensors");
  return *tensors;
}

std::vector<std::string> Strings(const char* const* texts, size_t count) {
  return std::vector<std::string>(texts, texts + count);
}

absl::Status RequireTexts(const char* const* texts, size_t count, const char* name) {
  if (count > 0) RETURN_IF_ERROR(RequirePointer(texts, name));
  for (size_t i = 0; i < count; ++i) RETURN_IF_ERROR(RequireText(texts[i], name));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ChiefClient>> Connect(const char* master, double timeout_seconds) {
  RETURN_IF_ERROR(RequireText(master, "master"));
  InitializeLibrary();
  ASSIGN_OR_RETURN(const MasterAddress address, ParseMasterAddress(master));
  if (address.in_process()) return absl::InvalidArgumentError("master is empty; it takes the chief's address");
  if (!(timeout_seconds > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("timeout_seconds is ", timeout_seconds, ", must be above 0"));
  }
  GrpcClientOptions options;
  options.call_timeout = options.connect_timeout = absl::Seconds(timeout_seconds);
  ASSIGN_OR_RETURN(options.credentials, LibraryCredentials());
  return GrpcConnector(FileSystem::Real(), options).Connect(address);
}

absl::StatusOr<std::string> NewestCheckpoint(const char* path) {
  RETURN_IF_ERROR(RequireText(path, "path"));
  InitializeLibrary();
  std::ostringstream damaged;
  auto found = FindCheckpoint(FileSystem::Real(), path, damaged);
  if (absl::IsInvalidArgument(found.status())) return absl::NotFoundError(found.status().message());
  return found;
}

// Returns the step in the name of a run's checkpoint, or -1 if there is none.
int64_t StepOf(const std::string& prefix) {
  int64_t step = -1;
  const size_t dash = prefix.rfind('-');
  return dash != std::string::npos && absl::SimpleAtoi(prefix.substr(dash + 1), &step) && step >= 0 ? step : -1;
}

absl::StatusOr<VariablesAtStep> ReadTensors(const std::string& prefix) {
  ASSIGN_OR_RETURN(const auto reader, OpenTensors(FileSystem::Real(), prefix));
  VariablesAtStep read;
  read.step = StepOf(prefix);
  for (const std::string& name : reader->names()) {
    auto value = reader->Read(name);
    // Skips tensors whose elements have no fixed size, which an array cannot hold.
    if (absl::IsUnimplemented(value.status())) continue;
    RETURN_IF_ERROR(value.status());
    read.variables.push_back({name, value->dtype(), value->shape(), *std::move(value)});
  }
  return read;
}

std::string JsonOf(const config::v1::RunSpec& run) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  // Fails only for an Any message of unknown type, and there is none here.
  (void)google::protobuf::util::MessageToJsonString(run, &json, options);
  return json;
}

}  // namespace
}  // namespace lockstep

using lockstep::Answer;
using lockstep::Keep;
using lockstep::RequirePointer;
using lockstep::RequireSize;
using lockstep::Tensors;
using lockstep::TensorTable;

int lockstep_abi_version(void) { return LOCKSTEP_ABI_VERSION; }

const char* lockstep_version(void) {
  static const auto* const version = new std::string(lockstep::VersionText(lockstep::ThisBuild()));
  return version->c_str();
}

const char* lockstep_error(void) { return lockstep::LastError(); }

int lockstep_set_log(lockstep_log_function function, void* context) {
  return Answer([&]() -> absl::Status {
    lockstep::ForwardLog(function, context);
    return absl::OkStatus();
  });
}

int lockstep_parse_run(const char* text, const char* path, const char* const* overrides, size_t override_count,
                       const char** canonical, const char** json) {
  return Answer([&]() -> absl::Status {
    if ((text == nullptr) == (path == nullptr)) {
      return absl::InvalidArgumentError("exactly one of text and path must be given");
    }
    if (text != nullptr) RETURN_IF_ERROR(lockstep::RequireText(text, "text"));
    if (path != nullptr) RETURN_IF_ERROR(lockstep::RequireText(path, "path"));
    RETURN_IF_ERROR(lockstep::RequireTexts(overrides, override_count, "overrides"));
    const std::vector<std::string> changes = lockstep::Strings(overrides, override_count);
    ASSIGN_OR_RETURN(const lockstep::config::v1::RunSpec run,
                     text != nullptr ? lockstep::ParseRunText(text, changes)
                                     : lockstep::LoadRunSpec(lockstep::FileSystem::Real(), path, changes));
    if (canonical != nullptr) *canonical = Keep(lockstep::PrintTextProto(run));
    if (json != nullptr) *json = Keep(lockstep::JsonOf(run));
    return absl::OkStatus();
  });
}

int lockstep_read(const char* master, const char* const* names, size_t name_count, double timeout_seconds,
                  lockstep_id* tensors) {
  return Answer([&]() -> absl::Status {
    RETURN_IF_ERROR(lockstep::RequireTexts(names, name_count, "names"));
    RETURN_IF_ERROR(RequirePointer(tensors, "tensors"));
    ASSIGN_OR_RETURN(const auto client, lockstep::Connect(master, timeout_seconds));
    lockstep::ReadAllOptions options;
    options.names = lockstep::Strings(names, name_count);
    ASSIGN_OR_RETURN(lockstep::VariablesAtStep read, lockstep::ReadAll(client.get(), options));
    *tensors = TensorTable().Add(std::make_shared<Tensors>(std::move(read)));
    return absl::OkStatus();
  });
}

int lockstep_load(const char* path, lockstep_id* tensors) {
  return Answer([&]() -> absl::Status {
    RETURN_IF_ERROR(RequirePointer(tensors, "tensors"));
    ASSIGN_OR_RETURN(const std::string prefix, lockstep::NewestCheckpoint(path));
    ASSIGN_OR_RETURN(lockstep::VariablesAtStep read, lockstep::ReadTensors(prefix));
    *tensors = TensorTable().Add(std::make_shared<Tensors>(std::move(read)));
    return absl::OkStatus();
  });
}

int lockstep_tensors_count(lockstep_id tensors, size_t* count, int64_t* step) {
  return Answer([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto found, TensorTable().Find(tensors));
    RETURN_IF_ERROR(RequirePointer(count, "count"));
    RETURN_IF_ERROR(RequirePointer(step, "step"));
    *count = found->content.variables.size();
    *step = found->content.step;
    return absl::OkStatus();
  });
}

int lockstep_tensors_get(lockstep_id tensors, size_t index, lockstep_tensor* tensor) {
  return Answer([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto found, TensorTable().Find(tensors));
    RETURN_IF_ERROR(RequirePointer(tensor, "tensor"));
    RETURN_IF_ERROR(RequireSize(tensor->size, sizeof(lockstep_tensor), "tensor"));
    const auto& variables = found->content.variables;
    if (index >= variables.size()) {
      return absl::InvalidArgumentError(absl::StrCat("there is no tensor ", index, " of ", variables.size()));
    }
    tensor->name = variables[index].name.c_str();
    tensor->dtype = found->dtypes[index].c_str();
    tensor->shape = found->shapes[index].data();
    tensor->rank = found->shapes[index].size();
    tensor->data = variables[index].value.bytes().data();
    tensor->bytes = variables[index].value.bytes().size();
    return absl::OkStatus();
  });
}

int lockstep_tensors_free(lockstep_id tensors) {
  return Answer([&]() -> absl::Status { return TensorTable().Take(tensors).status(); });
}

int lockstep_digest(const char* path, const char** digest, const char** checkpoint) {
  return Answer([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::string prefix, lockstep::NewestCheckpoint(path));
    if (digest != nullptr) {
      ASSIGN_OR_RETURN(const auto reader, lockstep::OpenTensors(lockstep::FileSystem::Real(), prefix));
      ASSIGN_OR_RETURN(std::string text, lockstep::CheckpointDigest(*reader));
      *digest = Keep(std::move(text));
    }
    if (checkpoint != nullptr) *checkpoint = Keep(prefix);
    return absl::OkStatus();
  });
}

int lockstep_status(const char* master, double timeout_seconds, const char** json) {
  return Answer([&]() -> absl::Status {
    RETURN_IF_ERROR(RequirePointer(json, "json"));
    ASSIGN_OR_RETURN(const auto client, lockstep::Connect(master, timeout_seconds));
    ASSIGN_OR_RETURN(const lockstep::v1::RunStatus status, client->GetStatus());
    *json = Keep(lockstep::StatusJson(status));
    return absl::OkStatus();
  });
}
