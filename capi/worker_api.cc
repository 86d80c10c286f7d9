#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lockstep/capi/answer.h"
#include "lockstep/capi/foreign_worker.h"
#include "lockstep/capi/handle_table.h"
#include "lockstep/capi/lockstep.h"
#include "lockstep/capi/log_forwarding.h"
#include "lockstep/capi/run_text.h"
#include "lockstep/cli/replay/program_replay.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/elements.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep {
namespace {

constexpr int64_t kMostExamples = int64_t{1} << 48;
// The size of lockstep_worker_options in the library's first version.
constexpr size_t kFirstOptionsSize = offsetof(lockstep_worker_options, initial_values);

HandleTable<ForeignWorker>& Workers() {
  static auto* const workers = new HandleTable<ForeignWorker>("worker");
  return *workers;
}

absl::Duration Timeout(double seconds) { return seconds < 0 ? absl::InfiniteDuration() : absl::Seconds(seconds); }

absl::Status ReadParts(const lockstep_worker_options& from, std::vector<Model::Part>* parts) {
  if (from.part_count > 0) RETURN_IF_ERROR(RequirePointer(from.parts, "options.parts"));
  for (size_t i = 0; i < from.part_count; ++i) {
    const lockstep_part& part = from.parts[i];
    RETURN_IF_ERROR(RequireText(part.name, "a part's name"));
    if (part.size > 0) RETURN_IF_ERROR(RequirePointer(part.data, "a part's data"));
    parts->push_back({part.name, std::string(static_cast<const char*>(part.data), part.size)});
  }
  return absl::OkStatus();
}

// Requires `options->model`.
absl::Status ReadInitialValues(const lockstep_worker_options& from, ForeignWorker::Options* options) {
  if (from.initial_value_count > 0) RETURN_IF_ERROR(RequirePointer(from.initial_values, "options.initial_values"));
  const auto& variables = options->model.variables();
  for (size_t i = 0; i < from.initial_value_count; ++i) {
    const lockstep_initial_value& value = from.initial_values[i];
    RETURN_IF_ERROR(RequireText(value.variable, "an initial value's variable"));
    RETURN_IF_ERROR(RequirePointer(value.elements, "an initial value's elements"));
    const std::string name = value.variable;
    const auto variable = absl::c_find_if(variables, [&](const auto& each) { return each.name() == name; });
    if (variable == variables.end()) {
      return absl::InvalidArgumentError(absl::StrCat("there is an initial value for ", name, ", which is no variable"));
    }
    ASSIGN_OR_RETURN(Shape shape, Shape::Create(variable->shape()));
    if (static_cast<int64_t>(value.count) != shape.num_elements()) {
      return absl::InvalidArgumentError(absl::StrCat("the initial value of ", name, " has ", value.count,
                                                     " elements, the variable has ", shape.num_elements()));
    }
    const v1::DataType dtype = VariableType(variable->dtype());
    if (!IsVariableType(dtype)) {
      return absl::InvalidArgumentError(absl::StrCat("variable ", name, " has type ", NameOf(dtype)));
    }
    Tensor tensor(dtype, std::move(shape));
    if (value.count > 0) std::memcpy(tensor.data(), value.elements, tensor.bytes().size());
    if (!options->initial_values.emplace(name, std::move(tensor)).second) {
      return absl::InvalidArgumentError(absl::StrCat("there are two initial values for ", name));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ForeignWorker::Options> ReadOptions(const lockstep_worker_options& from) {
  ForeignWorker::Options options;
  ASSIGN_OR_RETURN(options.replay, ProgramReplay::FromEnvironment());
  RETURN_IF_ERROR(RequireText(from.master, "options.master"));
  options.master = from.master;
  if (from.name != nullptr) {
    RETURN_IF_ERROR(RequireText(from.name, "options.name"));
    options.name = from.name;
  }
  if (from.run != nullptr) {
    RETURN_IF_ERROR(RequireText(from.run, "options.run"));
    ASSIGN_OR_RETURN(options.run, ParseRunText(from.run, {}));
  }
  RETURN_IF_ERROR(RequireText(from.model, "options.model"));
  RETURN_IF_ERROR(ParseTextProto(from.model, "model", &options.model));
  RETURN_IF_ERROR(RequireText(from.framework, "options.framework"));
  RETURN_IF_ERROR(ParseTextProto(from.framework, "framework", &options.framework));
  RETURN_IF_ERROR(ReadParts(from, &options.parts));
  RETURN_IF_ERROR(ReadInitialValues(from, &options));
  if (from.examples < 0 || from.examples > kMostExamples) {
    return absl::InvalidArgumentError(
        absl::StrCat("options.examples is ", from.examples, ", must be in [0, ", kMostExamples, "]"));
  }
  if (from.examples > 0) {
    options.data.emplace();
    options.data->set_examples(from.examples);
    options.data->set_crc32c(from.examples_digest);
  }
  if (from.chief_wait_seconds >= 0) options.chief_wait = absl::Seconds(from.chief_wait_seconds);
  return options;
}

// Runs `body` with the exchange of worker `id`.
template <typename Body>
int WithSlots(lockstep_id id, Body body) {
  return Answer([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<ForeignWorker> worker, Workers().Find(id));
    return body(worker->slots());
  });
}

void WriteSlot(const ForeignSlot& from, lockstep_slot* slot) {
  slot->step = from.key.step;
  slot->index = from.key.slot;
  slot->seed = from.seed;
  slot->canary = from.canary ? 1 : 0;
  slot->fresh = from.fresh ? 1 : 0;
  slot->indices = from.indices.data();
  slot->index_count = from.indices.size();
  slot->values = from.values.data();
  slot->value_count = from.values.size();
}

// The worker whose function (lockstep_worker_run) this thread is in.
thread_local lockstep_id running_worker = 0;

}  // namespace
}  // namespace lockstep

using lockstep::Answer;
using lockstep::Elements;
using lockstep::ForeignSlot;
using lockstep::ForeignWorker;
using lockstep::NameOf;
using lockstep::RequirePointer;
using lockstep::RequireSize;
using lockstep::SizeOf;
using lockstep::SlotExchange;
using lockstep::WithSlots;
using lockstep::Workers;

int lockstep_worker_new(const lockstep_worker_options* options, lockstep_id* worker) {
  return Answer([&]() -> absl::Status {
    RETURN_IF_ERROR(RequirePointer(options, "options"));
    RETURN_IF_ERROR(RequireSize(options->size, lockstep::kFirstOptionsSize, "options"));
    RETURN_IF_ERROR(RequirePointer(worker, "worker"));
    // An older program's struct lacks the newer fields; they stay 0.
    lockstep_worker_options known = {};
    std::memcpy(&known, options, std::min(options->size, sizeof(known)));
    lockstep::InitializeLibrary();
    ASSIGN_OR_RETURN(ForeignWorker::Options read, lockstep::ReadOptions(known));
    ASSIGN_OR_RETURN(auto created, ForeignWorker::Create(std::move(read)));
    *worker = Workers().Add(std::move(created));
    return absl::OkStatus();
  });
}

int lockstep_worker_next(lockstep_id worker, double timeout_seconds, lockstep_slot* slot) {
  return WithSlots(worker, [&](SlotExchange* slots) -> absl::Status {
    RETURN_IF_ERROR(RequirePointer(slot, "slot"));
    RETURN_IF_ERROR(RequireSize(slot->size, sizeof(lockstep_slot), "slot"));
    if (worker == lockstep::running_worker) {
      return absl::FailedPreconditionError("a function that lockstep_worker_run calls cannot take slots");
    }
    ASSIGN_OR_RETURN(const ForeignSlot taken, slots->Take(lockstep::Timeout(timeout_seconds)));
    lockstep::WriteSlot(taken, slot);
    return absl::OkStatus();
  });
}

int lockstep_worker_run(lockstep_id worker, double timeout_seconds, lockstep_slot_function function, void* context) {
  return WithSlots(worker, [&](SlotExchange* slots) -> absl::Status {
    RETURN_IF_ERROR(RequirePointer(reinterpret_cast<const void*>(function), "function"));
    return slots->Run(lockstep::Timeout(timeout_seconds), [&](const ForeignSlot& from) {
      lockstep_slot slot = {sizeof(slot)};
      lockstep::WriteSlot(from, &slot);
      lockstep::running_worker = worker;
      const bool wants_more = function(context, &slot) == 0;
      lockstep::running_worker = 0;
      return wants_more;
    });
  });
}

int lockstep_worker_indices(lockstep_id worker, int64_t step, int64_t index, int64_t* indices, size_t capacity,
                            size_t* count) {
  return Answer([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto found, Workers().Find(worker));
    RETURN_IF_ERROR(RequirePointer(count, "count"));
    if (capacity > 0) RETURN_IF_ERROR(RequirePointer(indices, "indices"));
    ASSIGN_OR_RETURN(const std::vector<int64_t> batch, found->Indices(step, index));
    *count = batch.size();
    std::copy_n(batch.begin(), std::min(capacity, batch.size()), indices);
    return absl::OkStatus();
  });
}

