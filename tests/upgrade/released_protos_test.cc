#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"

// The messages and services of earlier releases, in proto/released, must keep their meaning, because peers and logdirs
// of those releases use them. A change may add things, but it must not remove, rename or renumber anything, or change a
// type.

namespace lockstep {
namespace {

using google::protobuf::DescriptorProto;
using google::protobuf::EnumDescriptorProto;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::FileDescriptorProto;
using google::protobuf::FileDescriptorSet;
using google::protobuf::ServiceDescriptorProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kReleased[] = "proto/released";
constexpr char kCurrent[] = "tests/upgrade/current.binpb";

// Parses a file. On failure, fails the test and returns an empty set.
FileDescriptorSet ReadSet(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  FileDescriptorSet set;
  EXPECT_TRUE(set.ParseFromString(bytes.str()) && set.file_size() > 0) << path;
  return set;
}

// Finds the element in `all` that has the same name as `wanted`. Returns null if there is none.
template <typename Elements, typename Element>
const Element* FindByName(const Elements& all, const Element& wanted) {
  for (const Element& each : all) {
    if (each.name() == wanted.name()) return &each;
  }
  return nullptr;
}

template <typename Elements, typename Element>
const Element* FindByNumber(const Elements& all, const Element& wanted) {
  for (const Element& each : all) {
    if (each.number() == wanted.number()) return &each;
  }
  return nullptr;
}

// Returns everything about a field that a peer or a text file can observe. Comments and the index of the field's oneof
// are excluded.
std::string MeaningOf(const FieldDescriptorProto& field, const DescriptorProto& message) {
  FieldDescriptorProto copy = field;
  if (copy.has_oneof_index()) {
    copy.set_default_value(absl::StrCat("in oneof ", message.oneof_decl(copy.oneof_index()).name()));
    copy.clear_oneof_index();
  }
  copy.mutable_options()->clear_deprecated();
  return copy.SerializeAsString();
}

// A comparison of released protos with those in the tree. Collects the errors.
class Comparison {
 public:
  static std::vector<std::string> Of(const FileDescriptorSet& released, const FileDescriptorSet& current) {
    Comparison comparison;
    for (const FileDescriptorProto& file : released.file())
      comparison.CompareFile(file, FindByName(current.file(), file));
    return comparison.errors_;
  }

 private:
  void CompareFile(const FileDescriptorProto& released, const FileDescriptorProto* current) {
    if (current == nullptr) return Report(released.name(), "is gone");
    if (current->package() != released.package()) return Report(released.name(), "has another package");
    if (current->syntax() != released.syntax()) Report(released.name(), "has another syntax");
    const std::string scope = absl::StrCat(released.package(), ".");
    for (const auto& each : released.message_type())
      CompareMessage(scope, each, FindByName(current->message_type(), each));
    for (const auto& each : released.enum_type()) CompareEnum(scope, each, FindByName(current->enum_type(), each));
    for (const auto& each : released.service()) CompareService(scope, each, FindByName(current->service(), each));
  }

  void CompareMessage(const std::string& scope, const DescriptorProto& released, const DescriptorProto* current) {
    const std::string name = scope + released.name();
    if (current == nullptr) return Report(name, "is gone");
    for (const FieldDescriptorProto& field : released.field()) {
      const FieldDescriptorProto* now = FindByNumber(current->field(), field);
      if (now == nullptr) {
        Report(absl::StrCat(name, ".", field.name()), absl::StrCat("with the number ", field.number(), " is gone"));
      } else if (now->name() != field.name()) {
        Report(absl::StrCat(name, ".", field.name()), absl::StrCat("is now ", now->name()));
      } else if (MeaningOf(*now, *current) != MeaningOf(field, released)) {
        Report(absl::StrCat(name, ".", field.name()), "has another type, label, default or oneof");
      }
    }
    for (const FieldDescriptorProto& field : current->field()) {
      if (field.label() == FieldDescriptorProto::LABEL_REQUIRED && FindByNumber(released.field(), field) == nullptr) {
        Report(absl::StrCat(name, ".", field.name()), "is required, but earlier releases lack it");
      }
    }
    const std::string inner = name + ".";
    for (const auto& each : released.nested_type())
      CompareMessage(inner, each, FindByName(current->nested_type(), each));
    for (const auto& each : released.enum_type()) CompareEnum(inner, each, FindByName(current->enum_type(), each));
  }

  void CompareEnum(const std::string& scope, const EnumDescriptorProto& released, const EnumDescriptorProto* current) {
    const std::string name = scope + released.name();
    if (current == nullptr) return Report(name, "is gone");
    for (const auto& value : released.value()) {
      const auto* now = FindByName(current->value(), value);
      if (now == nullptr) {
        Report(absl::StrCat(name, ".", value.name()), "is gone");
      } else if (now->number() != value.number()) {
        Report(absl::StrCat(name, ".", value.name()), absl::StrCat("is now ", now->number()));
      }
    }
  }

  void CompareService(const std::string& scope, const ServiceDescriptorProto& released,
                      const ServiceDescriptorProto* current) {
    const std::string name = scope + released.name();
    if (current == nullptr) return Report(name, "is gone");
    for (const auto& method : released.method()) {
      const auto* now = FindByName(current->method(), method);
      if (now == nullptr) {
        Report(absl::StrCat(name, "/", method.name()), "is gone");
      } else if (now->SerializeAsString() != method.SerializeAsString()) {
        Report(absl::StrCat(name, "/", method.name()), "has other messages, or streams otherwise");
      }
    }
  }

