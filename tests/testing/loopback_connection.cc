#include "lockstep/tests/testing/loopback_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"

namespace lockstep {

int ConnectToLoopback(const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in place = {};
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<uint16_t>(port));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&place), sizeof(place)), 0);
  return fd;
}

}  // namespace lockstep
