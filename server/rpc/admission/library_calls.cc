#include "lockstep/server/rpc/admission/library_calls.h"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstring>

namespace lockstep {
namespace {

// Returns the loaded program or library that contains `address`, or null.
const link_map* ObjectOf(void* address) {
  Dl_info info;
  void* object = nullptr;
  return dladdr1(address, &info, &object, RTLD_DL_LINKMAP) == 0 ? nullptr : static_cast<const link_map*>(object);
}

const ElfW(Dyn) * Entry(const link_map* object, decltype(ElfW(Dyn)::d_tag) tag) {
  const ElfW(Dyn)* entry = object->l_ld;
  while (entry->d_tag != DT_NULL && entry->d_tag != tag) ++entry;
  return entry->d_tag == tag ? entry : nullptr;
}

}  // namespace

bool LibraryCalls(const char* name, void* original, void* definition) {
  const link_map* const library = ObjectOf(original);
  if (library == nullptr) return false;
  const auto* const symbols = Entry(library, DT_SYMTAB);
  const auto* const names = Entry(library, DT_STRTAB);
  if (symbols == nullptr || names == nullptr) return false;
  bool is_called = false;
  // The relocations of slots for calls and of slots for addresses. Code without a procedure linkage table calls through
  // the latter.
  const decltype(ElfW(Dyn)::d_tag) tables[][2] = {{DT_JMPREL, DT_PLTRELSZ}, {DT_RELA, DT_RELASZ}};
  for (const auto& table : tables) {
    const auto* const begin = Entry(library, table[0]);
    const auto* const bytes = Entry(library, table[1]);
    if (begin == nullptr || bytes == nullptr) continue;
    const auto* const relocations = reinterpret_cast<const ElfW(Rela)*>(begin->d_un.d_ptr);
    for (size_t i = 0; i < bytes->d_un.d_val / sizeof(*relocations); ++i) {
      const size_t index = ELF64_R_SYM(relocations[i].r_info);
      if (index == 0) continue;
      const auto& symbol = reinterpret_cast<const ElfW(Sym)*>(symbols->d_un.d_ptr)[index];
      if (std::strcmp(reinterpret_cast<const char*>(names->d_un.d_ptr) + symbol.st_name, name) != 0) continue;
      void* const target = *reinterpret_cast<void* const*>(library->l_addr + relocations[i].r_offset);
      // With lazy binding, a slot points back into the library before the first call, to the code that looks up the
      // name.
      if (target != definition && (target == original || ObjectOf(target) != library)) return false;
      is_called = true;
    }
  }
  return is_called;
}

}  // namespace lockstep
