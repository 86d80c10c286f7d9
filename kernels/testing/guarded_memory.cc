#include "lockstep/kernels/testing/guarded_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "glog/logging.h"

namespace lockstep {
namespace {

constexpr size_t kBorderBytes = 256;
constexpr char kBorderByte = '\xA5';

// Static memory that a signal handler may read.
char g_description[512];
struct sigaction g_previous[2];
constexpr int kSignals[] = {SIGSEGV, SIGBUS};

// Writes the description and restores the previous handler, which receives the signal when the faulting instruction is
// repeated.
void WriteDescription(int signal) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, g_description, strlen(g_description));
  for (int i = 0; i < 2; ++i) {
    if (kSignals[i] == signal) sigaction(signal, &g_previous[i], nullptr);
  }
}

}  // namespace

GuardedMemory& GuardedMemory::Get() {
  static auto* const memory = new GuardedMemory;
  return *memory;
}

GuardedMemory::GuardedMemory() {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t size = kSlots * (page + kSlotBytes) + page;
  void* const memory = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  PCHECK(memory != MAP_FAILED) << "mmap of " << size << " bytes";
  char* at = static_cast<char*>(memory) + page;
  for (Slot& slot : slots_) {
    PCHECK(mprotect(at, kSlotBytes, PROT_READ | PROT_WRITE) == 0);
    slot.begin = at;
    at += kSlotBytes + page;
  }
  struct sigaction action = {};
  action.sa_handler = WriteDescription;
  for (int i = 0; i < 2; ++i) PCHECK(sigaction(kSignals[i], &action, &g_previous[i]) == 0);
}

char* GuardedMemory::Place(int index, size_t size, bool at_end) {
  CHECK_LT(index, kSlots);
  CHECK_LE(size, kSlotBytes);
  Slot& slot = slots_[index];
  char* const data = at_end ? slot.begin + kSlotBytes - size : slot.begin;
  slot.border_size = std::min(kBorderBytes, kSlotBytes - size);
  slot.border = at_end ? data - slot.border_size : data + size;
  std::fill_n(slot.border, slot.border_size, kBorderByte);
  return data;
}

bool GuardedMemory::BorderIntact(int index) const {
  const Slot& slot = slots_[index];
  return std::all_of(slot.border, slot.border + slot.border_size, [](char c) { return c == kBorderByte; });
}

void GuardedMemory::Describe(const std::string& text) {
  std::snprintf(g_description, sizeof(g_description), "%s\n", text.c_str());
}

}  // namespace lockstep
