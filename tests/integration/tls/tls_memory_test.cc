// Tests how much of the chief's memory floods inside TLS can use. Sanitizers do not run this test, because it measures
// memory.
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/transport/connection/credentials.h"
#include "lockstep/tests/testing/process_memory.h"
#include "lockstep/tests/testing/test_cluster.h"
#include "lockstep/tests/testing/test_kits.h"
#include "lockstep/tests/testing/tls_peer.h"

namespace lockstep {
namespace {

// CVE-2023-33953. Half of the peers have a certificate.
TEST(TlsMemoryTest, EndlessHeadersEndTheConnection) {
  TestKits kits;
  kits.Issue("chief", PeerRole::kChief);
  kits.Issue("worker", PeerRole::kWorker);
  TestCluster::Options options;
  options.config = SmallRunSpec(/*steps=*/20, /*slots=*/4);
  options.server.credentials = Credentials(kits.Path("chief"));
  options.client.credentials = Credentials(kits.Path("worker"));
  TestCluster cluster(std::move(options));
  ASSERT_EQ(cluster.StartChief(), absl::OkStatus());
  const MemoryGrowth growth;
  std::vector<std::unique_ptr<TlsPeer>> peers;
  for (int i = 0; i < 20; ++i) {
    peers.push_back(std::make_unique<TlsPeer>(cluster.address(), i % 2 == 0 ? "" : kits.Path("worker")));
    peers.back()->SendEndlessHeaders(/*frames=*/256, /*bytes=*/8000);
  }
  for (const auto& peer : peers) peer->ReadToTheEnd();
  EXPECT_LT(growth.peak(), 32 << 20);
  cluster.StartWorker();
  EXPECT_EQ(cluster.Wait(), absl::OkStatus());
}

}  // namespace
}  // namespace lockstep
