// Runs Savers according to a script, so that another program can compare the files that remain: saver_script
// OPTION=VALUE...
//
// Options: max_to_keep, every_n_hours, pad, relative, shards, latest_filename. Commands, one per input line:
//   advance SECONDS            advances the time
//   save PATH STEP|- VALUE     saves variables v (a scalar VALUE) and w ([2,3], VALUE + 0, 1, ...); prints the prefix
//   new                        creates another Saver
//   recover DIRECTORY          takes over the history from the state file
//   set PREFIX...              sets the history, without times
//   list                       prints last_checkpoints
//   restore PREFIX             prints each variable's name, shape and values

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/train/saver/saver.h"

namespace lockstep::train {
namespace {

class Script {
 public:
  absl::Status SetOption(const std::string& name, const std::string& value) {
    double number = 0;
    if (name == "latest_filename") {
      options_.latest_filename = value;
      return absl::OkStatus();
    }
    if (!absl::SimpleAtod(value, &number)) return absl::InvalidArgumentError(absl::StrCat(name, "=", value));
    if (name == "max_to_keep") {
      options_.max_to_keep = static_cast<int64_t>(number);
    } else if (name == "every_n_hours") {
      options_.keep_checkpoint_every_n_hours = number;
    } else if (name == "pad") {
      options_.pad_step_number = number != 0;
    } else if (name == "relative") {
      options_.save_relative_paths = number != 0;
    } else if (name == "shards") {
      options_.shards = static_cast<int>(number);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("there is no option ", name));
    }
    return absl::OkStatus();
  }

  absl::Status NewSaver() {
    options_.clock = &clock_;
    ASSIGN_OR_RETURN(saver_, Saver::Create(options_));
    return absl::OkStatus();
  }

  absl::Status Run(const std::vector<std::string>& words) {
    if (words[0] == "advance" && words.size() == 2) return Advance(words[1]);
    if (words[0] == "save" && words.size() == 4) return Save(words[1], words[2], words[3]);
    if (words[0] == "new") return NewSaver();
    if (words[0] == "recover" && words.size() == 2) return saver_->RecoverHistory(words[1]);
    if (words[0] == "restore" && words.size() == 2) return Restore(words[1]);
    if (words[0] == "set") {
      saver_->SetLastCheckpoints(std::vector<std::string>(words.begin() + 1, words.end()));
    } else if (words[0] == "list") {
      std::cout << absl::StrJoin(saver_->last_checkpoints(), " ") << "\n";
    } else {
      return absl::InvalidArgumentError(absl::StrCat("no command: ", absl::StrJoin(words, " ")));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Advance(const std::string& seconds) {
    double number = 0;
    if (!absl::SimpleAtod(seconds, &number)) return absl::InvalidArgumentError(seconds);
    clock_.Advance(absl::Seconds(number));
    return absl::OkStatus();
  }

  absl::Status Save(const std::string& path, const std::string& step, const std::string& value) {
    float first = 0;
    int64_t number = 0;
    if (!absl::SimpleAtof(value, &first)) return absl::InvalidArgumentError(value);
    if (step != "-" && !absl::SimpleAtoi(step, &number)) return absl::InvalidArgumentError(step);
    std::vector<float> ramp;
    for (int i = 0; i < 6; ++i) ramp.push_back(first + static_cast<float>(i));
    ASSIGN_OR_RETURN(NamedTensor v, NamedFloats("v", {}, {first}));
    ASSIGN_OR_RETURN(NamedTensor w, NamedFloats("w", {2, 3}, ramp));
    ASSIGN_OR_RETURN(const std::string prefix,
                     saver_->Save(path, step == "-" ? absl::nullopt : absl::make_optional(number), {v, w}));
    std::cout << prefix << "\n";
    return absl::OkStatus();
  }

  absl::Status Restore(const std::string& prefix) {
    ASSIGN_OR_RETURN(const std::vector<NamedTensor> values, saver_->Restore(prefix));
    for (const NamedTensor& variable : values) {
      std::cout << variable.name << " " << variable.value.shape().ToString() << " "
                << absl::StrJoin(variable.value.flat<float>(), ",") << "\n";
    }
    return absl::OkStatus();
  }

  SimulatedClock clock_;
  SaverOptions options_;
  std::unique_ptr<Saver> saver_;
};

absl::Status RunAll(int argc, char** argv) {
  Script script;
  for (int i = 1; i < argc; ++i) {
    const std::pair<std::string, std::string> option = absl::StrSplit(argv[i], absl::MaxSplits('=', 1));
    RETURN_IF_ERROR(script.SetOption(option.first, option.second));
  }
  RETURN_IF_ERROR(script.NewSaver());
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (!words.empty()) RETURN_IF_ERROR(script.Run(words));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep::train

int main(int argc, char** argv) {
  const absl::Status status = lockstep::train::RunAll(argc, argv);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
