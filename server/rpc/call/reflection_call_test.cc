#include "lockstep/server/rpc/call/reflection_call.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"
#include "lockstep/server/rpc/testing/loopback_server.h"

namespace lockstep {
namespace {

using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kSymbol[] = "grpc.reflection.v1alpha.ServerReflectionRequest";

std::vector<std::string> Services() { return {"a.First", "b.Second"}; }

std::string QuestionAbout(const std::string& symbol) {
  ServerReflectionRequest request;
  request.set_file_containing_symbol(symbol);
  return request.SerializeAsString();
}

// The name of the first file in an answer.
std::string FileIn(const ServerReflectionResponse& response) {
  google::protobuf::FileDescriptorProto file;
  if (response.file_descriptor_response().file_descriptor_proto_size() == 0) return "none";
  file.ParseFromString(response.file_descriptor_response().file_descriptor_proto(0));
  return file.name();
}

TEST(ReflectTest, ListsTheServices) {
  ServerReflectionRequest request;
  request.set_host("somewhere");
  request.set_list_services("");
  const ServerReflectionResponse response = Reflect(request, Services());
  EXPECT_EQ(response.valid_host(), "somewhere");
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) names.push_back(service.name());
  EXPECT_THAT(names, ElementsAre("a.First", "b.Second"));
}

TEST(ReflectTest, FindsTheFileOfASymbolAndAFileByItsName) {
  ServerReflectionRequest request;
  request.set_file_containing_symbol(kSymbol);
  const std::string file = FileIn(Reflect(request, Services()));
  EXPECT_THAT(file, HasSubstr("reflection.proto"));
  request.set_file_by_filename(file);
  EXPECT_EQ(FileIn(Reflect(request, Services())), file);
}

TEST(ReflectTest, SaysWhatItDoesNotKnow) {
  ServerReflectionRequest request;
  request.set_file_containing_symbol("no.Such");
  const ServerReflectionResponse unknown = Reflect(request, Services());
  EXPECT_EQ(unknown.error_response().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(unknown.error_response().error_message(), "nothing is named no.Such");
  request.clear_file_containing_symbol();
  EXPECT_EQ(Reflect(request, Services()).error_response().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

Visitors::Options AtMost(size_t most) {
  Visitors::Options options;
  options.most = options.most_young = most;
  return options;
}

class ReflectionCallTest : public ::testing::Test {
 protected:
  const std::vector<std::string> services_ = Services();
  Visitors visitors_{AtMost(8)};
  LoopbackServer server_{{{ReflectionCall::Method(), [this](std::unique_ptr<IncomingCall> call) {
                             ReflectionCall::Start(std::move(call), &services_, &visitors_);
                           }}}};
};

TEST_F(ReflectionCallTest, AnswersQuestionsUntilThereAreNoMore) {
  LoopbackStream stream(server_.channel(), ReflectionCall::Method());
  for (int i = 0; i < 3; ++i) {
    stream.Write(QuestionAbout(kSymbol));
    std::string bytes;
    ASSERT_TRUE(stream.Read(&bytes));
    ServerReflectionResponse response;
    ASSERT_TRUE(response.ParseFromString(bytes));
    EXPECT_THAT(FileIn(response), HasSubstr("reflection.proto"));
  }
  stream.WritesDone();
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(ReflectionCallTest, RefusesALongQuestion) {
  LoopbackStream stream(server_.channel(), ReflectionCall::Method());
  stream.Write(QuestionAbout(std::string(5000, 'x')));
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("at most 4096"));
}

TEST_F(ReflectionCallTest, RefusesBytesThatAreNoQuestion) {
  LoopbackStream stream(server_.channel(), ReflectionCall::Method());
  stream.Write("\xff");
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::INTERNAL);
}

}  // namespace
}  // namespace lockstep
