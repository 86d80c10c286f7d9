// Writes a logdir for other programs to read: write_sample DIRECTORY
//   model.ckpt-1..4   of which the last 2 are kept; 4 is saved twice
//   wide-1            has thousands of variables, so that the index has several blocks
//   an event file     scalars, a histogram, images and session logs

#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/summary/event_writer.h"
#include "lockstep/server/chief/checkpoint/checkpoint_manager.h"
#include "lockstep/train/events/summary_builder.h"

namespace lockstep {
namespace {

constexpr int kWideVariables = 12000;

template <typename T>
absl::string_view BytesOf(const std::vector<T>& values) {
  return absl::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Returns n elements; element i is `first` + i.
std::vector<float> Ramp(int n, float first) {
  std::vector<float> values;
  for (int i = 0; i < n; ++i) values.push_back(first + i);
  return values;
}

// Returns n bytes; byte i is i * i mod 251.
std::vector<uint8_t> Pixels(int64_t n) {
  std::vector<uint8_t> pixels;
  for (int64_t i = 0; i < n; ++i) pixels.push_back(static_cast<uint8_t>(i * i % 251));
  return pixels;
}

absl::Status WriteCheckpoint(FileSystem* fs, const std::string& prefix, int64_t step) {
  ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(fs, prefix));
  RETURN_IF_ERROR(writer->Add("hidden1/kernel", v1::DT_FLOAT, {3, 4}, BytesOf(Ramp(12, step))));
  RETURN_IF_ERROR(writer->Add("hidden1/kernel/Momentum", v1::DT_FLOAT, {3, 4}, BytesOf(Ramp(12, -step))));
  RETURN_IF_ERROR(writer->Add("global_step", v1::DT_INT64, {}, BytesOf(std::vector<int64_t>{step})));
  RETURN_IF_ERROR(writer->Add("large", v1::DT_FLOAT, {1000, 1000}, BytesOf(Ramp(1000000, 0))));
  RETURN_IF_ERROR(writer->Add("none", v1::DT_INT32, {0, 7}, ""));
  RETURN_IF_ERROR(writer->Add("flags", v1::DT_BOOL, {2}, absl::string_view("\1\0", 2)));
  return writer->Finish();
}

absl::Status WriteCheckpoints(FileSystem* fs, const std::string& directory) {
  ASSIGN_OR_RETURN(const auto manager, CheckpointManager::Create(fs, {directory, "model.ckpt", 2}));
  for (const int64_t step : {1, 2, 3, 4, 4}) {
    RETURN_IF_ERROR(WriteCheckpoint(fs, manager->PrefixOf(step), step));
    RETURN_IF_ERROR(manager->Record(manager->PrefixOf(step)));
  }
  return absl::OkStatus();
}

absl::Status WriteWide(FileSystem* fs, const std::string& directory) {
  ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(fs, JoinPath(directory, "wide-1")));
  for (int i = 0; i < kWideVariables; ++i) {
    const std::string name = absl::StrFormat("layer%05d/kernel", i);
    RETURN_IF_ERROR(writer->Add(name, v1::DT_FLOAT, {1, 2}, BytesOf(Ramp(2, i))));
  }
  return writer->Finish();
}

absl::Status WriteEvents(FileSystem* fs, const std::string& directory) {
  ASSIGN_OR_RETURN(const auto writer, EventWriter::Create(fs, Clock::Real(), directory));
  writer->WriteSessionLog(v1::SessionLog::START, 1);
  for (int64_t step = 1; step <= 25; ++step) {
    SummaryBuilder builder;
    builder.AddScalar("loss", 1.0f / step);
    if (step % 10 == 0) RETURN_IF_ERROR(builder.AddHistogram("weights", Ramp(100, -50)));
    for (int64_t channels = 1; step == 25 && channels <= 4; ++channels) {
      RETURN_IF_ERROR(builder.AddImage(absl::StrCat("image", channels), 30, 40, channels, Pixels(30 * 40 * channels)));
    }
    writer->Write(builder.Build(step));
  }
  writer->WriteSessionLog(v1::SessionLog::CHECKPOINT, 25, "model.ckpt-25");
  writer->WriteSessionLog(v1::SessionLog::STOP, 25);
  return writer->Close();
}

absl::Status WriteAll(const std::string& directory) {
  FileSystem* const fs = FileSystem::Real();
  RETURN_IF_ERROR(WriteCheckpoints(fs, directory));
  RETURN_IF_ERROR(WriteWide(fs, directory));
  return WriteEvents(fs, directory);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_sample DIRECTORY\n";
    return 2;
  }
  const absl::Status status = lockstep::WriteAll(argv[1]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
