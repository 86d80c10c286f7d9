// Tests the C interface the way a program uses it, with workers in this process, and with wrong arguments.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/capi/lockstep.h"
#include "lockstep/capi/run_text.h"
#include "lockstep/capi/testing/hosted_chief.h"
#include "lockstep/cli/replay/program_replay.h"
#include "lockstep/common/base/version.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr char kRun[] =
    "training { steps: 40 replicas_to_aggregate: 4 seed: 7 } input { batch_size: 2 } "
    "optimizer { momentum {} learning_rate { initial: 0.1 } }";
constexpr char kModel[] =
    "variables { name: 'w' shape: 3 trainable: true initializer { uniform { min: -1 max: 1 } } } "
    "variables { name: 'mean' shape: 1 } update_ops { variable: 'mean' kind: MOVING_AVERAGE decay: 0.5 }";
constexpr char kFramework[] = "name: 'test' version: '1'";

std::string Logdir(const std::string& name) { return absl::StrCat(std::getenv("TEST_TMPDIR"), "/", name); }

lockstep_worker_options WorkerOptions(const char* master) {
  lockstep_worker_options options = {};
  options.size = sizeof(options);
  options.master = master;
  options.run = kRun;
  options.model = kModel;
  options.framework = kFramework;
  options.examples = 11;
  options.chief_wait_seconds = 20;
  return options;
}

std::unique_ptr<HostedChief> NewChief(const std::string& logdir, const std::string& run = kRun) {
  HostedChief::Options options;
  options.run = ParseRunText(run, {}).value();
  options.logdir = logdir;
  auto chief = HostedChief::Create(options);
  EXPECT_TRUE(chief.ok()) << chief.status();
  return *std::move(chief);
}

lockstep_id NewWorker(const std::string& master) {
  const lockstep_worker_options options = WorkerOptions(master.c_str());
  lockstep_id worker = 0;
  EXPECT_EQ(lockstep_worker_new(&options, &worker), LOCKSTEP_OK) << lockstep_error();
  return worker;
}

// Computes one slot: the gradient of a quadratic loss whose target depends on the indices and the seed.
void Compute(lockstep_id worker, const lockstep_slot& slot) {
  float target = static_cast<float>(slot.seed >> 40) * 1e-8f;
  for (size_t i = 0; i < slot.index_count; ++i) target += static_cast<float>(slot.indices[i]);
  if (lockstep_slot_loss(worker, target) == LOCKSTEP_CANCELLED) {
    EXPECT_EQ(lockstep_slot_drop(worker), LOCKSTEP_OK);
    return;
  }
  EXPECT_EQ(lockstep_slot_metric(worker, "target", target), LOCKSTEP_OK) << lockstep_error();
  EXPECT_EQ(lockstep_slot_update(worker, 0, &target, 1), LOCKSTEP_OK) << lockstep_error();
  float* gradient = nullptr;
  ASSERT_EQ(lockstep_slot_gradient(worker, 0, &gradient), LOCKSTEP_OK) << lockstep_error();
  for (int i = 0; i < 3; ++i) gradient[i] = slot.values[0][i] - target * static_cast<float>(i);
  EXPECT_EQ(lockstep_slot_ready(worker, 0), LOCKSTEP_OK) << lockstep_error();
  EXPECT_EQ(lockstep_slot_done(worker), LOCKSTEP_OK) << lockstep_error();
}

// Computes the canary, then takes the run's first real slot.
lockstep_slot FirstSlot(lockstep_id worker) {
  lockstep_slot slot = {};
  slot.size = sizeof(slot);
  EXPECT_EQ(lockstep_worker_next(worker, -1, &slot), LOCKSTEP_OK) << lockstep_error();
  EXPECT_EQ(slot.fresh, slot.canary == 0 ? 1 : 0) << "the canary comes before the session";
  if (slot.canary == 0) return slot;
  Compute(worker, slot);
  return FirstSlot(worker);
}

// Computes slots until the worker ends, and returns the code that ended it.
int Work(lockstep_id worker) {
  lockstep_slot slot = {};
  slot.size = sizeof(slot);
  while (true) {
    const int code = lockstep_worker_next(worker, -1, &slot);
    if (code != LOCKSTEP_OK) return code;
    Compute(worker, slot);
  }
}

