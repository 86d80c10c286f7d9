#include "lockstep/train/saver/saver.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/latest_valid.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/saver/checkpoints.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

class SaverTest : public ::testing::Test {
 protected:
  SaverTest() {
    EXPECT_TRUE(memory_.CreateDirectory("d").ok());
    options_.fs = &fs_;
    options_.clock = &clock_;
  }

  std::unique_ptr<Saver> Create() {
    auto saver = Saver::Create(options_);
    EXPECT_TRUE(saver.ok()) << saver.status();
    return *std::move(saver);
  }
  static NamedTensor Scalar(const std::string& name, float value) { return NamedFloats(name, {}, {value}).value(); }
  static absl::StatusOr<std::string> Save(Saver* saver, const std::string& path,
                                          absl::optional<int64_t> step = absl::nullopt, float value = 1) {
    return saver->Save(path, step, {Scalar("v", value)});
  }
  Names Files(const std::string& directory = "d") { return memory_.ListDirectory(directory).value(); }
  // Returns the names of the checkpoints, without the suffixes of their files.
  Names OnDisk(const std::string& directory = "d") {
    Names prefixes;
    for (const std::string& name : Files(directory)) {
      if (absl::EndsWith(name, ".index")) prefixes.push_back(name.substr(0, name.size() - 6));
    }
    return prefixes;
  }
  std::string State(const std::string& path = "d/checkpoint") { return ReadFile(&memory_, path).value(); }
  // Writes what a run's chief leaves behind: a record of the run and a listed checkpoint.
  void WriteRun(const std::string& directory, int64_t step) {
    ASSERT_TRUE(memory_.CreateDirectory(directory).ok());
    ASSERT_TRUE(WriteFileAtomically(&memory_, directory + "/lockstep.textproto", "").ok());
    const std::string name = absl::StrCat("model.ckpt-", step);
    auto writer = BundleWriter::Create(&memory_, JoinPath(directory, name)).value();
    ASSERT_TRUE(writer->Add("v", v1::DT_UINT8, {1}, "x").ok());
    ASSERT_TRUE(writer->Finish().ok());
    ASSERT_TRUE(WriteFileAtomically(&memory_, directory + "/checkpoint",
                                    absl::StrCat("model_checkpoint_path: \"", name, "\"\n"))
                    .ok());
  }

  SimulatedClock clock_;
  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
  SaverOptions options_;
};

// SAVE-01, SAVE-02, SAVE-03, SAVE-08
TEST_F(SaverTest, KeepsTheNewestAndListsThem) {
  options_.max_to_keep = 2;
  const auto saver = Create();
  for (const char* path : {"d/s1", "d/s2", "d/s3"}) EXPECT_EQ(Save(saver.get(), path).value(), path);
  EXPECT_THAT(saver->last_checkpoints(), ElementsAre("d/s2", "d/s3"));
  EXPECT_THAT(Files(),
              ElementsAre("checkpoint", "s2.data-00000-of-00001", "s2.index", "s3.data-00000-of-00001", "s3.index"));
  EXPECT_EQ(State(),
            "model_checkpoint_path: \"s3\"\nall_model_checkpoint_paths: \"s2\"\nall_model_checkpoint_paths: \"s3\"\n");
  ASSERT_TRUE(Save(saver.get(), "d/s2").ok());
  EXPECT_THAT(saver->last_checkpoints(), ElementsAre("d/s3", "d/s2"));
  EXPECT_THAT(OnDisk(), ElementsAre("s2", "s3"));
  ASSERT_TRUE(Save(saver.get(), "d/s1").ok());
  EXPECT_THAT(saver->last_checkpoints(), ElementsAre("d/s2", "d/s1"));
  EXPECT_THAT(OnDisk(), ElementsAre("s1", "s2"));
  EXPECT_EQ(LatestCheckpoint("d", "checkpoint", &fs_)->value(), "d/s1");
}

