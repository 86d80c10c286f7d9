#include "lockstep/cli/launcher/run_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;
// A child's exit codes, which are larger than any errno.
constexpr int kConnected = 200;
constexpr int kNoOtherUser = 201;

// Returns the address with this name. It is abstract if the name begins with a zero byte.
std::pair<sockaddr_un, socklen_t> Address(const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())};
}

class Listener {
 public:
  explicit Listener(const std::string& name) : fd_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    const auto address = Address(name);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address.first), address.second), 0) << std::strerror(errno);
    EXPECT_EQ(listen(fd_, 8), 0);
  }
  ~Listener() { close(fd_); }

 private:
  const int fd_;
};

// Connects from a process of the given user. Returns kConnected or an errno.
int ConnectAs(uid_t user, const std::string& name) {
  const pid_t child = fork();
  if (child == 0) {
    if (user != geteuid() && setresuid(user, user, user) != 0) _exit(kNoOtherUser);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const auto address = Address(name);
    const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&address.first), address.second) == 0;
    _exit(connected ? kConnected : errno);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

class RunSocketTest : public ::testing::Test {
 protected:
  // Does not use TEST_TMPDIR, whose path may be too long.
  RunSocketTest() {
    char place[] = "/tmp/run_socket_test.XXXXXX";
    EXPECT_NE(mkdtemp(place), nullptr);
    place_ = place;
    // Any user may enter this directory.
    EXPECT_EQ(chmod(place, 0755), 0);
  }
  ~RunSocketTest() override { EXPECT_EQ(std::system(absl::StrCat("rm -r ", place_).c_str()), 0); }

  std::string Directory() const { return absl::StrCat(place_, "/lockstep-", geteuid()); }
  std::string WhyNot(const std::string& place) {
    const auto socket = RunSocket::Create({place}, place_);
    EXPECT_TRUE(absl::IsFailedPrecondition(socket.status())) << socket.status();
    return std::string(socket.status().message());
  }

  std::string place_;
};

TEST_F(RunSocketTest, AdmitsTheUsersOwnProcessesOnly) {
  const auto socket = RunSocket::Create({place_}, place_);
  ASSERT_TRUE(socket.ok()) << socket.status();
  const Listener listener((*socket)->path());
  // The most permissive mode that a umask can leave.
  ASSERT_EQ(chmod((*socket)->path().c_str(), 0777), 0);
  EXPECT_EQ(ConnectAs(geteuid(), (*socket)->path()), kConnected);
  const int refused = ConnectAs(kNobody, (*socket)->path());
  if (refused == kNoOtherUser) GTEST_SKIP() << "this user cannot become another";
  EXPECT_EQ(refused, EACCES);
}

TEST_F(RunSocketTest, AnAbstractSocketWouldAdmitEverybody) {
  const std::string name = std::string("\0", 1) + place_;
  const Listener listener(name);
  const int admitted = ConnectAs(kNobody, name);
  if (admitted == kNoOtherUser) GTEST_SKIP() << "this user cannot become another";
  EXPECT_EQ(admitted, kConnected);
}

TEST_F(RunSocketTest, IsRemovedAtTheEndAndNamedByTheLogdir) {
  std::string path;
  {
    const auto socket = RunSocket::Create({place_}, place_);
    ASSERT_TRUE(socket.ok()) << socket.status();
    path = (*socket)->path();
    EXPECT_EQ((*socket)->address(), "unix:" + path);
    EXPECT_TRUE(absl::StartsWith(path, Directory() + "/")) << path;
    const Listener listener(path);
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
    const auto other = RunSocket::Create({place_}, "/");
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_NE((*other)->path(), path);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  const auto again = RunSocket::Create({place_}, place_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->path(), path);
}

TEST_F(RunSocketTest, AvoidsPlacesThatOthersMayEnter) {
  ASSERT_EQ(mkdir(Directory().c_str(), 0755), 0);
  EXPECT_THAT(WhyNot(place_), HasSubstr("others may enter it"));
  ASSERT_EQ(rmdir(Directory().c_str()), 0);
  ASSERT_EQ(symlink("/", Directory().c_str()), 0);
  EXPECT_THAT(WhyNot(place_), HasSubstr("it is not a directory"));
  ASSERT_EQ(unlink(Directory().c_str()), 0);
  ASSERT_EQ(chmod(place_.c_str(), 0777), 0);
  EXPECT_THAT(WhyNot(place_), HasSubstr("others may write to it"));
  ASSERT_EQ(chmod(place_.c_str(), 01777), 0);
  EXPECT_TRUE(RunSocket::Create({place_}, place_).ok()) << "as /tmp";
  EXPECT_THAT(WhyNot(place_ + "/nothing"), HasSubstr("No such file"));
  EXPECT_THAT(WhyNot("relative"), HasSubstr("relative"));
  EXPECT_THAT(WhyNot(place_ + std::string(100, 'x')), HasSubstr("too long"));
}

TEST_F(RunSocketTest, TheNextPlaceIsTaken) {
  const auto socket = RunSocket::Create({place_ + "/nothing", place_}, place_);
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_TRUE(absl::StartsWith((*socket)->path(), Directory()));
}

}  // namespace
}  // namespace lockstep