// Does the same with a function that the worker's thread calls.
int WorkInItsThread(lockstep_id worker) {
  return lockstep_worker_run(
      worker, -1,
      [](void* context, const lockstep_slot* slot) {
        Compute(*static_cast<lockstep_id*>(context), *slot);
        return 0;
      },
      &worker);
}

// Trains with `workers` workers in this process, and returns the digest of the last checkpoint.
std::string Train(const std::string& name, int workers, int (*work)(lockstep_id worker) = Work) {
  const std::string logdir = Logdir(name);
  const auto chief = NewChief(logdir);
  std::vector<std::thread> threads;
  for (int i = 0; i < workers; ++i) {
    threads.emplace_back([work, worker = NewWorker(chief->address())] {
      EXPECT_EQ(work(worker), LOCKSTEP_OUT_OF_RANGE) << lockstep_error();
      EXPECT_EQ(lockstep_worker_free(worker), LOCKSTEP_OK);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(chief->Wait().ok());
  const char *digest = "", *checkpoint = "";
  EXPECT_EQ(lockstep_digest(logdir.c_str(), &digest, &checkpoint), LOCKSTEP_OK) << lockstep_error();
  EXPECT_THAT(std::string(checkpoint), HasSubstr("model.ckpt-40"));
  return digest;
}

TEST(CApiTest, OneAndTwoWorkersTrainToTheSameBits) {
  const std::string one = Train("one", 1);
  EXPECT_EQ(one.size(), 64);
  EXPECT_EQ(Train("two", 2), one);
  EXPECT_EQ(Train("functions", 2, WorkInItsThread), one);

  lockstep_id tensors = 0;
  // The text that one call returns is passed as an argument to the next call.
  const char* checkpoint = "";
  ASSERT_EQ(lockstep_digest(Logdir("one").c_str(), nullptr, &checkpoint), LOCKSTEP_OK) << lockstep_error();
  ASSERT_EQ(lockstep_load(checkpoint, &tensors), LOCKSTEP_OK) << lockstep_error();
  size_t count = 0;
  int64_t step = 0;
  ASSERT_EQ(lockstep_tensors_count(tensors, &count, &step), LOCKSTEP_OK);
  EXPECT_EQ(step, 40);
  std::vector<std::string> names;
  lockstep_tensor tensor = {};
  tensor.size = sizeof(tensor);
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(lockstep_tensors_get(tensors, i, &tensor), LOCKSTEP_OK);
    names.push_back(tensor.name);
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"w", "w/Momentum", "mean", "global_step"}));
  EXPECT_EQ(lockstep_tensors_get(tensors, count, &tensor), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_tensors_free(tensors), LOCKSTEP_OK);
  EXPECT_EQ(lockstep_tensors_free(tensors), LOCKSTEP_INVALID_ARGUMENT);
}

class ReplayTest : public ::testing::Test {
 protected:
  ~ReplayTest() override { unsetenv("LOCKSTEP_REPLAY"); }

  // Puts the request into the environment, as `lockstep replay` does.
  void Request(ReplayRequest request, const std::string& run) {
    request.logdir = Logdir(run);
    const std::string definition = ProgramReplay::Definition(request, result_);
    const size_t value = definition.find('=') + 1;
    setenv(definition.substr(0, value - 1).c_str(), definition.c_str() + value, 1);
  }
  // Computes the requested slots, and returns what the library prints.
  std::string Compute(int (*work)(lockstep_id worker) = Work) {
    const lockstep_id worker = NewWorker("");
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(work(worker), LOCKSTEP_CANCELLED) << lockstep_error();
    EXPECT_EQ(lockstep_worker_end(worker, "over"), LOCKSTEP_OK);
    EXPECT_EQ(lockstep_worker_free(worker), LOCKSTEP_OK);
    return ::testing::internal::GetCapturedStdout();
  }
  std::string Result() { return ReadFile(FileSystem::Real(), result_).value_or("none"); }

