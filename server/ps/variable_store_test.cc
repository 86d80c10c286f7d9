#include "lockstep/server/ps/variable_store.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/memory/testing/residency.h"
#include "lockstep/common/tensor/rounding.h"
#include "lockstep/server/ps/initializer.h"
#include "lockstep/server/ps/versions/prefault.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "big" has two segments; "mean" and "count" are not trained.
constexpr char kModel[] = R"(
  variables { name: "w" dtype: DT_FLOAT shape: 2 shape: 3 trainable: true initializer { normal { stddev: 1 } } }
  variables { name: "mean" dtype: DT_FLOAT shape: 2 initializer { constant { value: 4 } } }
  variables { name: "big" dtype: DT_FLOAT shape: 65537 trainable: true initializer { constant { value: 1 } } }
  variables { name: "count" dtype: DT_FLOAT }
  update_ops { variable: "mean" kind: MOVING_AVERAGE decay: 0.5 }
  update_ops { variable: "count" kind: ASSIGN_ADD }
)";

v1::ModelSpec Model() {
  v1::ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kModel, &model));
  return model;
}

config::v1::OptimizerConfig Optimizer(const std::string& text) {
  config::v1::OptimizerConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config));
  return config;
}

constexpr char kAdam[] = "adam {} learning_rate { initial: 0.1 }";

class VariableStoreTest : public ::testing::Test {
 protected:
  VariableStoreTest() { EXPECT_TRUE(fs_.CreateDirectory("d").ok()); }

  static std::unique_ptr<VariableStore> NewStore(const std::string& optimizer = kAdam, uint64_t seed = 7) {
    auto store = VariableStore::Create(Model(), Optimizer(optimizer)).value();
    store->Initialize(seed);
    return store;
  }

  static float GradientOf(int64_t step, int64_t flat) { return std::sin(static_cast<float>(step * 100 + flat % 97)); }

  static void ApplyAll(VariableStore* store) {
    std::vector<float> gradient;
    for (size_t s = 0; s < store->layout().segments().size(); ++s) {
      const auto& segment = store->layout().segments()[s];
      if (!store->layout().variables()[segment.variable].spec.trainable()) continue;
      gradient.resize(segment.elements);
      for (int64_t i = 0; i < segment.elements; ++i) gradient[i] = GradientOf(store->step(), segment.flat_offset + i);
      store->ApplySegment(static_cast<int>(s), gradient.data(), 2);
    }
  }
  static void Commit(VariableStore* store) {
    const std::vector<std::vector<std::vector<float>>> updates = {{{8, 0}, {1}}, {{0, 4}, {2}}};
    store->CommitUpdate(updates);
  }
  static void RunStep(VariableStore* store) {
    store->BeginUpdate();
    ApplyAll(store);
    Commit(store);
  }

  // Returns all variables and slots as saved.
  std::string Bytes(const VariableStore::Snapshot& snapshot) {
    EXPECT_TRUE(Save(snapshot, "d/bytes").ok());
    return ReadFile(&fs_, "d/bytes.data-00000-of-00001")
        .value_or(ReadFile(&fs_, "d/bytes.data-00000-of-00002").value_or("none"));
  }
  absl::Status Save(const VariableStore::Snapshot& snapshot, const std::string& prefix) {
    auto writer = BundleWriter::Create(&fs_, prefix);
    if (!writer.ok()) return writer.status();
    absl::Status status = WriteSnapshot(snapshot, writer->get());
    if (status.ok()) status = (*writer)->Finish();
    return status;
  }
  static float ValueOf(const VariableStore& store, int variable, int64_t element) {
    return store.values()->as<float>()[store.layout().variables()[variable].flat_offset + element];
  }

  MemoryFileSystem fs_;
};

TEST_F(VariableStoreTest, StartsFromTheSeedAndTheNames) {
  const auto store = NewStore();
  std::vector<float> expected(6);
  InitializeVariable(Model().variables(0), 7, absl::MakeSpan(expected));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(ValueOf(*store, 0, i), expected[i]);
  EXPECT_EQ(ValueOf(*store, 1, 1), 4);
  EXPECT_EQ(ValueOf(*store, 2, 65536), 1);
  EXPECT_EQ(store->step(), 0);
  EXPECT_NE(ValueOf(*NewStore(kAdam, 8), 0, 0), expected[0]);
}

TEST_F(VariableStoreTest, UpdatesApplyOptimizerThenFoldInOrder) {
  const auto store = NewStore("sgd {} learning_rate { initial: 0.25 }");
  const auto before = store->values();
  EXPECT_EQ(store->next_published(), nullptr);
  store->BeginUpdate();
  ASSERT_NE(store->next_published(), nullptr);
  ApplyAll(store.get());
  EXPECT_EQ(store->values(), before) << "the old version stays current until the commit";
  Commit(store.get());
  EXPECT_EQ(store->step(), 1);
  EXPECT_EQ(store->next_published(), nullptr);
  const int64_t at = store->layout().variables()[2].flat_offset + 65536;
  EXPECT_EQ(ValueOf(*store, 2, 65536), 1 - GradientOf(0, at) / 2 * 0.25f);
  // mean: 4 -> 4 - (4 - 8) / 2 = 6 -> 6 - (6 - 0) / 2 = 3; the other element 4 -> 2 -> 3.
  EXPECT_EQ(ValueOf(*store, 1, 0), 3);
  EXPECT_EQ(ValueOf(*store, 1, 1), 3);
  EXPECT_EQ(ValueOf(*store, 3, 0), 3);
  EXPECT_EQ(before->as<float>()[store->layout().variables()[1].flat_offset], 4) << "a reader of the old version";
}

// Checks that the published values are the store's own values, rounded to bfloat16 if they are trainable.
void ExpectRounded(const VariableStore& store, const PublishedValues& published) {
  const auto& layout = store.layout();
  for (const auto& segment : layout.segments()) {
    const FloatChunks chunks = published.Segment(layout, segment);
    const bool trainable = layout.variables()[segment.variable].spec.trainable();
    EXPECT_EQ(chunks.type(), trainable ? v1::DT_BFLOAT16 : v1::DT_FLOAT);
    std::vector<float> values(segment.elements), expected(segment.elements);
    chunks.CopyTo(0, segment.elements, values.data());
    const float* const flat = published.flat->as<float>() + segment.flat_offset;
    expected.assign(flat, flat + segment.elements);
    if (trainable) RoundTo(v1::DT_BFLOAT16, segment.elements, expected.data());
    EXPECT_EQ(values, expected) << "variable " << segment.variable << " from " << segment.offset;
  }
}