// SAVE-05: there is no ".meta" file, because there is no graph.
TEST_F(SaverTest, ShardsAreDataFiles) {
  options_.shards = 2;
  const auto saver = Create();
  ASSERT_TRUE(saver->Save("d/s1", absl::nullopt, {Scalar("v0", 1), Scalar("v1", 2)}).ok());
  EXPECT_THAT(Files(), ElementsAre("checkpoint", "s1.data-00000-of-00002", "s1.data-00001-of-00002", "s1.index"));
  EXPECT_EQ(ReadFile(&fs_, "d/s1.data-00001-of-00002")->size(), 4u);
  EXPECT_EQ(saver->Restore("d/s1")->at(1).value.flat<float>()[0], 2);
  options_.max_to_keep = 1;
  const auto next = Create();
  for (const char* path : {"d/s1", "d/s2"}) ASSERT_TRUE(Save(next.get(), path).ok());
  EXPECT_THAT(Files(), ElementsAre("checkpoint", "s2.data-00000-of-00002", "s2.data-00001-of-00002", "s2.index"));
}

// SAVE-06
TEST_F(SaverTest, WithoutALimitAllStayAndOnlyTheNewestIsListed) {
  options_.max_to_keep = 0;
  const auto saver = Create();
  for (const char* path : {"d/s1", "d/s2"}) ASSERT_TRUE(Save(saver.get(), path).ok());
  EXPECT_THAT(saver->last_checkpoints(), IsEmpty());
  EXPECT_THAT(OnDisk(), ElementsAre("s1", "s2"));
  EXPECT_EQ(State(), "model_checkpoint_path: \"s2\"\nall_model_checkpoint_paths: \"s2\"\n");
}

// SAVE-09, SAVE-10
TEST_F(SaverTest, AnotherOneTakesTheHistoryOver) {
  const auto first = Create();
  for (int64_t step : {1, 2, 3}) ASSERT_TRUE(Save(first.get(), "d/s", step).ok());
  const auto second = Create();
  ASSERT_TRUE(second->RecoverLastCheckpoints(first->last_checkpoints()).ok());
  EXPECT_EQ(second->last_checkpoints(), first->last_checkpoints());
  ASSERT_TRUE(RemoveCheckpoint("d/s-1", &fs_).ok());
  ASSERT_TRUE(second->RecoverLastCheckpoints(first->last_checkpoints()).ok());
  EXPECT_THAT(second->last_checkpoints(), ElementsAre("d/s-2", "d/s-3"));
  ASSERT_TRUE(Save(second.get(), "d/s", 4).ok());
  EXPECT_THAT(second->last_checkpoints(), ElementsAre("d/s-2", "d/s-3", "d/s-4"));
}

// F-13: the history survives a restart, and an overlong list is shortened.
TEST_F(SaverTest, TheHistoryOfTheStateFileSurvivesARestart) {
  const auto first = Create();
  for (int64_t step : {1, 2, 3, 4, 5}) ASSERT_TRUE(Save(first.get(), "d/s", step).ok());
  options_.max_to_keep = 2;
  const auto second = Create();
  ASSERT_TRUE(second->RecoverHistory("d").ok());
  EXPECT_EQ(second->last_checkpoints().size(), 5u);
  EXPECT_EQ(OnDisk().size(), 5u) << "nothing is deleted before a save";
  ASSERT_TRUE(Save(second.get(), "d/s", 6).ok());
  EXPECT_THAT(OnDisk(), ElementsAre("s-5", "s-6"));
  EXPECT_THAT(second->last_checkpoints(), ElementsAre("d/s-5", "d/s-6"));
  ASSERT_TRUE(memory_.CreateDirectory("empty").ok());
  EXPECT_TRUE(second->RecoverHistory("empty").ok());
}

// SAVE-12
TEST_F(SaverTest, OneOfEachPeriodIsKept) {
  options_.max_to_keep = 2;
  options_.keep_checkpoint_every_n_hours = 0.7 / 3600;
  const auto saver = Create();
  clock_.Advance(absl::Seconds(1));
  for (const char* path : {"d/s1", "d/s2", "d/s3", "d/s4"}) ASSERT_TRUE(Save(saver.get(), path).ok());
  EXPECT_THAT(OnDisk(), ElementsAre("s1", "s3", "s4"));
  EXPECT_THAT(saver->last_checkpoints(), ElementsAre("d/s3", "d/s4"));
}

