#include "server/rpc/reflection_call.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"

namespace lockstep {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::FileDescriptorResponse;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

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

void ReflectionCall::Accept(Service* service, grpc::ServerCompletionQueue* queue, LivingCalls* living,
                            std::vector<std::string> services) {
  auto* const call = new ReflectionCall(service, queue, living, std::move(services));
  service->RequestServerReflectionInfo(&call->context_, &call->stream_, queue, queue, call);
}

ReflectionCall::ReflectionCall(Service* service, grpc::ServerCompletionQueue* queue, LivingCalls* living,
                               std::vector<std::string> services)
    : service_(service),
      queue_(queue),
      living_(living),
      member_(living),
      services_(std::move(services)),
      stream_(&context_) {}

void ReflectionCall::OnEvent(bool ok) {
  switch (state_) {
    case State::kAccepting:
      if (!ok) {  // the server shuts down
        delete this;
        return;
      }
      Accept(service_, queue_, living_, services_);
      break;
    case State::kReading:
      if (!ok) {  // the client has no more questions, or is gone
        state_ = State::kFinishing;
        stream_.Finish(grpc::Status::OK, this);
        return;
      }
      state_ = State::kWriting;
      stream_.Write(Reflect(request_, services_), this);
      return;
    case State::kWriting:
      break;
    case State::kFinishing:
      delete this;
      return;
  }
  state_ = State::kReading;
  stream_.Read(&request_, this);
}

}  // namespace lockstep