TEST_F(VariableStoreTest, ASkippedUpdateOnlyCounts) {
  const auto store = NewStore();
  RunStep(store.get());
  const auto before = store->TakeSnapshot();
  store->BeginUpdate();
  ApplyAll(store.get());
  store->SkipUpdate();
  EXPECT_EQ(store->step(), 2);
  EXPECT_EQ(store->next_published(), nullptr);
  const auto skipped = store->TakeSnapshot();
  EXPECT_EQ(skipped.step, 2);
  EXPECT_EQ(skipped.values, before.values);
  EXPECT_EQ(skipped.optimizer_state, before.optimizer_state);
  ASSERT_EQ(skipped.scalars.size(), 2u);
  for (size_t i = 0; i < skipped.scalars.size(); ++i) {
    EXPECT_EQ(skipped.scalars[i].value, before.scalars[i].value) << skipped.scalars[i].name;
  }
  RunStep(store.get());
  EXPECT_EQ(store->step(), 3);
  EXPECT_NE(store->TakeSnapshot().values, before.values);
}

TEST_F(VariableStoreTest, WorkersGetRoundedValuesSavesGetWhole) {
  Compression compression;
  compression.values = v1::DT_BFLOAT16;
  auto store = VariableStore::Create(Model(), Optimizer(kAdam), compression).value();
  const auto plain = NewStore();
  store->Initialize(7);
  ExpectRounded(*store, *store->published());
  for (int step = 0; step < 3; ++step) {
    store->BeginUpdate();
    const auto next = store->next_published();
    ApplyAll(store.get());
    Commit(store.get());
    EXPECT_EQ(store->published(), next) << "encoded once, as each segment is applied";
    ExpectRounded(*store, *store->published());
    RunStep(plain.get());
  }
  EXPECT_EQ(Bytes(store->TakeSnapshot()), Bytes(plain->TakeSnapshot()))
      << "the same gradients, the same float32 update";
  ASSERT_TRUE(Save(store->TakeSnapshot(), "d/c").ok());
  const auto reader = BundleReader::Open(&fs_, "d/c").value();
  auto restored = VariableStore::Create(Model(), Optimizer(kAdam), compression).value();
  ASSERT_TRUE(restored->Restore(*reader).ok());
  ExpectRounded(*restored, *restored->published());
  auto warm = VariableStore::Create(Model(), Optimizer(kAdam), compression).value();
  warm->Initialize(9);
  WarmStartPlan plan;
  plan.loads.push_back({0, "w"});
  ASSERT_TRUE(warm->WarmStart(*reader, plan).ok());
  ExpectRounded(*warm, *warm->published());
}

TEST_F(VariableStoreTest, EstimatesAreSavedAndRestored) {
  Compression compression;
  compression.top_k = 0.5;
  const auto step = [](VariableStore* store) {
    store->BeginUpdate();
    for (size_t s = 0; s < store->layout().segments().size(); ++s) {
      if (!store->layout().variables()[store->layout().segments()[s].variable].spec.trainable()) continue;
      for (int64_t slot : {0, 1}) {
        std::string bytes(2, '\0');
        const auto difference = static_cast<float>(100 * s + slot + store->step() + 1);
        bytes.append(reinterpret_cast<const char*>(&difference), sizeof(difference));
        const float* const sum = store->AddToEstimate(static_cast<int>(s), slot, bytes);
        if (slot == 1) store->ApplySegment(static_cast<int>(s), sum, 2);
      }
    }
    Commit(store);
  };
  auto store = VariableStore::Create(Model(), Optimizer(kAdam), compression, 2).value();
  store->Initialize(7);
  for (int64_t slot : {0, 1}) EXPECT_EQ(store->estimates()->at(slot)->as<float>()[5], 0);
  step(store.get());
  const auto snapshot = store->TakeSnapshot();
  step(store.get());
  EXPECT_EQ(store->estimates()->at(1)->as<float>()[0], 2 + 3);
  ASSERT_TRUE(Save(snapshot, "d/e").ok());
  const auto reader = BundleReader::Open(&fs_, "d/e").value();
  EXPECT_EQ(reader->Read("w/GradientEstimate_1").value().flat<float>()[0], 2) << "as it was when it was taken";
  auto restored = VariableStore::Create(Model(), Optimizer(kAdam), compression, 2).value();
  ASSERT_TRUE(restored->Restore(*reader).ok());
  step(restored.get());
  EXPECT_EQ(Bytes(restored->TakeSnapshot()), Bytes(store->TakeSnapshot()));
  auto more = VariableStore::Create(Model(), Optimizer(kAdam), compression, 3).value();
  EXPECT_TRUE(absl::IsNotFound(more->Restore(*reader))) << "another number of slots";
}

TEST_F(VariableStoreTest, UncompressedValuesAreReadInPlace) {
  const auto store = NewStore();
  const auto published = store->published();
  EXPECT_EQ(published->encoded, nullptr);
  const auto& segment = store->layout().segments()[0];
  EXPECT_EQ(published->Segment(store->layout(), segment).Contiguous(0, segment.elements), store->values()->as<float>());
}

TEST_F(VariableStoreTest, SnapshotsKeepTheirBitsDuringUpdates) {
  const auto store = NewStore();
  RunStep(store.get());
  const VariableStore::Snapshot snapshot = store->TakeSnapshot();
  EXPECT_EQ(snapshot.step, 1);
  const std::string bytes = Bytes(snapshot);
  for (int i = 0; i < 4; ++i) RunStep(store.get());
  EXPECT_EQ(Bytes(snapshot), bytes);
  EXPECT_NE(Bytes(store->TakeSnapshot()), bytes);
}

TEST_F(VariableStoreTest, MidUpdateSnapshotsHaveCommittedBits) {
  for (const char* optimizer :
       {kAdam, "momentum {} learning_rate { initial: 0.1 }", "sgd {} learning_rate { initial: 0.1 }"}) {
    const auto store = VariableStore::Create(Model(), Optimizer(optimizer)).value();
    const auto undisturbed = VariableStore::Create(Model(), Optimizer(optimizer)).value();
    for (VariableStore* each : {store.get(), undisturbed.get()}) {
      each->Initialize(7);
      RunStep(each);
    }
    store->BeginUpdate();
    const VariableStore::Snapshot before = store->TakeSnapshot();
    ApplyAll(store.get());
    const VariableStore::Snapshot applied = store->TakeSnapshot();
    const std::string bytes = Bytes(undisturbed->TakeSnapshot());
    EXPECT_EQ(applied.step, 1);
    EXPECT_EQ(Bytes(before), bytes);
    EXPECT_EQ(Bytes(applied), bytes);
    Commit(store.get());
    RunStep(store.get());
    EXPECT_EQ(Bytes(before), bytes);
    EXPECT_EQ(Bytes(applied), bytes);
    RunStep(undisturbed.get());
    RunStep(undisturbed.get());
    EXPECT_EQ(Bytes(store->TakeSnapshot()), Bytes(undisturbed->TakeSnapshot())) << "a snapshot changed the training";
  }
}