TEST_F(SaverTest, WhatIsSetWithoutTimesIsNeverDeleted) {
  options_.max_to_keep = 1;
  const auto saver = Create();
  for (const char* path : {"d/s1", "d/s2"}) ASSERT_TRUE(Save(saver.get(), path).ok());
  saver->SetLastCheckpoints({"d/s2"});
  ASSERT_TRUE(Save(saver.get(), "d/s3").ok());
  EXPECT_THAT(OnDisk(), ElementsAre("s2", "s3"));
  saver->SetLastCheckpointsWithTimes({{"d/s2", clock_.WallTime()}, {"d/s3", clock_.WallTime()}});
  ASSERT_TRUE(Save(saver.get(), "d/s4").ok());
  EXPECT_THAT(OnDisk(), ElementsAre("s4"));
}

// SAVE-15
TEST_F(SaverTest, ThePrefixEndsInTheStep) {
  EXPECT_EQ(Save(Create().get(), "d/s", 5).value(), "d/s-5");
  EXPECT_EQ(Save(Create().get(), "d/", 5).value(), "d/model.ckpt-5") << "a directory";
  options_.pad_step_number = true;
  EXPECT_EQ(Save(Create().get(), "d/s", 5).value(), "d/s-00000005");
  EXPECT_EQ(Save(Create().get(), "d/s", 1234567890).value(), "d/s-1234567890");
  EXPECT_TRUE(absl::IsInvalidArgument(Save(Create().get(), "d/s", -1).status()));
}

// SAVE-16, SAVE-17
TEST_F(SaverTest, ACheckpointIsNotCalledLikeTheStateFile) {
  const absl::Status status = Save(Create().get(), "d/checkpoint").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("latest_filename collides"));
  EXPECT_TRUE(Save(Create().get(), "d/checkpoint", 1).ok());
  options_.shards = 1;
  EXPECT_TRUE(Save(Create().get(), "d/checkpoint").ok());
}

// SAVE-19
TEST_F(SaverTest, SaysThatTheDirectoryIsMissing) {
  const absl::Status status = Save(Create().get(), "missing/s", 1).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "Parent directory of missing/s-1 doesn't exist, can't save");
}

// SAVE-20
TEST_F(SaverTest, SaysThatThereIsNoCheckpoint) {
  const absl::Status status = Create()->Restore("d/absent").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"d/absent\" is not a valid checkpoint"));
  EXPECT_TRUE(absl::IsInvalidArgument(Create()->Restore("").status()));
}

// SAVE-22
TEST_F(SaverTest, SaysWhichKeyIsMissing) {
  ASSERT_TRUE(Save(Create().get(), "d/s").ok());
  options_.var_list = Names{"v", "w"};
  const absl::Status status = Create()->Restore("d/s").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "checkpoint d/s has no variable w");
}

// SAVE-23
TEST_F(SaverTest, TwoVariablesDoNotShareAKey) {
  const absl::Status same = Create()->Save("d/s", 1, {Scalar("v", 1), Scalar("v", 2)}).status();
  EXPECT_EQ(same.message(), "Saver: at least two variables have the name v");
  options_.keys = {{"a", "b"}};
  EXPECT_EQ(Create()->Save("d/s", 1, {Scalar("a", 1), Scalar("b", 2)}).status().message(),
            "Saver: at least two variables have the key b");
  options_.var_list = Names{"a", "b"};
  EXPECT_EQ(Saver::Create(options_).status().message(), "Saver: at least two variables have the key b");
  options_.keys.clear();
  options_.var_list = Names{"a", "a"};
  EXPECT_EQ(Saver::Create(options_).status().message(), "Saver: var_list names a twice");
  EXPECT_THAT(Files(), IsEmpty());
}

// SAVE-25, SAVE-27
TEST_F(SaverTest, ARelativeDirectoryIsNotInTheStateFile) {
  options_.save_relative_paths = false;
  const auto saver = Create();
  for (int64_t step : {0, 1, 2}) ASSERT_TRUE(Save(saver.get(), "d/model", step, step).ok());
  EXPECT_THAT(State(), HasSubstr("all_model_checkpoint_paths: \"model-0\""));
  const std::string latest = LatestCheckpoint("d", "checkpoint", &fs_)->value();
  EXPECT_EQ(latest, "d/model-2");
  EXPECT_EQ(saver->Restore(latest)->front().value.flat<float>()[0], 2);
  ASSERT_TRUE(Save(saver.get(), "here", 3).ok()) << "in the working directory";
  EXPECT_THAT(State("./checkpoint"), HasSubstr("model_checkpoint_path: \"here-3\""));
  EXPECT_THAT(State("./checkpoint"), HasSubstr("all_model_checkpoint_paths: \"d/model-2\""));
}

