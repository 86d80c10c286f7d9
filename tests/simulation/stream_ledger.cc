#include "lockstep/tests/simulation/stream_ledger.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"

namespace lockstep {
namespace simulation {
namespace {

// Maximum number of versions to try. Workers cannot have created so many without one being seen.
constexpr size_t kMaxVersions = 20000;

int64_t At(absl::Span<const int64_t> positions, int64_t stream) {
  const auto place = static_cast<size_t>(stream);
  return place < positions.size() ? positions[place] : 0;
}

void Set(int64_t stream, int64_t position, std::vector<int64_t>* positions) {
  const auto place = static_cast<size_t>(stream);
  if (place >= positions->size()) positions->resize(place + 1);
  (*positions)[place] = position;
}

absl::StatusOr<std::vector<int64_t>> ReadPositions(const BundleReader& reader) {
  std::vector<int64_t> positions;
  if (!reader.Contains(kStreamPositionsKey)) return positions;
  ASSIGN_OR_RETURN(const Tensor tensor, reader.Read(kStreamPositionsKey));
  for (const int64_t position : tensor.flat<int64_t>()) positions.push_back(position);
  return positions;
}

}  // namespace

StreamLedger::StreamLedger(const config::v1::RunSpec& config, const RunRules& rules)
    : is_async_(config.training().has_async()),
      wanted_(is_async_ ? 1 : config.training().replicas_to_aggregate()),
      reference_(config, rules, ChangesOf(config)),
      settings_(SettingsOf(config)),
      seed_(config.training().seed()) {
  auto first = std::make_shared<Node>();
  first->state = reference_.First();
  lives_.emplace_back();
  lives_.back().newest = {std::move(first)};
}

absl::Status StreamLedger::Begin(const BundleReader* checkpoint) {
  NodePtr from = lives_[0].newest[0];
  while (from->before != nullptr) from = from->before;
  if (checkpoint != nullptr) {
    ASSIGN_OR_RETURN(const Found found, FindCheckpoint(*checkpoint));
    // The restored positions include the batches that were discarded.
    auto restored = std::make_shared<Node>(*found.node);
    restored->positions = found.positions;
    restored->before = found.node->before;
    from = std::move(restored);
  }
  lives_.emplace_back();
  lives_.back().newest = {std::move(from)};
  return absl::OkStatus();
}

void StreamLedger::OnToken(const v1::Token& token) {
  Token& given = lives_.back().tokens[{token.stream(), token.position()}];
  given.steps.insert(token.step());
  given.values_steps.insert(token.has_values_step() ? token.values_step() : token.step());
}

absl::Status StreamLedger::OnComputing(const SlotKey& key, VariableValues values) {
  if (key.step == 0 && key.slot == 0 && reference_.AreCanaryValues(values)) return absl::OkStatus();
  const Address address{key.slot, key.step};
  bool known = false;
  absl::Status status = absl::NotFoundError("no token names the batch");
  for (auto life = lives_.rbegin(); life != lives_.rend(); ++life) {
    const auto token = life->tokens.find(address);
    if (token == life->tokens.end()) continue;
    for (const int64_t step : token->second.values_steps) {
      const NodePtr base = Find(
          &*life, step, [&](const Node& node) { return reference_.CheckValues(node.state, node.step, values).ok(); });
      status = absl::DataLossError(absl::StrCat("no order of admission makes them at step ", step));
      if (base == nullptr) continue;
      known = true;
      const bool again = absl::c_any_of(life->computed, [&](const Computed& computed) {
        return computed.address == address && computed.base == base;
      });
      if (again) continue;
      const Reference::Contribution contribution{{seed_, key.step, key.slot}, &base->state};
      life->computed.push_back(
          {address, base, std::make_shared<Reference::Gradient>(reference_.Compute(contribution, settings_))});
    }
  }
  if (known) return absl::OkStatus();
  return absl::Status(status.code(), absl::StrCat("batch ", key.step, " of stream ", key.slot, ": ", status.message()));
}

absl::Status StreamLedger::CheckNamed(int64_t step, absl::Span<const train::NamedTensor> values) {
  for (auto life = lives_.rbegin(); life != lives_.rend(); ++life) {
    const auto matches = [&](const Node& node) { return reference_.CheckNamed(node.state, step, values).ok(); };
    if (Find(&*life, step, matches) != nullptr) return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("no order of admission makes them at step ", step));
}

absl::Status StreamLedger::CheckCheckpoint(const BundleReader& reader) { return FindCheckpoint(reader).status(); }

absl::StatusOr<StreamLedger::Found> StreamLedger::FindCheckpoint(const BundleReader& reader) {
  ASSIGN_OR_RETURN(const std::vector<train::NamedTensor> values, reference_.ReadNamed(reader));
  ASSIGN_OR_RETURN(const std::vector<int64_t> positions, ReadPositions(reader));
  const int64_t step = values[0].value.flat<int64_t>()[0];
  for (auto life = lives_.rbegin(); life != lives_.rend(); ++life) {
    const auto matches = [&](const Node& node) {
      return reference_.CheckNamed(node.state, step, values).ok() && ArePositions(*life, node, positions);
    };
    const NodePtr node = Find(&*life, step, matches);
    if (node != nullptr) return Found{node, positions};
  }
  return absl::DataLossError(absl::StrCat("no order of admission makes its values of step ", step,
                                          " with the positions ", absl::StrJoin(positions, " ")));
}

bool StreamLedger::ArePositions(const Life& life, const Node& node, absl::Span<const int64_t> positions) const {
  const size_t streams = std::max(positions.size(), node.positions.size());
  for (size_t i = 0; i < streams; ++i) {
    const auto stream = static_cast<int64_t>(i);
    const int64_t position = At(positions, stream), least = At(node.positions, stream);
    if (position == least) continue;
    // Discarded batches also advance the position.
    const bool spent = position > least && life.tokens.count({stream, position - 1}) > 0;
    if (is_async_ || !spent) return false;
  }
  return true;
}

StreamLedger::NodePtr StreamLedger::Find(Life* life, int64_t step, const Matches& matches) {
  for (NodePtr node : life->newest) {
    for (; node != nullptr && node->step >= step; node = node->before) {
      if (node->step == step && matches(*node)) return node;
    }
  }
  std::vector<NodePtr> level = life->newest;
  size_t versions = 0;
  while (!level.empty() && level[0]->step < step && versions < kMaxVersions) {
    std::vector<NodePtr> next;
    for (const NodePtr& node : level) {
      for (NodePtr& following : Following(*life, node)) next.push_back(std::move(following));
    }
    versions += next.size();
    level = std::move(next);
  }
  if (level.empty() || level[0]->step != step) return nullptr;
  std::vector<NodePtr> matching;
  for (NodePtr& node : level) {
    // Different orders often produce the same sum.
    const auto same = [&](const NodePtr& other) { return IsSame(*node, *other); };
    if (matches(*node) && absl::c_none_of(matching, same)) matching.push_back(std::move(node));
  }
  if (matching.empty()) return nullptr;
  life->newest = std::move(matching);
  Prune(life);
  return life->newest[0];
}

bool StreamLedger::IsSame(const Node& a, const Node& b) {
  return a.positions == b.positions && a.state.values == b.state.values && a.state.slots == b.state.slots;
}

bool StreamLedger::MayCount(const Life& life, const Node& node, const std::vector<int64_t>& positions,
                            const Computed& computed) const {
  const int64_t next = At(positions, computed.address.first);
  if (is_async_) return computed.address.second == next;
  const auto token = life.tokens.find(computed.address);
  return computed.address.second >= next && token != life.tokens.end() && token->second.steps.count(node.step) > 0;
}

void StreamLedger::Choose(const Life& life, const NodePtr& node, int64_t missing, std::vector<int64_t> positions,
                          std::vector<const Computed*>* chosen, std::vector<NodePtr>* following) const {
  if (missing == 0) {
    std::vector<const Reference::Gradient*> gradients;
    for (const Computed* const computed : *chosen) gradients.push_back(computed->gradient.get());
    auto next = std::make_shared<Node>();
    next->step = node->step + 1;
    next->state = reference_.After(node->state, settings_, gradients);
    next->positions = std::move(positions);
    next->before = node;
    following->push_back(std::move(next));
    return;
  }
  for (const Computed& computed : life.computed) {
    if (!MayCount(life, *node, positions, computed)) continue;
    std::vector<int64_t> after = positions;
    Set(computed.address.first, computed.address.second + 1, &after);
    chosen->push_back(&computed);
    Choose(life, node, missing - 1, std::move(after), chosen, following);
    chosen->pop_back();
  }
}

std::vector<StreamLedger::NodePtr> StreamLedger::Following(const Life& life, const NodePtr& node) const {
  std::vector<NodePtr> following;
  std::vector<const Computed*> chosen;
  Choose(life, node, wanted_, node->positions, &chosen, &following);
  return following;
}

void StreamLedger::Prune(Life* life) const {
  const auto is_over = [&](const Computed& computed) {
    return absl::c_all_of(life->newest, [&](const NodePtr& node) {
      return computed.address.second < At(node->positions, computed.address.first);
    });
  };
  life->computed.erase(std::remove_if(life->computed.begin(), life->computed.end(), is_over), life->computed.end());
}

}  // namespace simulation
}  // namespace lockstep