TEST_F(VariableStoreTest, HoldsAThirdVersionOnlyForASnapshot) {
  const auto store = VariableStore::Create(Model(), Optimizer(kAdam)).value();
  store->Initialize(7);
  std::set<const void*> buffers;
  const auto collect = [&] {
    const VariableStore::Snapshot snapshot = store->TakeSnapshot();
    buffers.insert(snapshot.values.get());
    for (const auto& slot : snapshot.optimizer_state) buffers.insert(slot.get());
  };
  for (int i = 0; i < 10; ++i) {
    RunStep(store.get());
    collect();
  }
  EXPECT_EQ(buffers.size(), 2 * 3u);
  for (int i = 0; i < 10; ++i) {
    const VariableStore::Snapshot snapshot = store->TakeSnapshot();
    for (int step = 0; step < 3; ++step) {
      RunStep(store.get());
      collect();
    }
  }
  EXPECT_EQ(buffers.size(), 3 * 3u);
}

TEST_F(VariableStoreTest, APreparedUpdateNeedsNoFreshMemory) {
  v1::ModelSpec model;
  *model.add_variables() = Model().variables(2);
  model.mutable_variables(0)->set_shape(0, 4 << 20);  // large enough for memory directly from the kernel
  for (const bool prepared : {false, true}) {
    const auto store = VariableStore::Create(model, Optimizer(kAdam)).value();
    store->Initialize(7);
    if (prepared) Prefault(Executor::Threads(), store->PrepareSnapshots()).Await();
    const VariableStore::Snapshot snapshot = store->TakeSnapshot();
    store->BeginUpdate();
    store->CommitUpdate({});
    const VariableStore::Snapshot next = store->TakeSnapshot();
    EXPECT_EQ(IsResident(*next.values), prepared);
    ASSERT_EQ(next.optimizer_state.size(), 2u);
    for (size_t i = 0; i < next.optimizer_state.size(); ++i) {
      EXPECT_NE(next.optimizer_state[i], snapshot.optimizer_state[i]);
      EXPECT_EQ(IsResident(*next.optimizer_state[i]), prepared);
    }
  }
}

constexpr char kGroups[] = R"(
  adam { weight_decay: 0.1 } learning_rate { initial: 0.1 } moving_average { decay: 0.5 }
  group { variables: "^w$" rate_factor: 0.5 weight_decay: 0 moving_average: false optimizer { clip { mean_by_global_norm: 1 } } }
)";

TEST_F(VariableStoreTest, GroupsUpdateAsIfAlone) {
  // The store holds segments, because a mean is clipped.
  const auto run = [](VariableStore* store) {
    for (int step = 0; step < 3; ++step) {
      store->BeginUpdate();
      ASSERT_TRUE(store->holds_segments());
      for (size_t s = 0; s < store->layout().segments().size(); ++s) {
        const auto& segment = store->layout().segments()[s];
        if (!store->layout().variables()[segment.variable].spec.trainable()) continue;
        std::vector<float> gradient(segment.elements, 0.001f * static_cast<float>(step + 1));
        store->HoldSegment(static_cast<int>(s), gradient.data(), 2);
      }
      store->ApplyHeld(2);
      Commit(store);
    }
  };
  const auto groups = NewStore(kGroups);
  const auto whole =
      NewStore("adam { weight_decay: 0.1 } learning_rate { initial: 0.1 } clip { mean_by_global_norm: 9 }");
  const auto alone = NewStore("adam {} learning_rate { initial: 0.05 } clip { mean_by_global_norm: 1 }");
  for (VariableStore* store : {groups.get(), whole.get(), alone.get()}) run(store);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(ValueOf(*groups, 0, i), ValueOf(*alone, 0, i)) << i;
  for (const int i : {0, 65535, 65536}) EXPECT_EQ(ValueOf(*groups, 2, i), ValueOf(*whole, 2, i)) << i;
  ASSERT_TRUE(Save(groups->TakeSnapshot(), "d/groups").ok());
  const auto reader = BundleReader::Open(&fs_, "d/groups").value();
  EXPECT_TRUE(reader->Contains("big/ExponentialMovingAverage"));
  EXPECT_FALSE(reader->Contains("w/ExponentialMovingAverage"));
}

TEST_F(VariableStoreTest, OnlyTheSelectedHaveAverages) {
  constexpr char kSome[] = "adam {} learning_rate { initial: 0.1 } moving_average { decay: 0.5 variables: '^w$' }";
  const auto some = NewStore(kSome),
             all = NewStore("adam {} learning_rate { initial: 0.1 } moving_average { decay: 0.5 }");
  RunStep(some.get());
  RunStep(all.get());
  ASSERT_TRUE(Save(some->TakeSnapshot(), "d/some").ok());
  ASSERT_TRUE(Save(all->TakeSnapshot(), "d/all").ok());
  const auto reader = BundleReader::Open(&fs_, "d/some").value(), other = BundleReader::Open(&fs_, "d/all").value();
  EXPECT_FALSE(reader->Contains("big/ExponentialMovingAverage"));
  for (const char* const key : {"w/ExponentialMovingAverage", "w", "big", "big/Adam_1"}) {
    EXPECT_EQ(reader->Read(key).value().bytes(), other->Read(key).value().bytes()) << key;
  }
  EXPECT_NE(reader->Read("w/ExponentialMovingAverage").value().bytes(), reader->Read("w").value().bytes());
  const auto restored = NewStore(kSome);
  ASSERT_TRUE(restored->Restore(*reader).ok());
  RunStep(some.get());
  RunStep(restored.get());
  EXPECT_EQ(Bytes(restored->TakeSnapshot()), Bytes(some->TakeSnapshot()));
  const absl::Status set = some->Assign({{"big/ExponentialMovingAverage", Tensor::FromValues<float>({1}, {1})}});
  EXPECT_THAT(std::string(set.message()), HasSubstr("no variable or optimizer state big/ExponentialMovingAverage"));
}

