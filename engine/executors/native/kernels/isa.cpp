// Finds the instruction sets that this processor runs, and the table of kernels for each.
#include "kernels/kernels.h"
#include "kernels/tile_check.h"

#if defined(SKEIN_X64)
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(SKEIN_ARM64) && defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(SKEIN_ARM64)
#include <sys/auxv.h>
#endif

namespace skein {

#if defined(SKEIN_X64)
namespace {

struct CpuFeatures {
  bool avx2 = false;
  bool avxVnni = false;
  bool avx512 = false;
  bool vnni = false;
  bool bf16 = false;
  bool vbmi = false;
  bool tiles = false;  // of the processor
  bool amx = false;    // and of the system
};

// The state components that the operating system saves at a task switch (XCR0). An instruction set whose registers are
// not saved faults or, worse, gets corrupted, whatever CPUID says of the processor.
uint64_t savedStates() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t(high) << 32) | low;
}

#ifdef __linux__
// Codes of arch_prctl, which older headers do not name, and the state component of tiles' data.
constexpr long kSupportedStates = 0x1021, kRequestState = 0x1023, kTileData = 18;

// True if the system would let a process use tiles. It says no where it is older than 5.16 or has them switched off.
bool systemHasTiles() {
  uint64_t states = 0;
  return syscall(SYS_arch_prctl, kSupportedStates, &states) == 0 && (states >> kTileData & 1) != 0;
}

// Asks for tiles, for all threads of this process. Until then their first use would end it.
bool requestTiles() { return syscall(SYS_arch_prctl, kRequestState, kTileData) == 0; }
#else
bool systemHasTiles() { return false; }
bool requestTiles() { return false; }
#endif

CpuFeatures detect() {
  constexpr uint32_t kFma = 1u << 12, kOsXsave = 1u << 27, kAvx = 1u << 28, kF16c = 1u << 29;  // leaf 1, ecx
  constexpr uint32_t kAvx2 = 1u << 5, kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // leaf 7, ebx: F DQ BW VL
  constexpr uint32_t kVnni = 1u << 11;                                                      // leaf 7, ecx
  constexpr uint32_t kAvxVnni = 1u << 4, kBf16 = 1u << 5;                                   // leaf 7.1, eax
  constexpr uint32_t kVbmi = 1u << 1;                                                       // leaf 7, ecx
  constexpr uint32_t kAmx = 1u << 24 | 1u << 22;                                            // leaf 7, edx: tiles, BF16
  constexpr uint64_t kTiles = 1u << 17 | 1u << 18;                                          // XCR0
  constexpr uint64_t kYmm = 1u << 1 | 1u << 2, kZmm = kYmm | 1u << 5 | 1u << 6 | 1u << 7;   // XCR0
  CpuFeatures features;
  uint32_t eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return features;
  constexpr uint32_t kNeeded = kFma | kOsXsave | kAvx | kF16c;
  if ((ecx & kNeeded) != kNeeded) return features;
  const uint64_t saved = savedStates();
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return features;
  features.avx2 = (ebx & kAvx2) && (saved & kYmm) == kYmm;
  features.avx512 = features.avx2 && (ebx & kAvx512) == kAvx512 && (saved & kZmm) == kZmm;
  features.vnni = features.avx512 && (ecx & kVnni);
  features.vbmi = features.avx512 && (ecx & kVbmi);
  features.tiles = (edx & kAmx) == kAmx && (saved & kTiles) == kTiles;
  if (eax >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) {
    features.avxVnni = features.avx2 && (eax & kAvxVnni);
    features.bf16 = features.vnni && (eax & kBf16);
  }
  features.amx = features.bf16 && features.vbmi && features.tiles && systemHasTiles();
  return features;
}

const CpuFeatures& cpuFeatures() {
  static const CpuFeatures features = detect();
  return features;
}

}  // namespace

bool vnniSupported() { return cpuFeatures().vnni; }