// SAVE-26, SAVE-29
TEST_F(SaverTest, StoresAnAbsoluteDirectoryOnRequest) {
  ASSERT_TRUE(memory_.CreateDirectory("/a/b").ok());
  const auto relative = Create();
  ASSERT_TRUE(Save(relative.get(), "/a/b/model", 0).ok());
  EXPECT_EQ(State("/a/b/checkpoint"), "model_checkpoint_path: \"model-0\"\nall_model_checkpoint_paths: \"model-0\"\n");
  EXPECT_EQ(GetCheckpointState("/a/b", "checkpoint", &fs_).value()->model_checkpoint_path(), "/a/b/model-0");
  options_.save_relative_paths = false;
  ASSERT_TRUE(Save(Create().get(), "/a/b/model", 1).ok());
  EXPECT_EQ(State("/a/b/checkpoint"),
            "model_checkpoint_path: \"/a/b/model-1\"\nall_model_checkpoint_paths: \"/a/b/model-1\"\n");
}

TEST_F(SaverTest, OneSaverMayUseSeveralDirectories) {
  ASSERT_TRUE(memory_.CreateDirectory("/a").ok());
  ASSERT_TRUE(memory_.CreateDirectory("/b").ok());
  const auto saver = Create();
  ASSERT_TRUE(Save(saver.get(), "/a/s", 1).ok());
  ASSERT_TRUE(Save(saver.get(), "/b/s", 2).ok());
  EXPECT_THAT(State("/b/checkpoint"), HasSubstr("all_model_checkpoint_paths: \"../a/s-1\""));
  const auto recovered = Create();
  ASSERT_TRUE(recovered->RecoverHistory("/b").ok());
  EXPECT_THAT(recovered->last_checkpoints(), ElementsAre("/b/s-2")) << "no /b/../a in this file system";
}

// SAVE-30, SAVE-32, SAVE-33
TEST_F(SaverTest, TheStateFileIsReadAsItStands) {
  EXPECT_FALSE(GetCheckpointState("d", "checkpoint", &fs_)->has_value());
  EXPECT_FALSE(LatestCheckpoint("d", "checkpoint", &fs_)->has_value());
  ASSERT_TRUE(WriteFileAtomically(&fs_, "d/checkpoint", "").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(GetCheckpointState("d", "checkpoint", &fs_).status()));
  ASSERT_TRUE(WriteFileAtomically(&fs_, "d/mine", "model_checkpoint_path: \"./model.ckpt-687529\"").ok());
  EXPECT_EQ(GetCheckpointState("d", "mine", &fs_).value()->model_checkpoint_path(), "d/./model.ckpt-687529");
  EXPECT_FALSE(LatestCheckpoint("d", "mine", &fs_)->has_value());
}

TEST_F(SaverTest, AnswersWhichCheckpointsThereAre) {
  const auto saver = Create();
  for (int64_t step : {1, 2}) ASSERT_TRUE(Save(saver.get(), "d/s", step).ok());
  memory_.SetModificationTime("d/s-1.index", absl::FromUnixSeconds(11));
  memory_.SetModificationTime("d/s-2.index", absl::FromUnixSeconds(12));
  EXPECT_TRUE(CheckpointExists("d/s-1", &fs_).value());
  EXPECT_THAT(CheckpointModificationTimes({"d/s-2", "d/absent", "d/s-1"}, &fs_).value(),
              ElementsAre(absl::FromUnixSeconds(12), absl::FromUnixSeconds(11)));
  ASSERT_TRUE(RemoveCheckpoint("d/s-1", &fs_).ok());
  EXPECT_FALSE(CheckpointExists("d/s-1", &fs_).value());
  EXPECT_THAT(OnDisk(), ElementsAre("s-2"));
  EXPECT_TRUE(RemoveCheckpoint("d/s-1", &fs_).ok());
}