TEST_F(VariableStoreTest, AMeanIsClippedOverItsGroupAlone) {
  const auto store = NewStore(
      "sgd {} learning_rate { initial: 1 } group { variables: '^w$' optimizer { clip { mean_by_global_norm: 1 } } }");
  const float w = ValueOf(*store, 0, 0);
  store->BeginUpdate();
  for (size_t s = 0; s < store->layout().segments().size(); ++s) {
    const auto& segment = store->layout().segments()[s];
    if (!store->layout().variables()[segment.variable].spec.trainable()) continue;
    store->HoldSegment(static_cast<int>(s), std::vector<float>(segment.elements, 4).data(), 2);
  }
  store->ApplyHeld(2);
  Commit(store.get());
  EXPECT_EQ(ValueOf(*store, 2, 0), 1 - 2) << "without a limit";
  EXPECT_NEAR(ValueOf(*store, 0, 0), w - 1 / std::sqrt(6.0f), 1e-6);
}

TEST_F(VariableStoreTest, AVariableOfTwoGroupsIsNamed) {
  const auto status = VariableStore::Create(Model(), Optimizer("sgd {} group { variables: 'w' rate_factor: 2 } "
                                                               "group { variables: '.' rate_factor: 2 }"))
                          .status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("variable w matches optimizer.group[0] (\"w\") and"));
}

// SM-06
TEST_F(VariableStoreTest, ARestoredStoreContinuesWithSameBits) {
  for (const char* optimizer :
       {kAdam, "sgd {}", "momentum { dampening: 0.5 }", "ftrl {}", "rmsprop { centered: true }", "nadam {}",
        "adam { amsgrad: true }", "adagrad_da {}",
        "adam {} group { variables: '^w$' optimizer { nadam {} learning_rate { initial: 0.2 } } }"}) {
    config::v1::OptimizerConfig config = Optimizer(optimizer);
    config.mutable_learning_rate()->set_initial(0.1f);
    auto store = VariableStore::Create(Model(), config).value();
    store->Initialize(7);
    RunStep(store.get());
    RunStep(store.get());
    ASSERT_TRUE(Save(store->TakeSnapshot(), "d/model.ckpt-2").ok());
    auto restored = VariableStore::Create(Model(), config).value();
    const auto reader = BundleReader::Open(&fs_, "d/model.ckpt-2").value();
    ASSERT_TRUE(restored->Restore(*reader).ok());
    EXPECT_EQ(restored->step(), 2);
    RunStep(store.get());
    RunStep(restored.get());
    EXPECT_EQ(Bytes(restored->TakeSnapshot()), Bytes(store->TakeSnapshot())) << optimizer;
  }
}

class ZeroDebiasTest : public VariableStoreTest {
 protected:
  static std::unique_ptr<VariableStore> NewStore() {
    v1::ModelSpec model = Model();
    model.mutable_update_ops(0)->set_zero_debias(true);
    auto store = VariableStore::Create(model, Optimizer(kAdam)).value();
    store->Initialize(7);
    return store;
  }
  std::vector<float> Saved(const VariableStore& store, const std::string& key) {
    EXPECT_TRUE(Save(store.TakeSnapshot(), "d/saved").ok());
    const Tensor tensor = BundleReader::Open(&fs_, "d/saved").value()->Read(key).value();
    return std::vector<float>(tensor.flat<float>().begin(), tensor.flat<float>().end());
  }
};

TEST_F(ZeroDebiasTest, KeepsItsStateInCheckpoints) {
  const auto store = NewStore();
  RunStep(store.get());
  // The average of 8 and 0 has the weights 1/4 and 1/2 of 3/4, whatever the initial value is.
  EXPECT_THAT(Saved(*store, "mean"), ElementsAre(2.0f / 0.75f, 2.0f / 0.75f));
  EXPECT_THAT(Saved(*store, "mean/biased"), ElementsAre(2, 2));
  EXPECT_THAT(Saved(*store, "mean/local_step"), ElementsAre(2));
  ASSERT_TRUE(Save(store->TakeSnapshot(), "d/model.ckpt-1").ok());
  const auto reader = BundleReader::Open(&fs_, "d/model.ckpt-1").value();
  EXPECT_EQ(reader->Describe("mean/local_step").value().shape, Shape({}));
  const auto restored = NewStore();
  RunStep(restored.get());
  RunStep(restored.get());
  ASSERT_TRUE(restored->Restore(*reader).ok());
  RunStep(store.get());
  RunStep(restored.get());
  EXPECT_EQ(Bytes(restored->TakeSnapshot()), Bytes(store->TakeSnapshot()));
  EXPECT_THAT(Saved(*restored, "mean/local_step"), ElementsAre(4));
}

TEST_F(ZeroDebiasTest, AnotherModelsCheckpointIsRefused) {
  const auto other = VariableStoreTest::NewStore();
  ASSERT_TRUE(Save(other->TakeSnapshot(), "d/without").ok());
  const absl::Status status = NewStore()->Restore(*BundleReader::Open(&fs_, "d/without").value());
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("mean/biased"));
}

TEST_F(ZeroDebiasTest, ItsStateStartsAtZeroAgain) {
  const auto store = NewStore();
  RunStep(store.get());
  store->Initialize(7);
  EXPECT_THAT(Saved(*store, "mean/biased"), ElementsAre(0, 0));
  EXPECT_THAT(Saved(*store, "mean/local_step"), ElementsAre(0));
}

TEST_F(ZeroDebiasTest, ASkippedUpdateDoesNotCount) {
  const auto store = NewStore();
  RunStep(store.get());
  store->BeginUpdate();
  ApplyAll(store.get());
  store->SkipUpdate();
  EXPECT_THAT(Saved(*store, "mean/local_step"), ElementsAre(2));
}

TEST_F(ZeroDebiasTest, ItsStateCanBeSet) {
  const auto store = NewStore();
  RunStep(store.get());
  ASSERT_TRUE(store
                  ->Assign({{"mean/biased", Tensor::FromValues<float>({2}, {0, 0})},
                            {"mean/local_step", Tensor::FromValues<float>({}, {0})}})
                  .ok());
  RunStep(store.get());
  EXPECT_THAT(Saved(*store, "mean/biased"), ElementsAre(2, 2)) << "the average has started again";
  EXPECT_THAT(Saved(*store, "mean/local_step"), ElementsAre(2));
  const absl::Status status = store->Assign({{"mean/local_step", Tensor::FromValues<float>({1}, {0})}});
  EXPECT_THAT(std::string(status.message()), HasSubstr("mean/local_step is float32[]; the value is float32[1]"));
}