int lockstep_worker_seed(lockstep_id worker, int64_t step, int64_t index, uint64_t* seed) {
  return Answer([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto found, Workers().Find(worker));
    RETURN_IF_ERROR(RequirePointer(seed, "seed"));
    ASSIGN_OR_RETURN(*seed, found->Seed(step, index));
    return absl::OkStatus();
  });
}

int lockstep_worker_spec(lockstep_id worker, const char** text) {
  return Answer([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto found, Workers().Find(worker));
    RETURN_IF_ERROR(RequirePointer(text, "text"));
    ASSIGN_OR_RETURN(const lockstep::config::v1::RunSpec spec, found->Spec());
    *text = lockstep::Keep(lockstep::PrintTextProto(spec));
    return absl::OkStatus();
  });
}

int lockstep_worker_initial_values(lockstep_id worker, const char** own, const char** of_run) {
  return Answer([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto found, Workers().Find(worker));
    ASSIGN_OR_RETURN(const ForeignWorker::InitialDigests digests, found->initial_digests());
    if (own != nullptr) *own = lockstep::Keep(digests.own);
    if (of_run != nullptr) *of_run = lockstep::Keep(digests.of_run);
    return absl::OkStatus();
  });
}

int lockstep_worker_end(lockstep_id worker, const char* reason) {
  return Answer([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto found, Workers().Find(worker));
    RETURN_IF_ERROR(lockstep::RequireText(reason, "reason"));
    return found->RequestFinish(reason);
  });
}

