#ifndef LOCKSTEP_KERNELS_TESTING_GUARDED_MEMORY_H_
#define LOCKSTEP_KERNELS_TESTING_GUARDED_MEMORY_H_

#include <cstddef>
#include <string>

namespace lockstep {

// Memory in slots, each between two pages that may be neither read nor written: whoever goes beyond such an end of an
// array is stopped by the processor. For one thread at a time.
class GuardedMemory {
 public:
  // Enough for the arrays of one call.
  static constexpr int kSlots = 24;
  static constexpr size_t kSlotBytes = 4 << 20;

  // That of the process. From its first use on, a fault writes the text of Describe() to stderr.
  static GuardedMemory& Get();

  // `size` bytes of slot `slot` with a border on one side, which is filled: they end at the slot's end, or begin at
  // its beginning.
  char* Place(int slot, size_t size, bool at_end);
  // True while nothing has been written to the border of what was placed last in the slot.
  bool BorderIntact(int slot) const;

  // What is going on.
  void Describe(const std::string& text);

 private:
  struct Slot {
    char* begin = nullptr;
    // The border.
    char* border = nullptr;
    size_t border_size = 0;
  };

  GuardedMemory();

  Slot slots_[kSlots];
};

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_TESTING_GUARDED_MEMORY_H_