class IntegerVariablesTest : public VariableStoreTest {
 protected:
  // Adds the written "seen" and the constants "offset" and "flags".
  static v1::ModelSpec ModelWithIntegers() {
    v1::ModelSpec model = Model();
    v1::ModelSpec integers;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      variables { name: "seen" dtype: DT_INT64 shape: 2 initializer { constant { value: -3 } } }
      variables { name: "offset" dtype: DT_INT32 initializer { constant { value: 7 } } }
      variables { name: "flags" dtype: DT_BOOL shape: 5 initializer { constant { value: 1 } } }
      update_ops { variable: "seen" kind: ASSIGN_ADD }
    )",
                                                              &integers));
    model.MergeFrom(integers);
    return model;
  }
  static std::unique_ptr<VariableStore> NewStore() {
    auto store = VariableStore::Create(ModelWithIntegers(), Optimizer(kAdam)).value();
    store->Initialize(7);
    return store;
  }
  // Adds `seen` to "seen".
  static void RunStep(VariableStore* store, const std::vector<int64_t>& seen) {
    std::vector<float> bytes(4);
    std::memcpy(bytes.data(), seen.data(), 16);
    store->BeginUpdate();
    ApplyAll(store);
    store->CommitUpdate(std::vector<std::vector<std::vector<float>>>{{{8, 0}, {1}, bytes}});
  }
  template <typename T>
  std::vector<T> Saved(const VariableStore& store, const std::string& key) {
    EXPECT_TRUE(Save(store.TakeSnapshot(), "d/saved").ok());
    const Tensor tensor = BundleReader::Open(&fs_, "d/saved").value()->Read(key).value();
    EXPECT_EQ(tensor.dtype(), DataTypeOf<T>::value);
    return std::vector<T>(tensor.flat<T>().begin(), tensor.flat<T>().end());
  }
};

TEST_F(IntegerVariablesTest, AreSavedInTheirTypeAndRestored) {
  constexpr int64_t kLarge = (int64_t{1} << 40) + 1;
  const auto store = NewStore();
  EXPECT_THAT(Saved<int64_t>(*store, "seen"), ElementsAre(-3, -3));
  EXPECT_THAT(Saved<int32_t>(*store, "offset"), ElementsAre(7));
  RunStep(store.get(), {1, kLarge});
  EXPECT_THAT(Saved<int64_t>(*store, "seen"), ElementsAre(-2, kLarge - 3));
  EXPECT_THAT(Saved<bool>(*store, "flags"), ElementsAre(true, true, true, true, true));
  ASSERT_TRUE(Save(store->TakeSnapshot(), "d/model.ckpt-1").ok());
  const auto restored = NewStore();
  ASSERT_TRUE(restored->Restore(*BundleReader::Open(&fs_, "d/model.ckpt-1").value()).ok());
  RunStep(store.get(), {5, 5});
  RunStep(restored.get(), {5, 5});
  EXPECT_EQ(Bytes(restored->TakeSnapshot()), Bytes(store->TakeSnapshot()));
  EXPECT_THAT(Saved<int64_t>(*restored, "seen"), ElementsAre(3, kLarge + 2));
}

TEST_F(IntegerVariablesTest, CheckpointsMustHaveTheirType) {
  const auto store = NewStore();
  ASSERT_TRUE(Save(store->TakeSnapshot(), "d/model.ckpt-0").ok());
  v1::ModelSpec other = ModelWithIntegers();
  other.mutable_variables(4)->set_dtype(v1::DT_INT32);
  const auto restored = VariableStore::Create(other, Optimizer(kAdam)).value();
  const absl::Status status = restored->Restore(*BundleReader::Open(&fs_, "d/model.ckpt-0").value());
  EXPECT_THAT(std::string(status.message()), HasSubstr("seen is int64[2], the model declares int32[2]"));
}

TEST_F(IntegerVariablesTest, AreSetInTheirType) {
  const auto store = NewStore();
  ASSERT_TRUE(store
                  ->Assign({{"seen", Tensor::FromValues<int64_t>({2}, {int64_t{1} << 62, 4})},
                            {"flags", Tensor::FromValues<bool>({5}, {true, false, true, false, false})},
                            {"offset", Tensor::FromValues<int32_t>({}, {-9})}})
                  .ok());
  EXPECT_THAT(Saved<int64_t>(*store, "seen"), ElementsAre(int64_t{1} << 62, 4));
  EXPECT_THAT(Saved<bool>(*store, "flags"), ElementsAre(true, false, true, false, false));
  EXPECT_THAT(Saved<int32_t>(*store, "offset"), ElementsAre(-9));
  const absl::Status status = store->Assign({{"seen", Tensor::FromValues<float>({2}, {1, 2})}});
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("seen is int64[2]; the value is float32[2]"));
}

