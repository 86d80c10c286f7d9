#include "lockstep/common/memory/testing/residency.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {

namespace {

constexpr uintptr_t kPage = 4096;

// Returns one byte for each page of the memory. The lowest bit is set if the page is resident.
std::vector<unsigned char> Pages(const void* data, size_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data) / kPage * kPage;
  const uintptr_t length = reinterpret_cast<uintptr_t>(data) + bytes - begin;
  std::vector<unsigned char> pages((length + kPage - 1) / kPage);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(begin), length, pages.data()), 0);
  return pages;
}

bool IsThere(unsigned char page) { return (page & 1) != 0; }

}  // namespace

bool IsResident(const AlignedBuffer& buffer) {
  const auto pages = Pages(buffer.data(), buffer.size());
  return std::all_of(pages.begin(), pages.end(), IsThere);
}

size_t ResidentPages(const void* data, size_t bytes) {
  const auto pages = Pages(data, bytes);
  return static_cast<size_t>(std::count_if(pages.begin(), pages.end(), IsThere));
}

}  // namespace lockstep
