#include "lockstep/server/rpc/admission/connection_listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/transport/connection/keepalive.h"

namespace lockstep {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;

int ConnectTo(const sockaddr* place, socklen_t length) {
  const int client = socket(place->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(client, place, length), 0) << std::strerror(errno);
  return client;
}

int Connect(int port) {
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<uint16_t>(port));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ConnectTo(reinterpret_cast<const sockaddr*>(&place), sizeof(place));
}

sockaddr_un PlaceOf(const std::string& path) {
  sockaddr_un place = {};
  place.sun_family = AF_UNIX;
  std::memcpy(place.sun_path, path.data(), path.size());
  return place;
}

int Connect(const std::string& path) {
  const sockaddr_un place = PlaceOf(path);
  return ConnectTo(reinterpret_cast<const sockaddr*>(&place), sizeof(place));
}

// Returns a socket that listens but accepts no connections. Closing it leaves the socket file behind, as a killed
// server does.
int ListenIdly(const std::string& path) {
  const sockaddr_un place = PlaceOf(path);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&place), sizeof(place)), 0) << std::strerror(errno);
  EXPECT_EQ(listen(listener, 0), 0);
  return listener;
}

// Returns true if the other end hangs up without sending its greeting.
bool IsHungUp(int client) {
  char byte;
  return recv(client, &byte, 1, 0) <= 0;
}

// A server that greets each connection with a byte and keeps it open.
class Greeter {
 public:
  ConnectionListener::Take Take() {
    return [this](int, int connection) {
      MutexLock lock(&mutex_);
      taken_.push_back(connection);
      send(connection, "!", 1, MSG_NOSIGNAL);  // it may have hung up
    };
  }
  ~Greeter() { HangUp(); }
  std::vector<int> taken() {
    MutexLock lock(&mutex_);
    return taken_;
  }
  void HangUp() {
    MutexLock lock(&mutex_);
    for (const int connection : taken_) close(connection);
    taken_.clear();
  }

 private:
  Mutex mutex_;
  std::vector<int> taken_ ABSL_GUARDED_BY(mutex_);
};

TEST(ConnectionListenerTest, ClosesConnectionsBeyondDescriptors) {
  Greeter greeter;
  const auto listener = ConnectionListener::Listen({"127.0.0.1:0"});
  ASSERT_TRUE(listener.ok()) << listener.status();
  const int next = dup(0);
  close(next);
  // Each connection takes two descriptors, because both ends are in this process.
  const int bound = next + 20;
  (*listener)->Start(bound, greeter.Take());
  std::vector<int> clients;
  int hung_up = 0;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(Connect((*listener)->port()));
    hung_up += IsHungUp(clients.back());
  }
  EXPECT_EQ(greeter.taken().size(), 10u);
  EXPECT_EQ(hung_up, 40);
  EXPECT_THAT(greeter.taken(), Each(Lt(bound)));
  // New connections use the descriptors that become free.
  greeter.HangUp();
  const int late = Connect((*listener)->port());
  EXPECT_FALSE(IsHungUp(late));
  for (const int client : clients) close(client);
  close(late);
}