TEST_F(IntegerVariablesTest, AWarmStartLoadsThem) {
  const std::vector<int64_t> seen = {int64_t{1} << 50, 2};
  auto writer = BundleWriter::Create(&fs_, "d/old").value();
  ASSERT_TRUE(writer->Add("seen", v1::DT_INT64, {2}, {reinterpret_cast<const char*>(seen.data()), 16}).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const auto store = NewStore();
  WarmStartPlan plan;
  plan.loads.push_back({4, "seen"});
  ASSERT_TRUE(store->WarmStart(*BundleReader::Open(&fs_, "d/old").value(), plan).ok());
  EXPECT_EQ(Saved<int64_t>(*store, "seen"), seen);
}

TEST_F(IntegerVariablesTest, ABoolIsZeroOrOne) {
  const auto store = NewStore();
  Tensor flags(v1::DT_BOOL, {5});
  std::fill_n(flags.data(), 5, '\0');
  flags.data()[3] = '\2';
  EXPECT_EQ(store->Assign({{"flags", flags}}),
            absl::InvalidArgumentError("flags is set to a bool that is neither 0 nor 1"));
  EXPECT_THAT(Saved<bool>(*store, "flags"), ElementsAre(true, true, true, true, true));
  auto writer = BundleWriter::Create(&fs_, "d/old").value();
  ASSERT_TRUE(writer->Add("flags", v1::DT_BOOL, {5}, flags.bytes()).ok());
  ASSERT_TRUE(writer->Finish().ok());
  WarmStartPlan plan;
  plan.loads.push_back({6, "flags"});
  EXPECT_EQ(store->WarmStart(*BundleReader::Open(&fs_, "d/old").value(), plan),
            absl::InvalidArgumentError("checkpoint d/old: flags has a bool that is neither 0 nor 1"));
}

TEST_F(IntegerVariablesTest, StartAtWholeNumbersOfTheirType) {
  const std::pair<const char*, const char*> cases[] = {
      {"normal {}", "variable offset: its initializer is for float32, but it is int32; use zeros or constant"},
      {"constant { value: 0.5 }", "variable offset: its initializer.constant.value is 0.5, which is no int32"},
      {"constant { value: 3e9 }", "which is no int32"},
      {"constant { value: -16777217 }", "its initializer.constant.value is -16777216, which may be rounded"},
      {"constant { value: nan }", "variable offset: initializer.constant.value is nan"},
  };
  for (const auto& [initializer, message] : cases) {
    v1::ModelSpec model = ModelWithIntegers();
    EXPECT_TRUE(
        google::protobuf::TextFormat::ParseFromString(initializer, model.mutable_variables(5)->mutable_initializer()));
    const absl::Status status = VariableStore::Create(model, Optimizer(kAdam)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  v1::ModelSpec model = ModelWithIntegers();
  model.mutable_variables(5)->mutable_initializer()->mutable_constant()->set_value(16777215);
  EXPECT_TRUE(VariableStore::Create(model, Optimizer(kAdam)).ok());
}

class ConstantVariablesTest : public VariableStoreTest {
 protected:
  static v1::ModelSpec ModelWithBase() {
    v1::ModelSpec model = Model();
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"pb(name: "base"
                                                                   dtype: DT_FLOAT
                                                                   shape: 3
                                                                   initializer { constant { value: 2 } })pb",
                                                              model.add_variables()));
    return model;
  }
  static std::unique_ptr<VariableStore> NewStore() {
    auto store = VariableStore::Create(ModelWithBase(), Optimizer(kAdam)).value();
    store->Initialize(7);
    return store;
  }
  static std::vector<float> Base(const VariableStore& store) {
    const auto& layout = store.layout();
    const FloatChunks chunks =
        store.published()->Segment(layout, layout.segments()[layout.variables()[4].first_segment]);
    return std::vector<float>(chunks.Contiguous(0, 3), chunks.Contiguous(0, 3) + 3);
  }
};

TEST_F(ConstantVariablesTest, HaveNoStateAndAreSaved) {
  const auto store = NewStore();
  RunStep(store.get());
  ASSERT_TRUE(Save(store->TakeSnapshot(), "d/model.ckpt-1").ok());
  const auto reader = BundleReader::Open(&fs_, "d/model.ckpt-1").value();
  EXPECT_FALSE(reader->Contains("base/Adam"));
  EXPECT_EQ(reader->Read("base").value().flat<float>()[2], 2);
  auto restored = VariableStore::Create(ModelWithBase(), Optimizer(kAdam)).value();
  ASSERT_TRUE(restored->Restore(*reader).ok());
  RunStep(store.get());
  RunStep(restored.get());
  EXPECT_EQ(Bytes(restored->TakeSnapshot()), Bytes(store->TakeSnapshot()));
}

