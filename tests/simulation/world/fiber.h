#ifndef LOCKSTEP_TESTS_SIMULATION_WORLD_FIBER_H_
#define LOCKSTEP_TESTS_SIMULATION_WORLD_FIBER_H_

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace lockstep {
namespace simulation {

// A pool of stacks for fibers. Each stack ends at a guard page. Not thread-safe.
class StackPool {
 public:
  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  static constexpr size_t kBytes = 256 << 10;
  char* Take();
  void Return(char* stack) { free_.push_back(stack); }

 private:
  std::vector<char*> free_;
};

// A function with its own stack. It runs in the thread that resumes it, until it suspends itself. If a fiber is
// destroyed before its function has returned, the objects on its stack are not destroyed. Not thread-safe.
class Fiber {
 public:
  // `stacks` must outlive this object.
  Fiber(std::function<void()> body, StackPool* stacks);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the fiber until it suspends itself or its function returns. Must not be called from a fiber.
  void Resume();
  // Suspends the fiber, so that Resume returns. Must be called in the running fiber.
  void Suspend();
  bool done() const { return done_; }

 private:
  static void Enter(unsigned int high, unsigned int low);

  std::function<void()> body_;
  StackPool* const stacks_;
  char* const stack_;
  // Used only for the first entry, because setcontext costs a system call. All later entries use longjmp.
  ucontext_t context_;
  jmp_buf inside_;
  jmp_buf outside_;
  bool started_ = false;
  bool done_ = false;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_WORLD_FIBER_H_
