// Tests how much of the chief's memory floods inside TLS can use. Sanitizers do not run this test, because it measures
// memory.
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/transport/connection/credentials.h"
#include "lockstep/tests/testing/fault_injected_run.h"
#include "lockstep/tests/testing/process_memory.h"
#include "lockstep/tests/testing/test_kits.h"
#include "lockstep/tests/testing/tls_peer.h"

namespace lockstep {
namespace {

// CVE-2023-33953. Half of the peers have a certificate.
TEST(TlsMemoryTest, EndlessHeadersEndTheConnection) {
  TestKits kits;
  kits.Issue("chief", PeerRole::kChief);
  kits.Issue("worker", PeerRole::kWorker);
  ChiefServer::Options server;
  server.credentials = Credentials(kits.Path("chief"));
  GrpcClientOptions client;
  client.credentials = Credentials(kits.Path("worker"));
  FaultInjectedRun run(server, /*held=*/true, client, FaultInjectedRun::kLongLeaseSeconds);
  const MemoryGrowth growth;
  std::vector<std::unique_ptr<TlsPeer>> peers;
  for (int i = 0; i < 100; ++i) {
    peers.push_back(std::make_unique<TlsPeer>(run.address(), i % 2 == 0 ? "" : kits.Path("worker")));
    peers.back()->SendEndlessHeaders(/*frames=*/256, /*bytes=*/8000);
    if (i == 50) run.Release();
  }
  for (const auto& peer : peers) peer->ReadToTheEnd();
  EXPECT_LT(growth.peak(), 16 << 20);
  run.ExpectUndisturbed();
}

}  // namespace
}  // namespace lockstep
