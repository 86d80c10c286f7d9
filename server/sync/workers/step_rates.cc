#include "lockstep/server/sync/workers/step_rates.h"

namespace lockstep {
namespace {

constexpr absl::Duration kWindow = absl::Seconds(3);

}  // namespace

StepRates::StepRates(int64_t step, absl::Time now) {
  for (Mark& mark : marks_) {
    mark.time = now;
    mark.step = step;
  }
}

void StepRates::AddWorker(uint64_t session, const WorkerIdentity& identity) {
  v1::WorkerStatus& worker = workers_[session];
  worker.Clear();
  worker.set_name(identity.name);
  worker.set_host(identity.host);
  worker.set_address(identity.address);
  if (identity.build.ByteSizeLong() > 0) *worker.mutable_build() = identity.build;
  worker.set_session_id(ShortSessionId(session));
}

v1::WorkerStatus* StepRates::Find(uint64_t session) {
  const auto it = workers_.find(session);
  return it == workers_.end() ? nullptr : &it->second;
}

void StepRates::OnReceived(uint64_t session, int64_t bytes, WirePath path) {
  totals_.bytes_received += bytes;
  paths_[static_cast<int>(path)].received += bytes;
  v1::WorkerStatus* const worker = Find(session);
  if (worker != nullptr) worker->set_bytes_received(worker->bytes_received() + bytes);
}

void StepRates::OnSent(uint64_t session, int64_t bytes, WirePath path) {
  totals_.bytes_sent += bytes;
  paths_[static_cast<int>(path)].sent += bytes;
  v1::WorkerStatus* const worker = Find(session);
  if (worker != nullptr) worker->set_bytes_sent(worker->bytes_sent() + bytes);
}

void StepRates::OnContributed(uint64_t session, v1::ContributionResult result, absl::Duration took) {
  absl::optional<v1::WorkerStatus> gone;
  v1::WorkerStatus* worker = Find(session);
  if (worker == nullptr) worker = &gone.emplace();
  switch (result) {
    case v1::CONTRIBUTION_ACCEPTED:
      ++accepted_;
      worker->set_accepted(worker->accepted() + 1);
      break;
    case v1::CONTRIBUTION_STALE:
      ++stale_;
      worker->set_stale(worker->stale() + 1);
      break;
    case v1::CONTRIBUTION_REJECTED:
      ++rejected_;
      worker->set_rejected(worker->rejected() + 1);
      break;
    default:
      ++duplicate_;
      worker->set_duplicate(worker->duplicate() + 1);
  }
  worker->set_last_step_seconds(absl::ToDoubleSeconds(took));
}

void StepRates::OnRejected(uint64_t session) {
  ++rejected_;
  v1::WorkerStatus* const worker = Find(session);
  if (worker != nullptr) worker->set_rejected(worker->rejected() + 1);
}

void StepRates::MoveMarks(int64_t step, absl::Time now) {
  if (now - marks_[1].time < kWindow) return;
  marks_[0] = marks_[1];
  marks_[1] = {now, step, totals_.bytes_received, totals_.bytes_sent};
}

void StepRates::FillRun(int64_t step, absl::Time now, v1::RunStatus* status) const {
  status->set_global_step(step);
  if (loss_) status->set_loss(*loss_);
  status->set_learning_rate(learning_rate_);
  const Mark& mark = marks_[0];
  const double seconds = absl::ToDoubleSeconds(now - mark.time);
  const auto steps = static_cast<double>(step - mark.step);
  if (seconds > 0) status->set_steps_per_second(steps / seconds);
  if (steps > 0) {
    status->set_bytes_received_per_step(static_cast<double>(totals_.bytes_received - mark.bytes_received) / steps);
    status->set_bytes_sent_per_step(static_cast<double>(totals_.bytes_sent - mark.bytes_sent) / steps);
  }
  status->set_accepted(accepted_);
  status->set_duplicate(duplicate_);
  status->set_rejected(rejected_);
  status->set_stale(stale_);
  status->set_skipped_steps(skipped_);
}

void StepRates::FillCounters(v1::RunCounters* counters) const {
  counters->set_bytes_received(totals_.bytes_received);
  counters->set_bytes_sent(totals_.bytes_sent);
  const Bytes& socket = paths_[static_cast<int>(WirePath::kUnixSocket)];
  counters->set_unix_bytes_received(socket.received);
  counters->set_unix_bytes_sent(socket.sent);
  const Bytes& ring = paths_[static_cast<int>(WirePath::kRing)];
  counters->set_ring_bytes_received(ring.received);
  counters->set_ring_bytes_sent(ring.sent);
}

void StepRates::FillWorker(uint64_t session, v1::WorkerStatus* status) const {
  const auto it = workers_.find(session);
  if (it != workers_.end()) *status = it->second;
}

}  // namespace lockstep
