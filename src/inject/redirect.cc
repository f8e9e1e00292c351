// SPDX-License-Identifier: Apache-2.0
#include "inject/redirect.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gpoeo::inject {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT, kGlobalData = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT, kGlobalData = R_AARCH64_GLOB_DAT;
#else
#error "redirect.cc knows x86-64 and AArch64"
#endif

struct Job {
  const char* library;
  const char* name;
  void* replacement;
  int changed;
};

// What the loader leaves of an object's dynamic section.
struct Dynamic {
  const ElfW(Sym) * symbols;
  const char* strings;
  const ElfW(Rela) * imports;  // DT_JMPREL
  size_t import_bytes;
  const ElfW(Rela) * relocations;  // DT_RELA
  size_t relocation_bytes;
  size_t relative;  // how many of them, at the front, name no symbol
  bool needs_library;
};

bool writable_now(const dl_phdr_info& info, uintptr_t address, int* flags) {
  *flags = PROT_READ;
  bool writable = false;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
    if (address < begin || address >= begin + segment.p_memsz) continue;
    if (segment.p_type == PT_LOAD) {
      writable = (segment.p_flags & PF_W) != 0;
      if ((segment.p_flags & PF_X) != 0) *flags |= PROT_EXEC;
    }
  }
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_GNU_RELRO) continue;
    // The loader protects whole pages: the last, partly covered one stays writable.
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t begin = (info.dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const uintptr_t end = (info.dlpi_addr + segment.p_vaddr + segment.p_memsz) & ~(page - 1);
    if (address >= begin && address < end) writable = false;
  }
  return writable;
}

// Writes one aligned word, opening its page for the moment if it has to be.
bool write_word(const dl_phdr_info& info, uintptr_t* word, uintptr_t value) {
  const auto address = reinterpret_cast<uintptr_t>(word);
  int flags = 0;
  const bool open = writable_now(info, address, &flags);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void* begin = reinterpret_cast<void*>(address & ~(page - 1));
  if (!open && mprotect(begin, page, flags | PROT_WRITE) != 0) return false;
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
  if (!open) mprotect(begin, page, flags);
  return true;
}

// glibc relocates these addresses in place, other loaders do not.
template <typename T>
const T* pointer(const dl_phdr_info& info, ElfW(Addr) address) {
  return reinterpret_cast<const T*>(address < info.dlpi_addr ? info.dlpi_addr + address : address);
}

bool read_dynamic(const dl_phdr_info& info, const char* library, Dynamic* out) {
  const ElfW(Dyn)* entries = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      entries = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    }
  }
  if (entries == nullptr) return false;
  *out = {};
  for (const ElfW(Dyn)* e = entries; e->d_tag != DT_NULL; ++e) {
    if (e->d_tag == DT_SYMTAB) out->symbols = pointer<ElfW(Sym)>(info, e->d_un.d_ptr);
    if (e->d_tag == DT_STRTAB) out->strings = pointer<char>(info, e->d_un.d_ptr);
    if (e->d_tag == DT_JMPREL) out->imports = pointer<ElfW(Rela)>(info, e->d_un.d_ptr);
    if (e->d_tag == DT_PLTRELSZ) out->import_bytes = e->d_un.d_val;
    if (e->d_tag == DT_RELA) out->relocations = pointer<ElfW(Rela)>(info, e->d_un.d_ptr);
    if (e->d_tag == DT_RELASZ) out->relocation_bytes = e->d_un.d_val;
    if (e->d_tag == DT_RELACOUNT) out->relative = e->d_un.d_val;
  }
  if (out->symbols == nullptr || out->strings == nullptr) return false;
  for (const ElfW(Dyn)* e = entries; e->d_tag != DT_NULL; ++e) {
    if (e->d_tag != DT_NEEDED) continue;
    const char* needed = out->strings + e->d_un.d_val;
    if (strncmp(needed, library, strlen(library)) == 0) out->needs_library = true;
  }
  return true;
}

void redirect_in(const dl_phdr_info& info, const Dynamic& dynamic, const ElfW(Rela) * first,
                 size_t count, Job* job) {
  for (size_t i = 0; i < count; ++i) {
    const auto type = static_cast<uint32_t>(ELF64_R_TYPE(first[i].r_info));
    if (type != kJumpSlot && type != kGlobalData) continue;
    const ElfW(Sym)& symbol = dynamic.symbols[ELF64_R_SYM(first[i].r_info)];
    if (strcmp(dynamic.strings + symbol.st_name, job->name) != 0) continue;
    auto* word = reinterpret_cast<uintptr_t*>(info.dlpi_addr + first[i].r_offset);
    if (write_word(info, word, reinterpret_cast<uintptr_t>(job->replacement))) ++job->changed;
  }
}

int redirect_object(dl_phdr_info* info, size_t /*size*/, void* user) {
  auto* job = static_cast<Job*>(user);
  Dynamic dynamic;
  if (strncmp(info->dlpi_name, "linux-vdso", 10) == 0) return 0;
  if (!read_dynamic(*info, job->library, &dynamic) || !dynamic.needs_library) return 0;
  redirect_in(*info, dynamic, dynamic.imports, dynamic.import_bytes / sizeof(ElfW(Rela)), job);
  const size_t all = dynamic.relocation_bytes / sizeof(ElfW(Rela));
  if (dynamic.relative < all) {
    redirect_in(*info, dynamic, dynamic.relocations + dynamic.relative, all - dynamic.relative,
                job);
  }
  return 0;
}

struct OwnSymbol {
  uintptr_t base;
  ElfW(Sym) * symbol;
  uintptr_t replacement;
  bool changed;
};

int redirect_own_symbol(dl_phdr_info* info, size_t /*size*/, void* user) {
  auto* own = static_cast<OwnSymbol*>(user);
  if (info->dlpi_addr != own->base) return 0;
  own->changed = write_word(*info, &own->symbol->st_value, own->replacement - own->base);
  return 1;
}

}  // namespace

int redirect_calls(const char* library, const char* name, void* real, void* replacement) {
  Job job{library, name, replacement, 0};
  dl_iterate_phdr(redirect_object, &job);

  Dl_info where{};
  ElfW(Sym)* symbol = nullptr;
  if (dladdr1(real, &where, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) != 0 &&
      symbol != nullptr && where.dli_saddr == real && where.dli_sname != nullptr &&
      strcmp(where.dli_sname, name) == 0) {
    OwnSymbol own{reinterpret_cast<uintptr_t>(where.dli_fbase), symbol,
                  reinterpret_cast<uintptr_t>(replacement), false};
    dl_iterate_phdr(redirect_own_symbol, &own);
    if (own.changed) ++job.changed;
  }
  return job.changed;
}

}  // namespace gpoeo::inject
