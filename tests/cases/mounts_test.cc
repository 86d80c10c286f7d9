// Tests data and an index on a read-only mount, and on a mount that is missing. Runs in its own mount namespace.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/common/checkpoint/formats/npy.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/io/testing/bytes_of.h"
#include "lockstep/worker/data/formats/open_dataset.h"
#include "lockstep/worker/data/formats/testing/idx_encoder.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr int kNotPermitted = 77;

bool WriteTo(const char* path, const std::string& text) {
  FILE* const file = fopen(path, "w");
  if (file == nullptr) return false;
  const bool written = fputs(text.c_str(), file) >= 0;
  return fclose(file) == 0 && written;
}

// Moves this process into a new mount namespace, in which it may mount file systems because it is root in a new user
// namespace.
bool EnterNamespace() {
  const uid_t user = getuid();
  const gid_t group = getgid();
  return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && WriteTo("/proc/self/setgroups", "deny") &&
         WriteTo("/proc/self/uid_map", absl::StrCat("0 ", user, " 1")) &&
         WriteTo("/proc/self/gid_map", absl::StrCat("0 ", group, " 1")) &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

class MountsTest : public ::testing::Test {
 protected:
  MountsTest() { EXPECT_EQ(fs_->CreateDirectory(mount_), absl::OkStatus()); }

  // Runs `body` in a child process in which a new file system is mounted at mount_.
  void RunWithMount(const std::function<void()>& body) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      if (!EnterNamespace() || mount("tmpfs", mount_.c_str(), "tmpfs", 0, nullptr) != 0) _exit(kNotPermitted);
      body();
      fflush(stdout);
      _exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    if (WEXITSTATUS(status) == kNotPermitted && getenv("CI") == nullptr) {
      GTEST_SKIP() << "this system gives no user a mount namespace";
    }
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  void Write(const std::string& path, const std::string& contents) {
    ASSERT_EQ(WriteFileAtomically(fs_, path, contents), absl::OkStatus());
  }
  void WriteFiles() {
    Write(Data("a-1.csv"), "x,y\n1,0\n2,1\n");
    Write(Data("a-2.csv.gz"), Gzip("x,y\n3,0\n"));
    for (const int i : {1, 2}) {
      Write(Data(absl::StrCat("x-", i, ".npy")),
            EncodeNpyHeader(v1::DT_FLOAT, {2, 1}).value() + BytesOf<float>({1, static_cast<float>(i)}));
      Write(Data(absl::StrCat("y-", i, ".npy")), EncodeNpyHeader(v1::DT_INT32, {2}).value() + BytesOf<int32_t>({0, 1}));
    }
  }
  // Returns the path of a configuration that trains on `file`.
  std::string WriteConfig(const std::string& name, const std::string& file) {
    const std::string path = JoinPath(directory_, name);
    Write(path, absl::StrCat(R"(
      input {
        split { name: "train" csv { file: ")",
                             file, R"(" column { name: "x" } column { name: "y" type: LABEL } } }
        batch_size: 1
      }
      model { layer { name: "logits" dense { units: 2 } } loss { softmax_cross_entropy {} } }
      optimizer { sgd {} learning_rate { initial: 0.1 } }
      training { steps: 3 replicas_to_aggregate: 1 })"));
    return path;
  }
  std::string Data(const std::string& name) const { return JoinPath(mount_, name); }

  struct Opened {
    int64_t examples = 0;
    uint32_t crc32c = 0;
    // The number of files that were read to compute their index or checksums.
    int read = 0;
  };
  Opened Open(const char* source, const std::string& index) {
    Opened opened;
    DatasetOptions options;
    options.base_directory = mount_;
    options.index_directory = index;
    options.held_bytes = 0;
    options.progress = [&opened](const IndexProgress&) { ++opened.read; };
    config::v1::InputConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(source, &config));
    const auto dataset = OpenDataset(config, "train", 1, options);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    if (!dataset.ok()) return opened;
    opened.examples = (*dataset)->size();
    opened.crc32c = (*dataset)->digest().crc32c();
    return opened;
  }
  // Appends the command's output to out_. Returns the exit code.
  int Call(int (*command)(FileSystem*, const std::vector<std::string>&, std::ostream&, std::ostream&),
           const std::vector<std::string>& words) {
    return command(fs_, words, out_, out_);
  }

  static constexpr const char* kSources[] = {
      R"(split { name: "train" csv { file: "a-*.csv*" column { name: "x" } column { name: "y" type: LABEL } } })",
      R"(split { name: "train" npy { features: "x-*.npy" labels: "y-*.npy" } })"};

  FileSystem* const fs_ = FileSystem::Real();
  const std::string directory_ =
      absl::StrCat(getenv("TEST_TMPDIR"), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::string mount_ = JoinPath(directory_, "data");
  std::ostringstream out_;
};

TEST_F(MountsTest, AnIndexOnAReadOnlyMountIsUsed) {
  RunWithMount([this] {
    WriteFiles();
    std::vector<Opened> first;
    for (const char* const source : kSources) first.push_back(Open(source, Data("index")));
    ASSERT_EQ(mount(nullptr, mount_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
    ASSERT_FALSE(WriteFileAtomically(fs_, Data("more"), "").ok());
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(first[i].read, 2);
      const Opened again = Open(kSources[i], Data("index"));
      EXPECT_EQ(again.read, 0) << "the index is there";
      EXPECT_EQ(again.examples, first[i].examples);
      EXPECT_EQ(again.crc32c, first[i].crc32c);
      testing::internal::CaptureStderr();
      const Opened without = Open(kSources[i], Data("none"));
      EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(" not kept: "));
      EXPECT_GE(without.read, 2);
      EXPECT_EQ(without.crc32c, first[i].crc32c);
    }
  });
}

TEST_F(MountsTest, TheErrorNamesAMissingMount) {
  RunWithMount([this] {
    WriteFiles();
    const std::vector<std::string> configs = {WriteConfig("pattern.textproto", Data("a-*.csv*")),
                                              WriteConfig("name.textproto", Data("a-1.csv"))};
    ASSERT_EQ(mount(nullptr, mount_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
    for (const std::string& config : configs) {
      EXPECT_EQ(Call(CheckCommand, {config}), 0) << out_.str();
      EXPECT_EQ(Call(LocalCommand, {config, absl::StrCat("--logdir=", config, ".read")}), 0) << out_.str();
    }
    ASSERT_EQ(umount(mount_.c_str()), 0);
    const std::string why = absl::StrCat(": ", mount_, " is empty; is a volume to be mounted there?");
    for (const std::string& config : configs) {
      out_.str("");
      EXPECT_EQ(Call(CheckCommand, {config}), 2);
      EXPECT_THAT(out_.str(), HasSubstr(why));
      out_.str("");
      EXPECT_EQ(Call(LocalCommand, {config, absl::StrCat("--logdir=", config, ".missing")}), 2);
      EXPECT_THAT(out_.str(), HasSubstr(why));
    }
  });
}

}  // namespace
}  // namespace lockstep