TEST_F(SaverTest, SavesAndRestoresWhatTheListNamesUnderItsKeys) {
  options_.var_list = Names{"b", "a"};
  options_.keys = {{"a", "theirs/a"}};
  const auto saver = Create();
  ASSERT_TRUE(saver->Save("d/s", 1, {Scalar("a", 1), Scalar("b", 2), Scalar("c", 3)}).ok());
  EXPECT_THAT(BundleReader::Open(&fs_, "d/s-1").value()->names(), ElementsAre("b", "theirs/a"));
  const auto values = saver->Restore("d/s-1");
  ASSERT_TRUE(values.ok()) << values.status();
  ASSERT_EQ(values->size(), 2u);
  EXPECT_EQ(values->at(0).name, "b");
  EXPECT_EQ(values->at(1).name, "a");
  EXPECT_EQ(values->at(1).value.flat<float>()[0], 1);
  options_.var_list.reset();
  EXPECT_EQ(Create()->Restore("d/s-1")->at(1).name, "a") << "without a list all come back, under their own names";
  const absl::Status lacks = saver->Save("d/s", 2, {Scalar("b", 2)}).status();
  EXPECT_EQ(lacks.message(), "Saver: var_list names a, without a value among the 1 that are to be saved");
}

TEST_F(SaverTest, KeepsTypesAndBits) {
  Tensor step(v1::DT_INT64, Shape());
  step.flat<int64_t>()[0] = int64_t{1} << 60;
  const std::vector<float> odd = {-0.0f, 1e-45f, 3e38f, 0.1f};
  const auto saver = Create();
  ASSERT_TRUE(saver->Save("d/s", 1, {{"global_step", step}, NamedFloats("w", {2, 2}, odd).value()}).ok());
  const auto values = saver->Restore("d/s-1").value();
  EXPECT_EQ(values[0].value.flat<int64_t>()[0], int64_t{1} << 60);
  EXPECT_EQ(values[1].value.shape(), (Shape{2, 2}));
  EXPECT_EQ(values[1].value.bytes(), NamedFloats("w", {4}, odd)->value.bytes());
  EXPECT_TRUE(absl::IsInvalidArgument(saver->Save("d/s", 2, {{"nothing", Tensor()}}).status()));
  EXPECT_EQ(NamedFloats("w", {3}, odd).status().message(), "variable w of shape [3] has 4 values where 3 are expected");
}

TEST_F(SaverTest, RestoresTheShapesThatAreExpected) {
  ASSERT_TRUE(Create()->Save("d/s", 1, {NamedFloats("w", {1, 2}, {10, 11}).value(), Scalar("extra", 1)}).ok());
  v1::ModelSpec model;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(variables { name: "w" dtype: DT_FLOAT shape: 2 shape: 1 })", &model));
  const absl::Status status = Create()->Restore("d/s-1", &model).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "checkpoint d/s-1: w is float32[1,2], the variable w is float32[2,1]");
  options_.reshape = true;
  const auto values = Create()->Restore("d/s-1", &model);
  ASSERT_TRUE(values.ok()) << values.status();
  ASSERT_EQ(values->size(), 1u) << "what else there is, is ignored";
  EXPECT_EQ(values->front().value.shape(), (Shape{2, 1}));
  EXPECT_EQ(values->front().value.flat<float>()[1], 11);
}

