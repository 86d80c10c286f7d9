#include "lockstep/tests/fuzz/memory_meter.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> allocated{0};
std::atomic<int64_t> most{0};

// Does not limit the memory, because a fuzzed program has its own limit (-malloc_limit_mb).
void* Allocate(std::size_t size, std::size_t alignment) {
  void* const memory = alignment == 0 ? std::malloc(std::max<std::size_t>(size, 1))
                                      : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) std::abort();
  const auto bytes = static_cast<int64_t>(malloc_usable_size(memory));
  const int64_t now = allocated.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t before = most.load(std::memory_order_relaxed);
  while (now > before && !most.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
  return memory;
}

void Release(void* memory) {
  if (memory == nullptr) return;
  allocated.fetch_sub(static_cast<int64_t>(malloc_usable_size(memory)), std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size, 0); }
void* operator new[](std::size_t size) { return Allocate(size, 0); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return Allocate(size, 0); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return Allocate(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { Release(memory); }
void operator delete[](void* memory) noexcept { Release(memory); }
void operator delete(void* memory, std::size_t) noexcept { Release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { Release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { Release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { Release(memory); }

namespace lockstep {

MemoryMeter::MemoryMeter() : start_(allocated.load()) { most.store(start_); }

uint64_t MemoryMeter::peak() const { return static_cast<uint64_t>(std::max<int64_t>(most.load() - start_, 0)); }

}  // namespace lockstep
