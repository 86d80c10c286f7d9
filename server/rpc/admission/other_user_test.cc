// Another user's connection to a unix socket. Bazel's sandbox has only one user, so this test is local.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/server/rpc/admission/connection_listener.h"

namespace lockstep {
namespace {

constexpr uid_t kNobody = 65534;

// The result of a connection.
enum Outcome { kGreeted, kHungUp, kNotConnected, kNotTheUser };

// Makes only system calls, because it runs in the child of a fork.
Outcome ConnectAs(uid_t user, const sockaddr_un& place) {
  if (syscall(SYS_setresuid, user, user, user) != 0) return kNotTheUser;
  const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(client, reinterpret_cast<const sockaddr*>(&place), sizeof(place)) != 0) return kNotConnected;
  char byte;
  return recv(client, &byte, 1, 0) <= 0 ? kHungUp : kGreeted;
}

// Returns the outcome of a connection by another process of this user.
Outcome OutcomeFor(uid_t user) {
  const std::string path = absl::StrCat("/tmp/user-", user, "-", getpid(), ".sock");
  sockaddr_un place = {};
  place.sun_family = AF_UNIX;
  std::memcpy(place.sun_path, path.data(), path.size());
  auto listener = ConnectionListener::Listen({absl::StrCat("unix:", path)});
  EXPECT_TRUE(listener.ok()) << listener.status();
  EXPECT_EQ(chmod(path.c_str(), 0666), 0);
  // Before the listener has a thread. Until it starts, the connection waits.
  const pid_t child = fork();
  if (child == 0) _exit(ConnectAs(user, place));
  (*listener)->Start(/*bound=*/1000, [](int, int connection) {
    send(connection, "!", 1, MSG_NOSIGNAL);
    close(connection);
  });
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return static_cast<Outcome>(WEXITSTATUS(status));
}

TEST(OtherUserTest, IsHungUpOn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  EXPECT_EQ(OutcomeFor(kNobody), kHungUp);
  EXPECT_EQ(OutcomeFor(geteuid()), kGreeted);
}

}  // namespace
}  // namespace lockstep
