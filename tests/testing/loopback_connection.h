#ifndef LOCKSTEP_TESTS_TESTING_LOOPBACK_CONNECTION_H_
#define LOCKSTEP_TESTS_TESTING_LOOPBACK_CONNECTION_H_

#include <string>

namespace lockstep {

// Returns the descriptor of a TCP connection to "127.0.0.1:port", which the caller closes. Fails the test if there is
// none.
int ConnectToLoopback(const std::string& address);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_LOOPBACK_CONNECTION_H_