  void Report(const std::string& name, const std::string& what) { errors_.push_back(absl::StrCat(name, " ", what)); }

  std::vector<std::string> errors_;
};

TEST(ReleasedProtosTest, TheTreeIsCompatibleWithEachRelease) {
  const FileDescriptorSet current = ReadSet(kCurrent);
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(kReleased)) {
    if (file.path().extension() != ".binpb") continue;
    EXPECT_THAT(Comparison::Of(ReadSet(file.path().string()), current), IsEmpty()) << "against " << file.path();
    ++count;
  }
  EXPECT_GT(count, 0);
}

// Returns a small release with a single file.
FileDescriptorSet SmallRelease() {
  FileDescriptorSet set;
  FileDescriptorProto* file = set.add_file();
  file->set_name("a.proto");
  file->set_package("p");
  DescriptorProto* message = file->add_message_type();
  message->set_name("M");
  message->add_oneof_decl()->set_name("kind");
  for (const auto& [name, number] : std::map<std::string, int>{{"one", 1}, {"two", 2}}) {
    FieldDescriptorProto* field = message->add_field();
    field->set_name(name);
    field->set_number(number);
    field->set_type(FieldDescriptorProto::TYPE_INT64);
    field->set_label(FieldDescriptorProto::LABEL_OPTIONAL);
  }
  EnumDescriptorProto* kind = message->add_enum_type();
  kind->set_name("E");
  auto* value = kind->add_value();
  value->set_name("ZERO");
  value->set_number(0);
  ServiceDescriptorProto* service = file->add_service();
  service->set_name("S");
  auto* method = service->add_method();
  method->set_name("Call");
  method->set_input_type(".p.M");
  return set;
}

// Returns the errors after a change to the small release.
std::vector<std::string> ErrorsAfter(const std::function<void(FileDescriptorProto*, DescriptorProto*)>& change) {
  FileDescriptorSet current = SmallRelease();
  change(current.mutable_file(0), current.mutable_file(0)->mutable_message_type(0));
  return Comparison::Of(SmallRelease(), current);
}

TEST(ReleasedProtosTest, AcceptsWhatIsAdded) {
  EXPECT_THAT(ErrorsAfter([](FileDescriptorProto* file, DescriptorProto* message) {
                FieldDescriptorProto* field = message->add_field();
                field->set_name("three");
                field->set_number(3);
                message->mutable_enum_type(0)->add_value()->set_name("FOUR");
                file->add_message_type()->set_name("N");
                file->mutable_service(0)->add_method()->set_name("Other");
                message->mutable_field(0)->mutable_options()->set_deprecated(true);
              }),
              IsEmpty());
}

TEST(ReleasedProtosTest, RefusesEachIncompatibleChange) {
  using F = FileDescriptorProto*;
  using M = DescriptorProto*;
  EXPECT_THAT(ErrorsAfter([](F file, M) { file->set_name("b.proto"); }), ElementsAre("a.proto is gone"));
  EXPECT_THAT(ErrorsAfter([](F file, M) { file->set_package("q"); }), ElementsAre("a.proto has another package"));
  EXPECT_THAT(ErrorsAfter([](F, M message) { message->set_name("N"); }), ElementsAre("p.M is gone"));
  EXPECT_THAT(ErrorsAfter([](F, M message) { message->mutable_field()->RemoveLast(); }),
              ElementsAre("p.M.two with the number 2 is gone"));
  EXPECT_THAT(ErrorsAfter([](F, M message) { message->mutable_field(1)->set_name("other"); }),
              ElementsAre("p.M.two is now other"));
  EXPECT_THAT(ErrorsAfter([](F, M message) { message->mutable_field(1)->set_number(3); }),
              ElementsAre("p.M.two with the number 2 is gone"));
  EXPECT_THAT(ErrorsAfter([](F, M message) { message->mutable_field(1)->set_type(FieldDescriptorProto::TYPE_SINT64); }),
              ElementsAre(HasSubstr("p.M.two has another type")));
  EXPECT_THAT(
      ErrorsAfter([](F, M message) { message->mutable_field(1)->set_label(FieldDescriptorProto::LABEL_REPEATED); }),
      ElementsAre(HasSubstr("p.M.two has another type")));
  EXPECT_THAT(ErrorsAfter([](F, M message) { message->mutable_field(1)->set_oneof_index(0); }),
              ElementsAre(HasSubstr("p.M.two has another type")));
  EXPECT_THAT(ErrorsAfter([](F, M message) {
                FieldDescriptorProto* field = message->add_field();
                field->set_name("three");
                field->set_number(3);
                field->set_label(FieldDescriptorProto::LABEL_REQUIRED);
              }),
              ElementsAre("p.M.three is required, but earlier releases lack it"));
  EXPECT_THAT(ErrorsAfter([](F, M message) { message->mutable_enum_type(0)->mutable_value(0)->set_name("NONE"); }),
              ElementsAre("p.M.E.ZERO is gone"));
  EXPECT_THAT(ErrorsAfter([](F, M message) { message->mutable_enum_type(0)->mutable_value(0)->set_number(1); }),
              ElementsAre("p.M.E.ZERO is now 1"));
  EXPECT_THAT(ErrorsAfter([](F file, M) { file->mutable_service(0)->mutable_method()->Clear(); }),
              ElementsAre("p.S/Call is gone"));
  EXPECT_THAT(ErrorsAfter([](F file, M) { file->mutable_service(0)->mutable_method(0)->set_server_streaming(true); }),
              ElementsAre(HasSubstr("p.S/Call has other messages")));
}

}  // namespace
}  // namespace lockstep