TEST_F(ConstantVariablesTest, IgnoreStateInACheckpoint) {
  const auto store = NewStore();
  ASSERT_TRUE(Save(store->TakeSnapshot(), "d/model.ckpt-0").ok());
  const auto whole = BundleReader::Open(&fs_, "d/model.ckpt-0").value();
  auto writer = BundleWriter::Create(&fs_, "d/with_state").value();
  for (const std::string& name : whole->names()) {
    const auto tensor = whole->Read(name).value();
    ASSERT_TRUE(writer->Add(name, tensor.dtype(), tensor.shape(), tensor.bytes()).ok());
    if (name != "base") continue;
    ASSERT_TRUE(writer->Add("base/Adam", v1::DT_FLOAT, Shape({3}), std::string(3 * sizeof(float), '\0')).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
  const auto restored = NewStore();
  ASSERT_TRUE(restored->Restore(*BundleReader::Open(&fs_, "d/with_state").value()).ok());
  EXPECT_EQ(Bytes(restored->TakeSnapshot()), Bytes(store->TakeSnapshot()));
}

TEST_F(ConstantVariablesTest, AreSetWithoutACopyOfTheRest) {
  const auto store = NewStore();
  const VariableStore::Snapshot before = store->TakeSnapshot();
  const std::string bytes = Bytes(before);
  ASSERT_TRUE(store->Assign({{"base", Tensor::FromValues<float>({3}, {5, 6, 7})}}).ok());
  EXPECT_EQ(store->values(), before.values);
  EXPECT_THAT(Base(*store), ElementsAre(5, 6, 7));
  EXPECT_EQ(Bytes(before), bytes) << "a snapshot keeps the values of its time";
  const auto constants = store->TakeSnapshot().constants;
  ASSERT_TRUE(store->Assign({{"w", Tensor::FromValues<float>({2, 3}, {1, 2, 3, 4, 5, 6})}}).ok());
  RunStep(store.get());
  EXPECT_EQ(store->TakeSnapshot().constants, constants);
  EXPECT_THAT(Base(*store), ElementsAre(5, 6, 7));
  ASSERT_TRUE(Save(store->TakeSnapshot(), "d/set").ok());
  EXPECT_EQ(BundleReader::Open(&fs_, "d/set").value()->Read("base").value().flat<float>()[2], 7);
}

TEST_F(ConstantVariablesTest, AWarmStartLoadsThem) {
  const std::vector<float> body = {1, 2, 3};
  auto writer = BundleWriter::Create(&fs_, "d/body").value();
  ASSERT_TRUE(writer->Add("base", v1::DT_FLOAT, {3}, {reinterpret_cast<const char*>(body.data()), 12}).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const auto store = NewStore();
  WarmStartPlan plan;
  plan.loads.push_back({4, "base"});
  ASSERT_TRUE(store->WarmStart(*BundleReader::Open(&fs_, "d/body").value(), plan).ok());
  EXPECT_THAT(Base(*store), ElementsAre(1, 2, 3));
  RunStep(store.get());
  EXPECT_THAT(Base(*store), ElementsAre(1, 2, 3));
}

TEST_F(ConstantVariablesTest, TakeTheMemoryOfTwoVersions) {
  const auto with = NewStore();
  const auto without = VariableStoreTest::NewStore();
  const VariableStore::MemoryUse use = {/*saves=*/true, /*reads=*/true};
  const auto bytes = static_cast<uint64_t>(with->layout().constant_elements()) * sizeof(float);
  EXPECT_EQ(with->MemoryNeeded(use), without->MemoryNeeded(use) + 2 * bytes);
}

TEST_F(VariableStoreTest, RestoreNamesTheMismatch) {
  struct Case {
    std::string leave_out;
    std::function<absl::Status(BundleWriter*)> instead;
    absl::StatusCode code;
    std::string text;
  };
  const std::string six(6 * sizeof(float), '\0');
  const Case cases[] = {
      {"w", nullptr, absl::StatusCode::kNotFound, "w"},
      {"w/Adam_1", nullptr, absl::StatusCode::kNotFound, "w/Adam_1"},
      {"beta1_power", nullptr, absl::StatusCode::kNotFound, "beta1_power"},
      {"global_step", nullptr, absl::StatusCode::kNotFound, "global_step"},
      {"w",
       [&](BundleWriter* w) {
         return w->Add("w", v1::DT_FLOAT, {3, 2}, six);
       },
       absl::StatusCode::kInvalidArgument, "w is float32[3,2], the model declares float32[2,3]"},
      {"w",
       [&](BundleWriter* w) {
         return w->Add("w", v1::DT_INT32, {2, 3}, six);
       },
       absl::StatusCode::kInvalidArgument, "w is int32[2,3]"},
      {"global_step", [](BundleWriter* w) { return w->Add("global_step", v1::DT_INT32, {}, "abcd"); },
       absl::StatusCode::kInvalidArgument, "global_step is int32"},
      {"global_step", [](BundleWriter* w) { return w->Add("global_step", v1::DT_INT64, {}, std::string(8, '\xff')); },
       absl::StatusCode::kInvalidArgument, "global_step is -1"},
      {"beta2_power", [](BundleWriter* w) { return w->Add("beta2_power", v1::DT_FLOAT, {2}, "abcdefgh"); },
       absl::StatusCode::kInvalidArgument, "beta2_power is float32[2]"},
  };
  const auto store = NewStore();
  ASSERT_TRUE(Save(store->TakeSnapshot(), "d/whole").ok());
  const auto whole = BundleReader::Open(&fs_, "d/whole").value();
  for (const Case& test : cases) {
    {
      auto writer = BundleWriter::Create(&fs_, "d/partial").value();
      for (const std::string& name : whole->names()) {
        if (name == test.leave_out) continue;
        const auto tensor = whole->Read(name).value();
        ASSERT_TRUE(writer->Add(name, tensor.dtype(), tensor.shape(), tensor.bytes()).ok());
      }
      if (test.instead) {
        ASSERT_TRUE(test.instead(writer.get()).ok());
      }
      ASSERT_TRUE(writer->Finish().ok());
    }
    auto restored = VariableStore::Create(Model(), Optimizer(kAdam)).value();
    const auto reader = BundleReader::Open(&fs_, "d/partial").value();
    const absl::Status status = restored->Restore(*reader);
    EXPECT_EQ(status.code(), test.code) << test.text << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.text));
    // After an error, the same store can start over.
    restored->Initialize(7);
    EXPECT_EQ(restored->step(), 0);
    EXPECT_EQ(Bytes(restored->TakeSnapshot()), Bytes(NewStore()->TakeSnapshot())) << test.text;
  }
}

// The chief falls back to an older checkpoint if one is damaged, but not if it belongs to another model.
TEST_F(VariableStoreTest, DamageIsReportedBeforeAnotherModel) {
  ASSERT_TRUE(Save(NewStore()->TakeSnapshot(), "d/model.ckpt-0").ok());
  v1::ModelSpec other = Model();
  other.mutable_variables(0)->set_shape(0, 4);
  const auto store = VariableStore::Create(other, Optimizer(kAdam)).value();
  const auto reader = BundleReader::Open(&fs_, "d/model.ckpt-0").value();
  EXPECT_TRUE(absl::IsInvalidArgument(store->Restore(*reader)));
  fs_.FlipBits("d/model.ckpt-0.data-00000-of-00001", 1000, 4);
  EXPECT_TRUE(absl::IsDataLoss(store->Restore(*reader)));
}

TEST_F(VariableStoreTest, RestoringAgainTakesTheSameMemory) {
  ASSERT_TRUE(Save(NewStore()->TakeSnapshot(), "d/model.ckpt-0").ok());
  const auto store = VariableStore::Create(Model(), Optimizer(kAdam)).value();
  const auto reader = BundleReader::Open(&fs_, "d/model.ckpt-0").value();
  ASSERT_TRUE(store->Restore(*reader).ok());
  const AlignedBuffer* const values = store->values().get();
  ASSERT_TRUE(store->Restore(*reader).ok());
  EXPECT_EQ(store->values().get(), values);
}

TEST_F(VariableStoreTest, RestoreReportsDamage) {
  const auto store = NewStore();
  ASSERT_TRUE(Save(store->TakeSnapshot(), "d/model.ckpt-0").ok());
  fs_.FlipBits("d/model.ckpt-0.data-00000-of-00001", 1000, 4);
  const auto reader = BundleReader::Open(&fs_, "d/model.ckpt-0").value();
  EXPECT_TRUE(absl::IsDataLoss(store->Restore(*reader)));
}

// WARM-09, WARM-07
TEST_F(VariableStoreTest, AWarmStartLoadsOnlyWhatThePlanNames) {
  const std::vector<float> w = {1, 2, 3, 4, 5, 6};
  {
    auto writer = BundleWriter::Create(&fs_, "d/old").value();
    ASSERT_TRUE(writer->Add("old_w", v1::DT_FLOAT, {6}, {reinterpret_cast<const char*>(w.data()), 24}).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  const auto store = NewStore();
  WarmStartPlan plan;
  plan.loads.push_back({0, "old_w", /*reshaped=*/true});
  ASSERT_TRUE(store->WarmStart(*BundleReader::Open(&fs_, "d/old").value(), plan).ok());
  for (int i = 0; i < 6; ++i) EXPECT_EQ(ValueOf(*store, 0, i), w[i]);
  EXPECT_EQ(ValueOf(*store, 1, 0), 4);
  EXPECT_EQ(store->step(), 0);
}

TEST_F(VariableStoreTest, RefusesANonFiniteWarmStart) {
  for (const auto& [value, text] :
       {std::pair<float, const char*>(std::numeric_limits<float>::quiet_NaN(), "nan"), {-1.0f / 0.0f, "-inf"}}) {
    const std::vector<float> w = {1, 2, value, 4, value, 6};
    auto writer = BundleWriter::Create(&fs_, "d/old").value();
    ASSERT_TRUE(writer->Add("old_w", v1::DT_FLOAT, {6}, {reinterpret_cast<const char*>(w.data()), 24}).ok());
    ASSERT_TRUE(writer->Finish().ok());
    WarmStartPlan plan;
    plan.loads.push_back({0, "old_w", /*reshaped=*/true});
    const absl::Status status = NewStore()->WarmStart(*BundleReader::Open(&fs_, "d/old").value(), plan);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(status.message(), absl::StrCat("checkpoint d/old: element 2 of old_w is ", text,
                                             ", no run starts from values that are not finite"));
  }
}

TEST_F(VariableStoreTest, ValuesThatAreNotFiniteAreNotSet) {
  const auto store = NewStore();
  const float before = ValueOf(*store, 0, 2);
  const std::string name = Model().variables(0).name();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const absl::Status status = store->Assign({{name, Tensor::FromValues<float>({2, 3}, {1, 2, nan, 4, 5, 6})}});
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("element 2 of ", name, " is set to nan")));
  EXPECT_EQ(ValueOf(*store, 0, 2), before);
}

TEST_F(VariableStoreTest, KnowsTheMemoryItNeeds) {
  const auto store_of = [](const char* optimizer) {
    return VariableStore::Create(Model(), Optimizer(optimizer)).value();
  };
  // Sizes, in bytes, of all values and of one array over the trained variables, such as an array of optimizer state.
  const ParameterLayout layout = store_of("sgd {}")->layout();
  const uint64_t values = static_cast<uint64_t>(layout.flat_elements()) * sizeof(float);
  const uint64_t trained = static_cast<uint64_t>(layout.trained_elements()) * sizeof(float);
  ASSERT_LT(trained, values);
  const auto sgd = store_of("sgd {}");
  EXPECT_EQ(sgd->MemoryNeeded({/*saves=*/false}), 2 * values);
  EXPECT_EQ(sgd->MemoryNeeded({/*saves=*/true}), 3 * values);
  // Adam keeps two state arrays.
  const auto adam = store_of(kAdam);
  const uint64_t version = values + 2 * trained;
  EXPECT_EQ(adam->MemoryNeeded({false}), 2 * version);
  EXPECT_EQ(adam->MemoryNeeded({true}), 3 * version);
  EXPECT_EQ(adam->MemoryNeeded({/*saves=*/false, /*reads=*/true}), 3 * version);
  EXPECT_EQ(adam->MemoryNeeded({true, true}), 4 * version);
  // Expected numbers of partial sums, without the one in the next values' memory. If the sums are small, the limit is
  // the number that suffices for any order of arrival.
  for (const auto& [slots, sums] :
       std::vector<std::pair<int64_t, uint64_t>>{{1, 0}, {2, 0}, {3, 1}, {4, 1}, {64, 31}}) {
    const auto store = VariableStore::Create(Model(), Optimizer(kAdam), {}, slots).value();
    EXPECT_EQ(store->MemoryNeeded({false}), 2 * version + sums * trained) << slots;
  }
  const auto bounded = VariableStore::Create(Model(), Optimizer(kAdam), {}, 64, /*share_values=*/false, 6).value();
  EXPECT_EQ(bounded->max_partial_sums(), 6);
  EXPECT_EQ(bounded->MemoryNeeded({false}), 2 * version + 5 * trained);
  VariableStore::MemoryUse staging;
  staging.staged_contributions = 3;
  EXPECT_EQ(adam->MemoryNeeded(staging), 2 * version + 3 * adam->gradient_bytes());
  staging.staged_contributions = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(adam->MemoryNeeded(staging), std::numeric_limits<uint64_t>::max());
  Compression compression;
  compression.values = v1::DT_BFLOAT16;
  const auto rounded = VariableStore::Create(Model(), Optimizer(kAdam), compression).value();
  EXPECT_EQ(rounded->MemoryNeeded({false}), 2 * version + trained);
  compression = {};
  compression.top_k = 0.5;
  const auto estimates = VariableStore::Create(Model(), Optimizer(kAdam), compression, 2).value();
  EXPECT_EQ(estimates->MemoryNeeded({true}), 3 * (version + 2 * trained));
  // With top-k, slots are summed one by one, in any order, so the limit of 4 is ignored.
  const auto sparse = VariableStore::Create(Model(), Optimizer(kAdam), compression, 16, false, 4).value();
  EXPECT_EQ(sparse->max_partial_sums(), 8);
}

TEST_F(VariableStoreTest, RefusesMoreThanTheLimit) {
  const auto store = VariableStore::Create(Model(), Optimizer(kAdam)).value();
  const uint64_t model = store->MemoryNeeded({true}), needed = model + VariableStore::kProcessBytes;
  EXPECT_TRUE(store->CheckMemory({true}, {needed, "the machine"}).ok());
  EXPECT_FALSE(store->CheckMemory({true}, {0, "the machine"}).ok());
  EXPECT_TRUE(store->CheckMemory({false}, {needed - 1, "the machine"}).ok());
  EXPECT_TRUE(store->CheckMemory({false, /*reads=*/true}, {needed, "the machine"}).ok());
  EXPECT_FALSE(store->CheckMemory({true, /*reads=*/true}, {needed, "the machine"}).ok());
  const absl::Status status = store->CheckMemory({true}, {needed - 1, "/sys/fs/cgroup/memory.max"});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("need ", model, " bytes")));
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("/sys/fs/cgroup/memory.max has ", needed - 1)));
}

