#ifndef LOCKSTEP_TESTS_TESTING_LOOPBACK_CONNECTION_H_
#define LOCKSTEP_TESTS_TESTING_LOOPBACK_CONNECTION_H_

#include <string>

namespace lockstep {

// Returns the descriptor of a TCP connection to "127.0.0.1:port". The caller must close it. Fails the test if there is
// no connection.
int ConnectToLoopback(const std::string& address);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_LOOPBACK_CONNECTION_H_