  const std::string result_ = Logdir(::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ReplayTest, WorkerComputesStepsOfARecordedRun) {
  const std::string digest = Train("replayed", 2);
  ReplayRequest request;
  request.steps = {0, 40};
  Request(request, "replayed");
  for (const auto work : {Work, WorkInItsThread}) {
    std::remove(result_.c_str());
    const std::string output = Compute(work);
    EXPECT_THAT(output, HasSubstr("the same bits as " + Logdir("replayed/model.ckpt-40")));
    EXPECT_THAT(output, HasSubstr("step 40 has the digest " + digest));
    EXPECT_EQ(Result(), "0");
  }
}

TEST_F(ReplayTest, WorkerComputesOneSlot) {
  Train("replayed slot", 1);
  ReplayRequest request;
  request.step = 1;
  request.slot = 3;
  Request(request, "replayed slot");
  const std::string output = Compute();
  EXPECT_THAT(output, HasSubstr("step 1  slot 3  loss "));
  EXPECT_THAT(output, HasSubstr("gradient/w "));
  EXPECT_EQ(Result(), "0");
}

TEST_F(ReplayTest, WorkerThatLeavesWritesNoResult) {
  Train("left", 1);
  ReplayRequest request;
  request.steps = {0, 40};
  Request(request, "left");
  const lockstep_id worker = NewWorker("");
  FirstSlot(worker);
  EXPECT_EQ(lockstep_worker_free(worker), LOCKSTEP_OK);
  EXPECT_EQ(Result(), "none");
}

TEST_F(ReplayTest, OtherProgramIsRefused) {
  Train("refusing", 1);
  ReplayRequest request;
  request.steps = {0, 1};
  Request(request, "refusing");
  lockstep_worker_options options = WorkerOptions("");
  const std::string run = absl::StrReplaceAll(kRun, {{"seed: 7", "seed: 8"}});
  const std::pair<void (*)(const char*, lockstep_worker_options*), const char*> cases[] = {
      {[](const char* other, lockstep_worker_options* o) { o->run = other; }, "training.seed: 7 -> 8"},
      {[](const char*, lockstep_worker_options* o) { o->framework = "name: 'other'"; }, "framework is not the run's"},
      {[](const char*, lockstep_worker_options* o) { o->examples = 12; }, "this program reads 12 examples"},
  };
  for (const auto& [change, expected] : cases) {
    options = WorkerOptions("");
    change(run.c_str(), &options);
    std::remove(result_.c_str());
    lockstep_id worker = 0;
    ::testing::internal::CaptureStderr();
    ASSERT_EQ(lockstep_worker_new(&options, &worker), LOCKSTEP_OK) << lockstep_error();
    EXPECT_EQ(Work(worker), LOCKSTEP_CANCELLED);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(expected));
    EXPECT_EQ(lockstep_worker_free(worker), LOCKSTEP_OK);
    EXPECT_EQ(Result(), "2");
  }
}

