#include "absl/strings/str_cat.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/flags/command_line.h"

namespace lockstep {
namespace {

// Both scripts ask the program itself, so they know the flags of the installed version.
constexpr char kBash[] = R"script(# lockstep completion bash
_lockstep() {
  local program="${COMP_WORDS[0]}" word="${COMP_WORDS[COMP_CWORD]}" choices=""
  if ((COMP_CWORD == 1)); then
    choices="$("${program}" --help 2>/dev/null | sed -nE 's/^  ([a-z-]+) .*/\1/p')"
  elif [[ "${word}" == -* ]]; then
    choices="$("${program}" "${COMP_WORDS[1]}" --help 2>/dev/null | sed -nE 's/^ +(--[a-z_]+).*/\1/p')"
  fi
  mapfile -t COMPREPLY < <(compgen -W "${choices}" -- "${word}")
}
complete -o bashdefault -o default -F _lockstep lockstep
)script";

constexpr char kZsh[] = R"script(#compdef lockstep
# lockstep completion zsh
_lockstep() {
  local program="${words[1]}"
  local -a choices
  if ((CURRENT == 2)); then
    choices=(${(f)"$("${program}" --help 2>/dev/null | sed -nE 's/^  ([a-z-]+) .*/\1/p')"})
    compadd -a choices
  elif [[ "${PREFIX}" == -* ]]; then
    choices=(${(f)"$("${program}" "${words[2]}" --help 2>/dev/null | sed -nE 's/^ +(--[a-z_]+).*/\1/p')"})
    compadd -a choices
  else
    _files
  fi
}
compdef _lockstep lockstep
)script";

}  // namespace

int CompletionCommand(FileSystem*, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  std::string shell;
  CommandLine command_line("lockstep completion",
                           "Prints a script that completes commands, flags and files in a shell.",
                           "bash: eval \"$(lockstep completion bash)\" in ~/.bashrc\n"
                           "zsh:  eval \"$(lockstep completion zsh)\" in ~/.zshrc, after compinit");
  command_line.AddArgument("SHELL", "bash or zsh", &shell);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  if (shell != "bash" && shell != "zsh") {
    return PrintError("lockstep completion", absl::StrCat("SHELL is \"", shell, "\", must be bash or zsh"),
                      kExitBadConfiguration, err);
  }
  out << (shell == "bash" ? kBash : kZsh);
  return kExitDone;
}

}  // namespace lockstep
