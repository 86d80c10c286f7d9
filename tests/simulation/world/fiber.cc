#include "lockstep/tests/simulation/world/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "glog/logging.h"

namespace lockstep {
namespace simulation {

StackPool::~StackPool() {
  for (char* const stack : free_) munmap(stack, kBytes);
}

char* StackPool::Take() {
  if (!free_.empty()) {
    char* const stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void* const stack = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  PCHECK(stack != MAP_FAILED) << "no memory for a stack";
  PCHECK(mprotect(stack, getpagesize(), PROT_NONE) == 0) << "the end of a stack";
  return static_cast<char*>(stack);
}

Fiber::Fiber(std::function<void()> body, StackPool* stacks)
    : body_(std::move(body)), stacks_(stacks), stack_(stacks->Take()) {
  PCHECK(getcontext(&context_) == 0) << "getcontext";
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = StackPool::kBytes;
  context_.uc_link = nullptr;
  // makecontext passes only ints.
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::Enter), 2, static_cast<unsigned int>(self >> 32),
              static_cast<unsigned int>(self));
}

Fiber::~Fiber() { stacks_->Return(stack_); }

void Fiber::Enter(unsigned int high, unsigned int low) {
  auto* const self = reinterpret_cast<Fiber*>((static_cast<uintptr_t>(high) << 32) | low);
  self->body_();
  self->body_ = nullptr;
  self->done_ = true;
  _longjmp(self->outside_, 1);
}

void Fiber::Resume() {
  CHECK(!done_) << "the fiber has ended";
  if (_setjmp(outside_) != 0) return;
  if (started_) _longjmp(inside_, 1);
  started_ = true;
  setcontext(&context_);
  LOG(FATAL) << "setcontext returned";
}

void Fiber::Suspend() {
  if (_setjmp(inside_) == 0) _longjmp(outside_, 1);
}

}  // namespace simulation
}  // namespace lockstep
