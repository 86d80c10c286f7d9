#include "lockstep/server/rpc/call/reflection_call.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "grpcpp/support/slice.h"

namespace lockstep {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::FileDescriptorResponse;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

constexpr size_t kMaxQuestionBytes = 4096;

// The file and everything that it imports, once each.
void AddFile(const FileDescriptor& file, std::set<std::string>* added, FileDescriptorResponse* response) {
  if (!added->insert(file.name()).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response->add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i), added, response);
}

void SetError(grpc::StatusCode code, std::string message, ServerReflectionResponse* response) {
  response->mutable_error_response()->set_error_code(code);
  response->mutable_error_response()->set_error_message(std::move(message));
}

void SetFile(const FileDescriptor* file, const std::string& name, ServerReflectionResponse* response) {
  if (file == nullptr) {
    SetError(grpc::StatusCode::NOT_FOUND, absl::StrCat("nothing is named ", name), response);
    return;
  }
  std::set<std::string> added;
  AddFile(*file, &added, response->mutable_file_descriptor_response());
}

}  // namespace

ServerReflectionResponse Reflect(const ServerReflectionRequest& request, const std::vector<std::string>& services) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const std::string& name : services) response.mutable_list_services_response()->add_service()->set_name(name);
      break;
    case ServerReflectionRequest::kFileByFilename:
      SetFile(pool.FindFileByName(request.file_by_filename()), request.file_by_filename(), &response);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      SetFile(pool.FindFileContainingSymbol(request.file_containing_symbol()), request.file_containing_symbol(),
              &response);
      break;
    default:
      SetError(grpc::StatusCode::UNIMPLEMENTED, "there are no extensions here", &response);
  }
  return response;
}

std::string ReflectionCall::Method() {
  return absl::StrCat("/", grpc::reflection::v1alpha::ServerReflection::service_full_name(), "/ServerReflectionInfo");
}

void ReflectionCall::Start(std::unique_ptr<IncomingCall> incoming, const std::vector<std::string>* services,
                           Visitors* visitors) {
  std::shared_ptr<ReflectionCall> call(new ReflectionCall(std::move(incoming), services, visitors));
  call->self_ = call;
  visitors->Enter(call);
  call->Read();
}

void ReflectionCall::OnEvent(bool ok) {
  const std::shared_ptr<ReflectionCall> self = self_;
  switch (state_) {
    case State::kReading:
      if (ok) {
        Answer();
      } else {  // the client has no more questions, or is gone
        Finish(grpc::Status::OK);
      }
      return;
    case State::kWriting:
      Read();
      return;
    case State::kFinishing:
      visitors_->Leave(this);
      self_.reset();
  }
}

void ReflectionCall::Read() {
  state_ = State::kReading;
  call_->stream.Read(&message_, this);
}

void ReflectionCall::Answer() {
  if (message_.Length() > kMaxQuestionBytes) {
    Finish(grpc::Status(
        grpc::StatusCode::RESOURCE_EXHAUSTED,
        absl::StrCat("a question of ", message_.Length(), " bytes; at most ", kMaxQuestionBytes, " are taken")));
    return;
  }
  grpc::Slice question;
  ServerReflectionRequest request;
  if (!message_.DumpToSingleSlice(&question).ok() ||
      !request.ParseFromArray(question.begin(), static_cast<int>(question.size()))) {
    Finish(grpc::Status(grpc::StatusCode::INTERNAL, "unable to parse request"));
    return;
  }
  message_.Clear();
  state_ = State::kWriting;
  const grpc::Slice answer(Reflect(request, services_).SerializeAsString());
  call_->stream.Write(grpc::ByteBuffer(&answer, 1), this);
}

void ReflectionCall::Finish(const grpc::Status& status) {
  state_ = State::kFinishing;
  message_.Clear();
  call_->stream.Finish(status, this);
}

}  // namespace lockstep