TEST_F(VariableStoreTest, RefusesAModelBeyondTheMachinesMemory) {
  v1::ModelSpec model = Model();
  model.mutable_variables(0)->set_shape(0, int64_t{1} << 36);
  model.mutable_variables(0)->set_shape(1, 1);
  const auto store = VariableStore::Create(model, Optimizer(kAdam)).value();
  const absl::Status status = store->CheckMemory({/*saves=*/false}, {PhysicalMemory(), "the machine"});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the machine has"));
}

// Otherwise training would continue, and every save would fail.
TEST_F(VariableStoreTest, RefusesAModelThatCannotBeSaved) {
  for (const char* name : {"global_step", "beta1_power", "w/Adam", "big/GradientEstimate_1"}) {
    v1::ModelSpec model = Model();
    model.mutable_variables(1)->set_name(name);
    model.mutable_update_ops(0)->set_variable(name);
    Compression compression;
    compression.top_k = 0.5;
    const auto status = VariableStore::Create(model, Optimizer(kAdam), compression, 2).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string("variable ") + name));
  }
}

TEST_F(VariableStoreTest, RefusesAWrongInitializerByVariable) {
  v1::ModelSpec model = Model();
  model.mutable_variables(0)->mutable_initializer()->mutable_normal()->set_stddev(-1);
  const auto status = VariableStore::Create(model, Optimizer(kAdam)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("variable w"));
}

}  // namespace
}  // namespace lockstep