int lockstep_worker_stop(lockstep_id worker) {
  return Answer([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto found, Workers().Find(worker));
    found->RequestStop();
    return absl::OkStatus();
  });
}

int lockstep_worker_free(lockstep_id worker) {
  return Answer([&]() -> absl::Status {
    if (worker != 0 && worker == lockstep::running_worker) {
      return absl::FailedPreconditionError("a function that lockstep_worker_run calls cannot free the worker");
    }
    ASSIGN_OR_RETURN(const std::shared_ptr<ForeignWorker> taken, Workers().Take(worker));
    taken->End();
    return absl::OkStatus();
  });
}

int lockstep_slot_loss(lockstep_id worker, float loss) {
  return WithSlots(worker, [&](SlotExchange* slots) { return slots->Loss(loss); });
}

int lockstep_slot_weight(lockstep_id worker, float weight) {
  return WithSlots(worker, [&](SlotExchange* slots) { return slots->Weight(weight); });
}

int lockstep_slot_metric(lockstep_id worker, const char* name, float value) {
  return WithSlots(worker, [&](SlotExchange* slots) -> absl::Status {
    RETURN_IF_ERROR(lockstep::RequireText(name, "name"));
    if (*name == '\0') return absl::InvalidArgumentError("a metric's name is empty");
    return slots->Metric(name, value);
  });
}

int lockstep_slot_end_run(lockstep_id worker) {
  return WithSlots(worker, [&](SlotExchange* slots) { return slots->RequestFinish(); });
}

int lockstep_slot_update(lockstep_id worker, size_t op, const float* value, size_t count) {
  return WithSlots(worker, [&](SlotExchange* slots) { return slots->Update(op, Elements(value, count)); });
}

int lockstep_slot_update_integers(lockstep_id worker, size_t op, const char* dtype, const void* value, size_t count) {
  return WithSlots(worker, [&](SlotExchange* slots) -> absl::Status {
    RETURN_IF_ERROR(lockstep::RequireText(dtype, "dtype"));
    namespace v1 = lockstep::v1;
    for (const v1::DataType type : {v1::DT_INT32, v1::DT_INT64, v1::DT_UINT8, v1::DT_BOOL}) {
      if (NameOf(type) != dtype) continue;
      return slots->Update(op,
                           Elements(type, absl::string_view(static_cast<const char*>(value), count * SizeOf(type))));
    }
    return absl::InvalidArgumentError(absl::StrCat("dtype is \"", dtype, "\", must be int32, int64, uint8 or bool"));
  });
}

int lockstep_slot_gradient(lockstep_id worker, size_t variable, float** gradient) {
  return WithSlots(worker, [&](SlotExchange* slots) -> absl::Status {
    RETURN_IF_ERROR(RequirePointer(gradient, "gradient"));
    ASSIGN_OR_RETURN(*gradient, slots->Gradient(variable));
    return absl::OkStatus();
  });
}

int lockstep_slot_ready(lockstep_id worker, size_t variable) {
  return WithSlots(worker, [&](SlotExchange* slots) { return slots->Ready(variable); });
}

int lockstep_slot_done(lockstep_id worker) {
  return WithSlots(worker, [&](SlotExchange* slots) { return slots->Finish(); });
}

int lockstep_slot_drop(lockstep_id worker) {
  return WithSlots(worker, [&](SlotExchange* slots) { return slots->Drop(); });
}

int lockstep_slot_wanted(lockstep_id worker, int* wanted) {
  return Answer([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto found, Workers().Find(worker));
    RETURN_IF_ERROR(RequirePointer(wanted, "wanted"));
    *wanted = found->wanted() ? 1 : 0;
    return absl::OkStatus();
  });
}