TEST_F(SaverTest, SavesNothingOnlyWhenThatIsAllowed) {
  EXPECT_TRUE(absl::IsInvalidArgument(Create()->Save("d/s", 1, {}).status()));
  options_.var_list = Names{};
  EXPECT_TRUE(absl::IsInvalidArgument(Saver::Create(options_).status()));
  options_.allow_empty = true;
  EXPECT_EQ(Create()->Save("d/s", 1, {Scalar("v", 1)}).value(), "");
  EXPECT_TRUE(Create()->Restore("d/absent")->empty());
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(SaverTest, RefusesOptionsThatCannotBe) {
  const auto wrong = [this](const std::function<void(SaverOptions*)>& change) {
    SaverOptions options = options_;
    change(&options);
    const absl::Status status = Saver::Create(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  EXPECT_THAT(wrong([](SaverOptions* o) { o->max_to_keep = -1; }), HasSubstr("max_to_keep is -1; 0 keeps all"));
  EXPECT_THAT(wrong([](SaverOptions* o) { o->keep_checkpoint_every_n_hours = -1; }), HasSubstr("every_n_hours is -1"));
  EXPECT_THAT(wrong([](SaverOptions* o) { o->shards = 10000; }), HasSubstr("0 to 9999"));
  EXPECT_THAT(wrong([](SaverOptions* o) { o->latest_filename = "a/b"; }), HasSubstr("without a directory"));
  for (const char* name : {"s-1.index", "s-1.data-00000-of-00001", ".", ".."}) {
    EXPECT_THAT(wrong([name](SaverOptions* o) { o->latest_filename = name; }),
                HasSubstr(absl::StrCat("\"", name, "\"")));
  }
  EXPECT_THAT(wrong([](SaverOptions* o) { o->basename = ""; }), HasSubstr("basename is \"\""));
  EXPECT_THAT(wrong([](SaverOptions* o) { o->keys = {{"a", ""}}; }), HasSubstr("the key of a is empty"));
  EXPECT_THAT(wrong([](SaverOptions* o) {
                o->var_list = Names{"a"};
                o->keys = {{"A", "b"}};
              }),
              HasSubstr("the variable A, which var_list does not name"));
}

TEST_F(SaverTest, WithoutAStateFileNothingIsListedOrDeleted) {
  options_.write_state = false;
  options_.max_to_keep = 1;
  const auto saver = Create();
  for (int64_t step : {1, 2}) ASSERT_TRUE(Save(saver.get(), "d/s", step).ok());
  EXPECT_THAT(OnDisk(), ElementsAre("s-1", "s-2"));
  EXPECT_EQ(Files().size(), 4u);
  EXPECT_THAT(saver->last_checkpoints(), IsEmpty());
}

class Recorder : public SaverListener {
 public:
  absl::Status BeforeSave(absl::optional<int64_t> step) override { return Note(absl::StrCat("before ", *step)); }
  absl::Status AfterSave(absl::optional<int64_t> step, const std::string& prefix) override {
    return Note(absl::StrCat("after ", *step, " ", prefix));
  }
  absl::Status End(absl::optional<int64_t> step) override { return Note(absl::StrCat("end ", *step)); }

  Names notes;
  std::string failing = "none";

 private:
  absl::Status Note(std::string note) {
    notes.push_back(note);
    return absl::StartsWith(note, failing) ? absl::AbortedError(note) : absl::OkStatus();
  }
};

TEST_F(SaverTest, ListenersAreToldBeforeAfterAndAtTheEnd) {
  Recorder first, second;
  options_.listeners = {&first, &second};
  const auto saver = Create();
  ASSERT_TRUE(Save(saver.get(), "d/s", 1).ok());
  ASSERT_TRUE(saver->End(2).ok());
  EXPECT_THAT(first.notes, ElementsAre("before 1", "after 1 d/s-1", "end 2"));
  EXPECT_EQ(second.notes, first.notes);
  first.failing = "before";
  EXPECT_TRUE(absl::IsAborted(Save(saver.get(), "d/s", 3).status()));
  EXPECT_THAT(OnDisk(), ElementsAre("s-1"));
  first.failing = "after";
  EXPECT_TRUE(absl::IsAborted(Save(saver.get(), "d/s", 4).status()));
  EXPECT_THAT(OnDisk(), ElementsAre("s-1", "s-4"));
  first.failing = "end";
  EXPECT_TRUE(absl::IsAborted(saver->End(5)));
  EXPECT_EQ(second.notes.back(), "end 5") << "is told all the same";
}

// Fails each operation, in turn, of a save that replaces the oldest checkpoint.
TEST_F(SaverTest, AFailedSaveLosesNoneOfThoseThatAreListed) {
  options_.max_to_keep = 2;
  int64_t operations = 0;  // of one save
  for (int64_t n = 0; n <= operations; ++n) {
    SCOPED_TRACE(n);
    const auto saver = Create();
    for (int64_t step : {1, 2}) ASSERT_TRUE(Save(saver.get(), "d/s", step).ok());
    const int64_t before = fs_.operations();
    if (n > 0) fs_.FailOperation(n, absl::ResourceExhaustedError("full"));
    const bool saved = Save(saver.get(), "d/s", 3).ok();
    if (n == 0) operations = fs_.operations() - before;
    EXPECT_TRUE(saved || n > 0);
    fs_.Heal();
    const auto state = GetCheckpointState("d", "checkpoint", &fs_).value().value();
    for (const std::string& prefix : state.all_model_checkpoint_paths()) {
      EXPECT_TRUE(saver->Restore(prefix).ok()) << prefix;
    }
    ASSERT_TRUE(Save(saver.get(), "d/s", 4).ok());
    const Names left = OnDisk();
    EXPECT_TRUE(std::count(left.begin(), left.end(), "s-4") == 1 && left.size() <= 3) << absl::StrJoin(left, " ");
    for (const std::string& name : left) ASSERT_TRUE(RemoveCheckpoint("d/" + name, &memory_).ok());
  }
}

TEST_F(SaverTest, ADeletionThatFailsIsTriedAgain) {
  options_.max_to_keep = 1;
  const auto saver = Create();
  ASSERT_TRUE(Save(saver.get(), "d/s", 1).ok());
  fs_.FailMatching(FaultyFileSystem::Operation::kRemove, "s-1.index", absl::InternalError("Input/output error"));
  ASSERT_TRUE(Save(saver.get(), "d/s", 2).ok());
  EXPECT_THAT(OnDisk(), ElementsAre("s-1", "s-2"));
  fs_.Heal();
  ASSERT_TRUE(Save(saver.get(), "d/s", 3).ok());
  EXPECT_THAT(OnDisk(), ElementsAre("s-3"));
}

// Saves some of the variables next to a run's own checkpoints.
TEST_F(SaverTest, InARunsLogdirItKeepsApart) {
  WriteRun("run", 4);
  options_.max_to_keep = 1;
  const absl::Status state = Save(Create().get(), "run/mine", 5).status();
  EXPECT_TRUE(absl::IsInvalidArgument(state));
  EXPECT_THAT(std::string(state.message()), HasSubstr("run is a run's logdir, whose chief writes checkpoint; give the "
                                                      "Saver another latest_filename"));
  options_.latest_filename = "mine";
  for (const char* path : {"run/model.ckpt", "run/"}) {
    const absl::Status name = Save(Create().get(), path, 5).status();
    EXPECT_TRUE(absl::IsInvalidArgument(name));
    EXPECT_THAT(std::string(name.message()), HasSubstr("run/model.ckpt-5 the name of a checkpoint of the run"));
  }
  EXPECT_FALSE(Save(Create().get(), "run/model.ckpt-4").ok()) << "the same name, spelled otherwise";
  const auto saver = Create();
  for (int64_t step : {5, 6}) ASSERT_TRUE(Save(saver.get(), "run/part", step).ok());
  EXPECT_THAT(OnDisk("run"), ElementsAre("model.ckpt-4", "part-6"));
  const auto resumed = NewestValidCheckpoint(&fs_, "run", [](const std::string& prefix, const absl::Status& why) {
    ADD_FAILURE() << prefix << " is looked at: " << why;
  });
  EXPECT_EQ(resumed->value(), "run/model.ckpt-4");
}

// The run's checkpoints stay even if the Saver's history is set to them.
TEST_F(SaverTest, InARunsLogdirItDeletesOnlyWhatASaverWrote) {
  WriteRun("run", 4);
  options_.max_to_keep = 1;
  options_.latest_filename = "mine";
  const auto saver = Create();
  ASSERT_TRUE(Save(saver.get(), "run/part", 5).ok());
  saver->SetLastCheckpointsWithTimes({{"run/model.ckpt-4", clock_.WallTime()}, {"run/part-5", clock_.WallTime()}});
  ASSERT_TRUE(Save(saver.get(), "run/part", 6).ok());
  EXPECT_THAT(OnDisk("run"), ElementsAre("model.ckpt-4", "part-6"));
}

// The chief writes the generation file before the run's record.
TEST_F(SaverTest, ALogdirIsOneFromTheChiefsStartOn) {
  ASSERT_TRUE(WriteFileAtomically(&memory_, "d/generation", "1\n").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Save(Create().get(), "d/s", 1).status()));
}

// A run that later begins in the directory does not resume from the checkpoint, and the error says why.
TEST_F(SaverTest, WhatItSavedBeforeARunBeganIsNotResumedFrom) {
  ASSERT_TRUE(Save(Create().get(), "d/model.ckpt", 7).ok());
  const auto found = NewestValidCheckpoint(&fs_, "d", [](const std::string&, const absl::Status&) {});
  EXPECT_TRUE(absl::IsFailedPrecondition(found.status()));
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("d/model.ckpt-7 was written by a Saver"));
}

}  // namespace
}  // namespace lockstep::train