TEST(CApiTest, SlotsCountByTheirWeights) {
  const std::string logdir = Logdir("weights");
  constexpr char kOneStep[] =
      "training { steps: 1 replicas_to_aggregate: 4 } optimizer { sgd {} learning_rate { initial: 1 } } "
      "input { batch_size: 2 }";
  const auto chief = NewChief(logdir, kOneStep);
  const std::string master = chief->address();
  lockstep_worker_options options = WorkerOptions(master.c_str());
  options.run = kOneStep;
  options.model = "variables { name: 'w' shape: 1 trainable: true initializer { zeros {} } }";
  lockstep_id worker = 0;
  ASSERT_EQ(lockstep_worker_new(&options, &worker), LOCKSTEP_OK) << lockstep_error();
  lockstep_slot slot = {};
  slot.size = sizeof(slot);
  int code = LOCKSTEP_OK;
  // Slot i has gradient i and weight i.
  while ((code = lockstep_worker_next(worker, -1, &slot)) == LOCKSTEP_OK) {
    const auto index = static_cast<float>(slot.index);
    ASSERT_EQ(lockstep_slot_loss(worker, 1), LOCKSTEP_OK) << lockstep_error();
    EXPECT_EQ(lockstep_slot_weight(worker, -1), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_EQ(lockstep_slot_weight(worker, index), LOCKSTEP_OK) << lockstep_error();
    float* gradient = nullptr;
    ASSERT_EQ(lockstep_slot_gradient(worker, 0, &gradient), LOCKSTEP_OK) << lockstep_error();
    *gradient = index;
    EXPECT_EQ(lockstep_slot_ready(worker, 0), LOCKSTEP_OK) << lockstep_error();
    EXPECT_EQ(lockstep_slot_done(worker), LOCKSTEP_OK) << lockstep_error();
  }
  EXPECT_EQ(code, LOCKSTEP_OUT_OF_RANGE) << lockstep_error();
  EXPECT_EQ(lockstep_worker_free(worker), LOCKSTEP_OK);
  EXPECT_TRUE(chief->Wait().ok());

  lockstep_id tensors = 0;
  ASSERT_EQ(lockstep_load(logdir.c_str(), &tensors), LOCKSTEP_OK) << lockstep_error();
  size_t count = 0;
  int64_t step = 0;
  ASSERT_EQ(lockstep_tensors_count(tensors, &count, &step), LOCKSTEP_OK);
  lockstep_tensor tensor = {};
  tensor.size = sizeof(tensor);
  for (size_t i = 0; i < count && std::string(tensor.name == nullptr ? "" : tensor.name) != "w"; ++i) {
    ASSERT_EQ(lockstep_tensors_get(tensors, i, &tensor), LOCKSTEP_OK);
  }
  ASSERT_STREQ(tensor.name, "w");
  EXPECT_FLOAT_EQ(*static_cast<const float*>(tensor.data), -14.0f / 6);
  EXPECT_EQ(lockstep_tensors_free(tensors), LOCKSTEP_OK);
}

TEST(CApiTest, NewRunStartsFromItsFirstWorkersValues) {
  const auto chief = NewChief("");
  const std::string master = chief->address();
  const float values[] = {1, 2, 3}, others[] = {4, 5, 6};
  lockstep_initial_value value = {"w", values, 3};
  lockstep_worker_options options = WorkerOptions(master.c_str());
  options.initial_values = &value;
  options.initial_value_count = 1;
  lockstep_id worker = 0, other = 0;
  ASSERT_EQ(lockstep_worker_new(&options, &worker), LOCKSTEP_OK) << lockstep_error();
  const lockstep_slot slot = FirstSlot(worker);
  EXPECT_EQ(std::vector<float>(slot.values[0], slot.values[0] + 3), std::vector<float>({1, 2, 3}));
  EXPECT_EQ(*slot.values[1], 0) << "its initializer's";
  const char *own = "", *of_run = "";
  ASSERT_EQ(lockstep_worker_initial_values(worker, &own, &of_run), LOCKSTEP_OK) << lockstep_error();
  const std::string digest = own;
  EXPECT_EQ(digest.size(), 64);
  EXPECT_EQ(of_run, digest);
  Compute(worker, slot);

  value.elements = others;
  ASSERT_EQ(lockstep_worker_new(&options, &other), LOCKSTEP_OK) << lockstep_error();
  FirstSlot(other);
  ASSERT_EQ(lockstep_worker_initial_values(other, &own, &of_run), LOCKSTEP_OK) << lockstep_error();
  EXPECT_NE(own, digest);
  EXPECT_EQ(of_run, digest) << "the run's are not its own";
  lockstep_worker_free(other);
  lockstep_worker_free(worker);
}

TEST(CApiTest, AWorkerThatIsFreedWhileItHoldsASlotLeaves) {
  const auto chief = NewChief("");
  const lockstep_id leaver = NewWorker(chief->address());
  FirstSlot(leaver);
  EXPECT_EQ(lockstep_worker_free(leaver), LOCKSTEP_OK);
  EXPECT_EQ(lockstep_slot_loss(leaver, 1), LOCKSTEP_INVALID_ARGUMENT);
  const lockstep_id stayer = NewWorker(chief->address());
  EXPECT_EQ(Work(stayer), LOCKSTEP_OUT_OF_RANGE) << lockstep_error();
  EXPECT_EQ(lockstep_worker_free(stayer), LOCKSTEP_OK);
}

TEST(CApiTest, FreeEndsAWaitInAnotherThread) {
  const std::string nobody = absl::StrCat("unix:", Logdir("nobody"));
  const lockstep_id worker = NewWorker(nobody);
  int code = LOCKSTEP_OK;
  std::thread waiter([&] {
    lockstep_slot slot = {};
    slot.size = sizeof(slot);
    code = lockstep_worker_next(worker, -1, &slot);
  });
  EXPECT_EQ(lockstep_worker_free(worker), LOCKSTEP_OK);
  waiter.join();
  // The worker may already have been freed by the time the thread makes its call.
  EXPECT_TRUE(code == LOCKSTEP_CANCELLED || code == LOCKSTEP_INVALID_ARGUMENT) << code;
}

TEST(CApiTest, AFunctionMayLeaveItsSlotOpen) {
  const auto chief = NewChief("");
  const lockstep_id worker = NewWorker(chief->address());
  lockstep_id freed = worker;
  const auto leave = [](void* context, const lockstep_slot*) {
    EXPECT_EQ(lockstep_worker_free(*static_cast<lockstep_id*>(context)), LOCKSTEP_FAILED_PRECONDITION);
    return 1;
  };
  EXPECT_EQ(lockstep_worker_run(worker, -1, leave, &freed), LOCKSTEP_CANCELLED);
  // The slot is still open.
  EXPECT_EQ(lockstep_worker_run(worker, -1, leave, &freed), LOCKSTEP_FAILED_PRECONDITION);
  EXPECT_EQ(lockstep_slot_loss(worker, 1), LOCKSTEP_OK) << lockstep_error();
  EXPECT_EQ(lockstep_worker_free(worker), LOCKSTEP_OK);
}

TEST(CApiTest, AWorkerOfAnotherRunOrFrameworkIsRefused) {
  const auto chief = NewChief("");
  const std::string master = chief->address();
  const lockstep_id first = NewWorker(master);
  lockstep_slot slot = FirstSlot(first);

  lockstep_worker_options other = WorkerOptions(master.c_str());
  const std::string run = absl::StrReplaceAll(kRun, {{"seed: 7", "seed: 8"}});
  other.run = run.c_str();
  lockstep_id worker = 0;
  ASSERT_EQ(lockstep_worker_new(&other, &worker), LOCKSTEP_OK) << lockstep_error();
  EXPECT_EQ(lockstep_worker_next(worker, -1, &slot), LOCKSTEP_FAILED_PRECONDITION);
  EXPECT_THAT(std::string(lockstep_error()), HasSubstr("training.seed: 7 -> 8"));
  lockstep_worker_free(worker);

  other = WorkerOptions(master.c_str());
  other.framework = "name: 'test' version: '2'";
  ASSERT_EQ(lockstep_worker_new(&other, &worker), LOCKSTEP_OK) << lockstep_error();
  EXPECT_EQ(lockstep_worker_next(worker, -1, &slot), LOCKSTEP_FAILED_PRECONDITION);
  EXPECT_THAT(std::string(lockstep_error()), HasSubstr("version"));
  lockstep_worker_free(worker);

  other = WorkerOptions(master.c_str());
  const lockstep_part part = {"source", "abc", 3};
  other.parts = &part;
  other.part_count = 1;
  ASSERT_EQ(lockstep_worker_new(&other, &worker), LOCKSTEP_OK) << lockstep_error();
  EXPECT_EQ(lockstep_worker_next(worker, -1, &slot), LOCKSTEP_FAILED_PRECONDITION);
  EXPECT_THAT(std::string(lockstep_error()), HasSubstr("source"));
  lockstep_worker_free(worker);
  lockstep_worker_free(first);
}

TEST(CApiTest, ReturnsIndicesAndSeedsOfLaterSlots) {
  const auto chief = NewChief("");
  const lockstep_id worker = NewWorker(chief->address());
  const lockstep_slot slot = FirstSlot(worker);
  int64_t indices[2] = {-1, -1};
  size_t count = 0;
  ASSERT_EQ(lockstep_worker_indices(worker, slot.step, slot.index, indices, 2, &count), LOCKSTEP_OK);
  ASSERT_EQ(count, slot.index_count);
  EXPECT_EQ(indices[0], slot.indices[0]);
  EXPECT_EQ(indices[1], slot.indices[1]);
  uint64_t seed = 0;
  ASSERT_EQ(lockstep_worker_seed(worker, slot.step, slot.index, &seed), LOCKSTEP_OK);
  EXPECT_EQ(seed, slot.seed);
  EXPECT_EQ(lockstep_worker_indices(worker, -1, 0, indices, 2, &count), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_worker_indices(worker, 0, 4, indices, 2, &count), LOCKSTEP_INVALID_ARGUMENT);
  lockstep_worker_free(worker);
}

TEST(CApiTest, IntegersAreReportedInTheirType) {
  const std::string logdir = Logdir("integers");
  const auto chief = NewChief(logdir);
  const std::string model = absl::StrCat(
      kModel, " variables { name: 'seen' dtype: DT_INT64 shape: 2 } update_ops { variable: 'seen' kind: ASSIGN_ADD }");
  const std::string master = chief->address();
  lockstep_worker_options options = WorkerOptions(master.c_str());
  options.model = model.c_str();
  lockstep_id worker = 0;
  ASSERT_EQ(lockstep_worker_new(&options, &worker), LOCKSTEP_OK) << lockstep_error();
  lockstep_slot slot = {};
  slot.size = sizeof(slot);
  const int64_t seen[] = {1, int64_t{1} << 40};
  const float zero = 0, wrong[] = {1, 2};
  int code = LOCKSTEP_OK;
  while ((code = lockstep_worker_next(worker, -1, &slot)) == LOCKSTEP_OK) {
    if (slot.canary == 0) {
      const auto* const values = reinterpret_cast<const int64_t*>(slot.values[2]);
      EXPECT_EQ(values[0], slot.step * 4);
      EXPECT_EQ(values[1], slot.step * 4 * seen[1]);
    }
    if (lockstep_slot_loss(worker, 1) == LOCKSTEP_CANCELLED) {
      EXPECT_EQ(lockstep_slot_drop(worker), LOCKSTEP_OK);
      continue;
    }
    EXPECT_EQ(lockstep_slot_update(worker, 0, &zero, 1), LOCKSTEP_OK) << lockstep_error();
    EXPECT_EQ(lockstep_slot_update(worker, 1, wrong, 2), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_THAT(std::string(lockstep_error()), HasSubstr("update of \"seen\" is float32, the variable is int64"));
    EXPECT_EQ(lockstep_slot_update_integers(worker, 1, "int65", seen, 2), LOCKSTEP_INVALID_ARGUMENT);
    EXPECT_EQ(lockstep_slot_update_integers(worker, 1, "int64", seen, 2), LOCKSTEP_OK) << lockstep_error();
    float* gradient = nullptr;
    ASSERT_EQ(lockstep_slot_gradient(worker, 0, &gradient), LOCKSTEP_OK) << lockstep_error();
    for (int i = 0; i < 3; ++i) gradient[i] = 1;
    EXPECT_EQ(lockstep_slot_ready(worker, 0), LOCKSTEP_OK) << lockstep_error();
    EXPECT_EQ(lockstep_slot_done(worker), LOCKSTEP_OK) << lockstep_error();
  }
  EXPECT_EQ(code, LOCKSTEP_OUT_OF_RANGE) << lockstep_error();
  EXPECT_EQ(lockstep_worker_free(worker), LOCKSTEP_OK);
  EXPECT_TRUE(chief->Wait().ok());
}

TEST(CApiTest, AReadAndAStatusNeedNoSession) {
  const auto chief = NewChief("");
  const std::string master = chief->address();
  const lockstep_id worker = NewWorker(master);
  FirstSlot(worker);
  const char* const names[] = {"w"};
  lockstep_id tensors = 0;
  ASSERT_EQ(lockstep_read(master.c_str(), names, 1, 10, &tensors), LOCKSTEP_OK) << lockstep_error();
  lockstep_tensor tensor = {};
  tensor.size = sizeof(tensor);
  ASSERT_EQ(lockstep_tensors_get(tensors, 0, &tensor), LOCKSTEP_OK) << lockstep_error();
  EXPECT_STREQ(tensor.name, "w");
  EXPECT_STREQ(tensor.dtype, "float32");
  ASSERT_EQ(tensor.rank, 1);
  EXPECT_EQ(tensor.shape[0], 3);
  EXPECT_EQ(tensor.bytes, 12);
  lockstep_tensors_free(tensors);
  const char* json = "";
  ASSERT_EQ(lockstep_status(master.c_str(), 10, &json), LOCKSTEP_OK) << lockstep_error();
  EXPECT_THAT(std::string(json), HasSubstr("\"global_step\": 0"));
  lockstep_worker_free(worker);
}

TEST(CApiTest, EveryWrongArgumentIsAnError) {
  constexpr lockstep_id kNone = 12345678;
  lockstep_slot slot = {};
  float* gradient = nullptr;
  const char* text = nullptr;
  size_t count = 0;
  int64_t step = 0;
  uint64_t seed = 0;
  int wanted = 0;
  lockstep_id id = 0;
  const lockstep_worker_options small = {};
  const int codes[] = {
      lockstep_worker_new(nullptr, &id),
      lockstep_worker_new(&small, &id),
      lockstep_worker_next(kNone, 0, &slot),
      lockstep_worker_run(
          kNone, 0, [](void*, const lockstep_slot*) { return 0; }, nullptr),
      lockstep_worker_indices(kNone, 0, 0, nullptr, 0, &count),
      lockstep_worker_seed(kNone, 0, 0, &seed),
      lockstep_worker_spec(kNone, &text),
      lockstep_worker_initial_values(kNone, &text, nullptr),
      lockstep_worker_end(kNone, "over"),
      lockstep_worker_stop(kNone),
      lockstep_worker_free(0),
      lockstep_slot_loss(kNone, 1),
      lockstep_slot_weight(kNone, 1),
      lockstep_slot_metric(kNone, "m", 1),
      lockstep_slot_end_run(kNone),
      lockstep_slot_update(kNone, 0, nullptr, 0),
      lockstep_slot_gradient(kNone, 0, &gradient),
      lockstep_slot_ready(kNone, 0),
      lockstep_slot_done(kNone),
      lockstep_slot_drop(kNone),
      lockstep_slot_wanted(kNone, &wanted),
      lockstep_read(nullptr, nullptr, 0, 1, &id),
      lockstep_read("", nullptr, 0, 1, &id),
      lockstep_read("127.0.0.1:1", nullptr, 1, 1, &id),
      lockstep_read("127.0.0.1:1", nullptr, 0, std::numeric_limits<double>::quiet_NaN(), &id),
      lockstep_load(nullptr, &id),
      lockstep_tensors_count(kNone, &count, &step),
      lockstep_tensors_get(kNone, 0, nullptr),
      lockstep_tensors_free(kNone),
      lockstep_digest(nullptr, &text, nullptr),
      lockstep_status("not an address:", 1, &text),
      lockstep_parse_run(nullptr, nullptr, nullptr, 0, nullptr, nullptr),
      lockstep_parse_run("training {", nullptr, nullptr, 0, nullptr, nullptr),
      lockstep_parse_run("\xff", nullptr, nullptr, 0, nullptr, nullptr),
  };
  for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); ++i) EXPECT_EQ(codes[i], LOCKSTEP_INVALID_ARGUMENT) << i;
  EXPECT_EQ(lockstep_load("/no/such/file", &id), LOCKSTEP_NOT_FOUND);
  const lockstep_id worker = NewWorker("127.0.0.1:1");
  EXPECT_EQ(lockstep_worker_run(worker, 0, nullptr, nullptr), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_EQ(lockstep_worker_free(worker), LOCKSTEP_OK);
}

TEST(CApiTest, WrongCertificatesChangeNothing) {
  EXPECT_EQ(lockstep_use_tls("/no/such/folder"), LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_THAT(std::string(lockstep_error()), HasSubstr("/no/such/folder/ca.crt"));
  EXPECT_EQ(lockstep_use_tls("\xff"), LOCKSTEP_INVALID_ARGUMENT);
  // Plaintext connections still succeed.
  const auto chief = NewChief("");
  const lockstep_id worker = NewWorker(chief->address());
  FirstSlot(worker);
  EXPECT_EQ(lockstep_worker_free(worker), LOCKSTEP_OK);
}

void SetValues(const lockstep_initial_value* values, size_t count, lockstep_worker_options* options) {
  options->initial_values = values;
  options->initial_value_count = count;
}

TEST(CApiTest, EachWrongOptionOfAWorkerIsNamed) {
  static constexpr float kValues[] = {1, 2, 3};
  static constexpr lockstep_initial_value kOfNone = {"v", kValues, 3}, kShort = {"w", kValues, 2};
  static constexpr lockstep_initial_value kTwice[] = {{"w", kValues, 3}, {"w", kValues, 3}};
  using Change = void (*)(lockstep_worker_options*);
  const std::pair<Change, const char*> cases[] = {
      {[](lockstep_worker_options* o) { o->master = nullptr; }, "options.master is null"},
      {[](lockstep_worker_options* o) { o->master = ""; }, "master is empty"},
      {[](lockstep_worker_options* o) { o->name = "\xff"; }, "options.name is not UTF-8"},
      {[](lockstep_worker_options* o) { o->model = "variables {"; }, "model:1"},
      {[](lockstep_worker_options* o) { o->model = ""; }, "no trainable variable"},
      {[](lockstep_worker_options* o) { o->model = "variables { name: 'w' shape: 0 trainable: true }"; }, "shape"},
      {[](lockstep_worker_options* o) { o->framework = ""; }, "framework has no name"},
      {[](lockstep_worker_options* o) { o->run = "training { steps: -1 }"; }, "training.steps"},
      {[](lockstep_worker_options* o) { o->examples = -1; }, "options.examples is -1"},
      {[](lockstep_worker_options* o) { o->part_count = 1; }, "options.parts is null"},
      {[](lockstep_worker_options* o) { SetValues(nullptr, 1, o); }, "options.initial_values is null"},
      {[](lockstep_worker_options* o) { SetValues(&kOfNone, 1, o); }, "initial value for v, which is no variable"},
      {[](lockstep_worker_options* o) { SetValues(&kShort, 1, o); },
       "the initial value of w has 2 elements, the variable has 3"},
      {[](lockstep_worker_options* o) { SetValues(kTwice, 2, o); }, "two initial values for w"},
      {[](lockstep_worker_options* o) { o->size = 8; }, "options.size is 8"},
  };
  for (const auto& [change, expected] : cases) {
    lockstep_worker_options options = WorkerOptions("127.0.0.1:1");
    change(&options);
    lockstep_id worker = 0;
    EXPECT_EQ(lockstep_worker_new(&options, &worker), LOCKSTEP_INVALID_ARGUMENT) << expected;
    EXPECT_THAT(std::string(lockstep_error()), HasSubstr(expected));
  }
}

TEST(CApiTest, AnOlderProgramHasFewerOptions) {
  lockstep_worker_options options = WorkerOptions("127.0.0.1:1");
  options.size = offsetof(lockstep_worker_options, initial_values);
  SetValues(nullptr, 1, &options);  // another variable's memory
  lockstep_id worker = 0;
  EXPECT_EQ(lockstep_worker_new(&options, &worker), LOCKSTEP_OK) << lockstep_error();
  EXPECT_EQ(lockstep_worker_free(worker), LOCKSTEP_OK);
  --options.size;
  EXPECT_EQ(lockstep_worker_new(&options, &worker), LOCKSTEP_INVALID_ARGUMENT);
}

TEST(CApiTest, ARunIsParsedWithItsOverridesAndDefaults) {
  const char* const overrides[] = {"training.steps=12", "cluster.lease_seconds=2"};
  const char *text = "", *json = "";
  ASSERT_EQ(lockstep_parse_run(kRun, nullptr, overrides, 2, &text, &json), LOCKSTEP_OK) << lockstep_error();
  EXPECT_THAT(std::string(text), HasSubstr("steps: 12"));
  EXPECT_THAT(std::string(text), HasSubstr("lease_seconds: 2"));
  EXPECT_THAT(std::string(json), HasSubstr("\"batch_size\":\"2\""));
}

TEST(CApiTest, TheLogGoesToTheProgram) {
  static std::vector<std::string>* const lines = new std::vector<std::string>;
  ASSERT_EQ(lockstep_set_log([](void*, int, const char* line) { lines->push_back(line); }, nullptr), LOCKSTEP_OK);
  NewChief("");
  ASSERT_EQ(lockstep_set_log(nullptr, nullptr), LOCKSTEP_OK);
  EXPECT_THAT(*lines, ::testing::Contains(HasSubstr("listening on")));
  const size_t count = lines->size();
  NewChief("");
  EXPECT_EQ(lines->size(), count);
}

TEST(CApiTest, TellsItsVersion) {
  EXPECT_EQ(lockstep_abi_version(), LOCKSTEP_ABI_VERSION);
  EXPECT_THAT(std::string(lockstep_version()), HasSubstr(kVersion));
}

}  // namespace
}  // namespace lockstep
