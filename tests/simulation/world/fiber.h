#ifndef LOCKSTEP_TESTS_SIMULATION_WORLD_FIBER_H_
#define LOCKSTEP_TESTS_SIMULATION_WORLD_FIBER_H_

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace lockstep {
namespace simulation {

// The stacks of fibers, used again and again. Each ends at a page that nobody may touch. Not thread-safe.
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

// A function with a stack of its own, which runs in the thread of whoever resumes it and stops where it suspends
// itself. One that is destroyed before its function has returned is dropped: nothing on its stack is destroyed. Not
// thread-safe.
class Fiber {
 public:
  // `stacks` must outlive this.
  Fiber(std::function<void()> body, StackPool* stacks);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the fiber until it suspends itself or its function has returned. Not from a fiber.
  void Resume();
  // In the fiber that runs: back to Resume.
  void Suspend();
  bool done() const { return done_; }

 private:
  static void Enter(unsigned int high, unsigned int low);

  std::function<void()> body_;
  StackPool* const stacks_;
  char* const stack_;
  // The first entry is by the context, which costs a system call; all further ones jump.
  ucontext_t context_;
  jmp_buf inside_;
  jmp_buf outside_;
  bool started_ = false;
  bool done_ = false;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_WORLD_FIBER_H_