// A shorter timeout would cut a link that is silent for a moment, although a ping may remain unanswered for longer.
TEST(ConnectionListenerTest, DataMayWaitAsLongAsAPing) {
  Greeter greeter;
  const auto listener = ConnectionListener::Listen({"127.0.0.1:0"});
  ASSERT_TRUE(listener.ok()) << listener.status();
  (*listener)->Start(1000, greeter.Take());
  const int client = Connect((*listener)->port());
  ASSERT_FALSE(IsHungUp(client));
  int milliseconds = 0;
  socklen_t size = sizeof(milliseconds);
  ASSERT_EQ(getsockopt(greeter.taken().front(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &size), 0);
  EXPECT_EQ(milliseconds, kWorkersAnswerMilliseconds);
  close(client);
}

TEST(ConnectionListenerTest, ListensAtSeveralAddresses) {
  Greeter greeter;
  const std::string path = absl::StrCat("/tmp/listener-", getpid(), ".sock");
  for (int round = 0; round < 2; ++round) {
    const auto listener = ConnectionListener::Listen({absl::StrCat("unix:", path), "localhost:0", "0.0.0.0:0"});
    ASSERT_TRUE(listener.ok()) << listener.status();
    (*listener)->Start(1000, greeter.Take());
    for (const int client : {Connect(path), Connect((*listener)->port())}) {
      EXPECT_FALSE(IsHungUp(client));
      close(client);
    }
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "it is removed";
}

class UnixSocketTest : public testing::Test {
 protected:
  UnixSocketTest() : path_(absl::StrCat("/tmp/socket-", getpid(), ".sock")), address_(absl::StrCat("unix:", path_)) {
    unlink(path_.c_str());
  }
  ~UnixSocketTest() override { unlink(path_.c_str()); }

  std::unique_ptr<ConnectionListener> Listen() {
    auto listener = ConnectionListener::Listen({address_});
    EXPECT_TRUE(listener.ok()) << listener.status();
    return *std::move(listener);
  }
  void ExpectServed(ConnectionListener* listener) {
    Greeter greeter;
    listener->Start(1000, greeter.Take());
    const int client = Connect(path_);
    EXPECT_FALSE(IsHungUp(client));
    close(client);
  }

  const std::string path_, address_;
};

TEST_F(UnixSocketTest, LeavesALiveServersSocket) {
  auto first = Listen();
  for (const std::string& address : {address_, absl::StrCat("unix://", path_)}) {
    const absl::Status second = ConnectionListener::Listen({address}).status();
    EXPECT_TRUE(absl::IsUnavailable(second)) << second;
    EXPECT_EQ(second.message(),
              absl::StrCat("cannot listen on ", address, ": Address already in use (the name is in use)"));
  }
  ExpectServed(first.get());
  first.reset();
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
}

TEST_F(UnixSocketTest, LeavesABusyServersSocket) {
  const int server = ListenIdly(path_);
  const int waits = Connect(path_);  // and no other may
  EXPECT_TRUE(absl::IsUnavailable(ConnectionListener::Listen({address_}).status()));
  close(waits);
  close(server);
}

TEST_F(UnixSocketTest, TakesOverADeadServersSocket) {
  close(ListenIdly(path_));
  ExpectServed(Listen().get());
}

TEST_F(UnixSocketTest, OneOfTwoServersTakesAStaleSocket) {
  for (int round = 0; round < 300; ++round) {
    close(ListenIdly(path_));
    std::unique_ptr<ConnectionListener> listeners[2];
    std::atomic<int> ready{0};
    const auto listen = [&](int i) {
      ++ready;
      while (ready < 2) {  // so that they begin together
      }
      auto listener = ConnectionListener::Listen({address_});
      if (listener.ok()) listeners[i] = *std::move(listener);
    };
    std::thread other(listen, 0);
    listen(1);
    other.join();
    ASSERT_NE(listeners[0] == nullptr, listeners[1] == nullptr) << "round " << round;
    close(Connect(path_));
    unlink(path_.c_str());
  }
}

TEST_F(UnixSocketTest, AnEndLeavesTheSocketOfAnother) {
  auto first = Listen();
  ASSERT_EQ(unlink(path_.c_str()), 0);
  const auto second = Listen();
  first.reset();
  ExpectServed(second.get());
}

TEST_F(UnixSocketTest, AFileIsNoSocketOfAServerThatIsGone) {
  const int file = open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  close(file);
  EXPECT_TRUE(absl::IsUnavailable(ConnectionListener::Listen({address_}).status()));
  EXPECT_EQ(access(path_.c_str(), F_OK), 0);
}

// CL-07
TEST(ConnectionListenerTest, NamesTheUnbindableAddress) {
  const auto first = ConnectionListener::Listen({"127.0.0.1:0"});
  ASSERT_TRUE(first.ok());
  const std::string taken = absl::StrCat("127.0.0.1:", (*first)->port());
  const std::pair<std::string, std::string> cases[] = {
      {taken, absl::StrCat("cannot listen on ", taken, ": Address already in use")},
      {"127.0.0.1", "it names no port"},
      {"192.0.2.1:0", "cannot listen on 192.0.2.1:0: Cannot assign requested address"},
      {absl::StrCat("unix:", std::string(200, 'x')), "a name has 1 to 107 bytes"},
      {"unix:/no/such/folder/socket", "No such file"},
  };
  for (const auto& wrong : cases) {
    const auto listener = ConnectionListener::Listen({"127.0.0.1:0", wrong.first});
    EXPECT_TRUE(absl::IsUnavailable(listener.status())) << wrong.first;
    EXPECT_THAT(std::string(listener.status().message()), HasSubstr(wrong.second));
  }
}

TEST(ConnectionListenerTest, TheBoundLeavesDescriptorsForFiles) {
  EXPECT_EQ(ConnectionListener::BoundFor(64), 43);
  EXPECT_EQ(ConnectionListener::BoundFor(200), 134);
  EXPECT_EQ(ConnectionListener::BoundFor(1024), 768);
  EXPECT_EQ(ConnectionListener::BoundFor(1 << 20), 4096);
  EXPECT_EQ(ConnectionListener::BoundFor(~uint64_t{0}), 4096);
}

}  // namespace
}  // namespace lockstep
