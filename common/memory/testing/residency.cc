#include "lockstep/common/memory/testing/residency.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {

bool IsResident(const AlignedBuffer& buffer) {
  constexpr uintptr_t kPage = 4096;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(buffer.data()) / kPage * kPage;
  const uintptr_t bytes = reinterpret_cast<uintptr_t>(buffer.data()) + buffer.size() - begin;
  std::vector<unsigned char> pages((bytes + kPage - 1) / kPage);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(begin), bytes, pages.data()), 0);
  return std::all_of(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
}

}  // namespace lockstep
