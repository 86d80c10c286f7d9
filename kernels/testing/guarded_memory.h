#ifndef LOCKSTEP_KERNELS_TESTING_GUARDED_MEMORY_H_
#define LOCKSTEP_KERNELS_TESTING_GUARDED_MEMORY_H_

#include <cstddef>
#include <string>

namespace lockstep {

// Memory divided into slots. Each slot lies between two pages that can be neither read nor written, so an access beyond
// the end of an array that adjoins such a page raises a signal. For use by one thread at a time.
class GuardedMemory {
 public:
  // Enough for the arrays of one call.
  static constexpr int kSlots = 24;
  static constexpr size_t kSlotBytes = 4 << 20;

  // Returns the process's instance. From the first call on, a fault writes the text of Describe() to stderr.
  static GuardedMemory& Get();

  // Returns `size` bytes at the end or the beginning of slot `slot`, with a filled border on the other side.
  char* Place(int slot, size_t size, bool at_end);
  // Returns true if nothing has been written to the border of the slot's last placement.
  bool BorderIntact(int slot) const;

  // Sets the text that describes the current work.
  void Describe(const std::string& text);

 private:
  struct Slot {
    char* begin = nullptr;
    char* border = nullptr;
    size_t border_size = 0;
  };

  GuardedMemory();

  Slot slots_[kSlots];
};

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_TESTING_GUARDED_MEMORY_H_