bool isaSupported(Isa isa) {
  const CpuFeatures& features = cpuFeatures();
  switch (isa) {
    case Isa::kScalar: return true;
    case Isa::kAvx2: return features.avx2;
    case Isa::kAvxVnni: return features.avxVnni;
    case Isa::kAvx512: return features.avx512;
    case Isa::kAvx512Bf16: return features.bf16;
    case Isa::kAmx: return features.amx;
    default: return false;
  }
}

const KernelTable& kernelsOf(Isa isa) {
  switch (isa) {
    case Isa::kAmx: return amxKernels();
    case Isa::kAvx512Bf16: return avx512Bf16Kernels();
    case Isa::kAvx512: return vnniSupported() ? avx512VnniKernels() : avx512Kernels();
    case Isa::kAvxVnni: return avxVnniKernels();
    case Isa::kAvx2: return avx2Kernels();
    default: return scalarKernels();
  }
}

bool processorHasTiles() { return cpuFeatures().tiles; }

bool tileVectorsSupported() { return cpuFeatures().bf16 && cpuFeatures().vbmi; }

// Once for the process, before any thread uses tiles.
const char* isaProblem(Isa isa) {
  if (isa != Isa::kAmx) return nullptr;
  static const char* const problem = []() -> const char* {
    if (!requestTiles()) return "Linux does not let this process use AMX's tiles";
    if (!sumsAsTiles(amxKernels())) return "its tiles do not sum in their order here";
    return nullptr;
  }();
  return problem;
}

bool dotProductsSupported() { return false; }

bool i8mmSupported() { return false; }
#elif defined(SKEIN_ARM64)
namespace {

struct CpuFeatures {
  bool dotProducts, i8mm, bf16;
};

// What the system says that the processor and itself run; every processor of 64 bits has NEON.
CpuFeatures detect() {
#ifdef __APPLE__
  const auto has = [](const char* name) {
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
  };
  return {has("hw.optional.arm.FEAT_DotProd"), has("hw.optional.arm.FEAT_I8MM"), has("hw.optional.arm.FEAT_BF16")};
#else
  // HWCAP_ASIMDDP, HWCAP2_I8MM and HWCAP2_BF16, which older headers do not name.
  constexpr unsigned long kDotProducts = 1ul << 20, kI8mm = 1ul << 13, kBf16 = 1ul << 14;
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  return {(first & kDotProducts) != 0, (second & kI8mm) != 0, (second & kBf16) != 0};
#endif
}

const CpuFeatures& cpuFeatures() {
  static const CpuFeatures features = detect();
  return features;
}

}  // namespace

bool vnniSupported() { return false; }

bool dotProductsSupported() { return cpuFeatures().dotProducts; }

// Its file is compiled with dot products of bytes too.
bool i8mmSupported() { return cpuFeatures().i8mm && cpuFeatures().dotProducts; }

bool isaSupported(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
    case Isa::kNeon: return true;
    case Isa::kNeonBf16: return i8mmSupported() && cpuFeatures().bf16;
    default: return false;
  }
}

const KernelTable& kernelsOf(Isa isa) {
  switch (isa) {
    case Isa::kNeonBf16: return neonBf16Kernels();
    case Isa::kNeon: return i8mmSupported() ? neonI8mmKernels() : dotProductsSupported() ? neonDotKernels() : neonKernels();
    default: return scalarKernels();
  }
}
#else
bool dotProductsSupported() { return false; }

bool i8mmSupported() { return false; }

bool isaSupported(Isa isa) { return isa == Isa::kScalar; }

bool vnniSupported() { return false; }

const KernelTable& kernelsOf(Isa) { return scalarKernels(); }
#endif

#ifndef SKEIN_X64
bool processorHasTiles() { return false; }

bool tileVectorsSupported() { return false; }

const char* isaProblem(Isa) { return nullptr; }
#endif

}  // namespace skein
