#include "lockstep/tests/benchmark/model_benchmark.h"

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/tests/benchmark/contest.h"
#include "lockstep/tests/benchmark/exchange/model_exchange.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr double kTurnSeconds = 0.1;
constexpr double kModelBar = 1;
constexpr double kCnnBar = 1.5;
constexpr double kPortableMlpBar = 1.1;
constexpr double kPortableCnnBar = 1.3;
constexpr double kProductsBar = 1;

double PerSecond(const Turn& turn) { return 1e3 / turn.milliseconds; }

ExchangeSpec OneWorker(const ModelBenchmarkOptions& options) {
  ExchangeSpec spec;
  spec.directory = options.directory;
  return spec;
}

// Compares contestant `ours` with the fastest of the contestants [first, end), i.e. with the one that yields the
// smallest ratio.
Row AgainstTheBest(const Contest& contest, int ours, int first, int end, const std::string& group,
                   const std::string& what, double bar) {
  Row best;
  for (int other = first; other < end; ++other) {
    Row row;
    row.set_group(group);
    row.set_what(what);
    row.set_unit("passes/s");
    row.set_against(contest.name(other));
    row.set_at_least(bar);
    contest.Fill({ours}, {other}, PerSecond, &row);
    if (other == first || row.ratio().median() < best.ratio().median()) best = row;
  }
  return best;
}

absl::Status MeasureModel(const ModelBenchmarkOptions& options, const Peers& peers, const std::string& name,
                          int64_t batch, Report* report) {
  const bool has_formats = name == "cnn";
  const bool has_portable = name != "softmax";
  Contest contest(kTurnSeconds);
  RETURN_IF_ERROR(contest.Enter("Lockstep", ModelExchange(name, batch), OneWorker(options)));
  RETURN_IF_ERROR(contest.Enter(has_formats ? "PyTorch, NCHW" : "PyTorch",
                                TorchModelExchange(peers, name, batch, TorchLayers::kNchw), OneWorker(options)));
  if (has_formats) {
    RETURN_IF_ERROR(
        contest.Enter("PyTorch, NHWC", TorchModelExchange(peers, name, batch, TorchLayers::kNhwc), OneWorker(options)));
  }
  const int torch_end = contest.size();
  if (has_portable) {
    RETURN_IF_ERROR(contest.Enter("portable()", TorchModelExchange(peers, name, batch, TorchLayers::kPortable),
                                  OneWorker(options)));
  }
  RETURN_IF_ERROR(contest.TakeTurns(options.seconds));
  const std::string what = absl::StrCat(name == "softmax" ? "softmax"
                                        : name == "mlp"   ? "MLP"
                                                          : "CNN",
                                        ", batch ", batch);
  *report->add_row() = AgainstTheBest(contest, 0, 1, torch_end, "models", what, has_formats ? kCnnBar : kModelBar);
  if (has_portable) {
    *report->add_row() =
        AgainstTheBest(contest, torch_end, 1, torch_end, "models", absl::StrCat(what, ", lockstep.torch.portable()"),
                       has_formats ? kPortableCnnBar : kPortableMlpBar);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureModels(const ModelBenchmarkOptions& options, const Peers& peers, Report* report) {
  for (const char* name : {"softmax", "mlp", "cnn"}) {
    for (const int64_t batch : options.batches) RETURN_IF_ERROR(MeasureModel(options, peers, name, batch, report));
  }
  return absl::OkStatus();
}

absl::Status MeasureProducts(const ModelBenchmarkOptions& options, const Peers& peers, Report* report) {
  for (const int64_t batch : options.batches) {
    Contest contest(kTurnSeconds);
    RETURN_IF_ERROR(contest.Enter("Lockstep", ProductExchange(batch), OneWorker(options)));
    RETURN_IF_ERROR(contest.Enter("oneDNN sgemm", OneDnnExchange(peers, batch), OneWorker(options)));
    RETURN_IF_ERROR(contest.TakeTurns(options.seconds));
    *report->add_row() = AgainstTheBest(contest, 0, 1, contest.size(), "products",
                                        absl::StrCat("products of the MLP, batch ", batch), kProductsBar);
  }
  return absl::OkStatus();
}

}  // namespace benchmark
}  // namespace lockstep
