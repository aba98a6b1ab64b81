// The kernels of AMX as they are compiled, on a processor without AMX: only for tests. Each instruction of tiles is a trap there, SIGILL,
// in whose handler it is decoded and computed in plain C++. So what is tested is the code itself, its operands, addresses and strides.
#if defined(__linux__) && defined(__x86_64__)
#include <signal.h>
#include <ucontext.h>

#include "kernels/emulated.h"
#include "kernels/emulated_tiles.h"
#include "kernels/peak.h"

namespace skein {
namespace {

thread_local EmulatedTiles tiles;

// Registers by the numbers that instructions have for them.
constexpr int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

// An instruction with a VEX prefix of three bytes (Intel's Software Developer's Manual, volume 2, 2.3): numbers of its registers and
// its operand in memory.
struct VexInstruction {
  int map, prefix, opcode, mod, reg, rm, vvvv;
  int length;
  char* base = nullptr;
  int64_t index = 0;  // a stride of tiles

  VexInstruction(const uint8_t* p, const greg_t* registers) {
    const auto value = [&](int number) { return registers[kRegisters[number]]; };
    const int r = ~p[1] >> 7 & 1, x = ~p[1] >> 6 & 1, b = ~p[1] >> 5 & 1;
    map = p[1] & 31, prefix = p[2] & 3, vvvv = ~p[2] >> 3 & 15, opcode = p[3];
    mod = p[4] >> 6, reg = (p[4] >> 3 & 7) + 8 * r, rm = p[4] & 7;
    length = 5;
    if (mod == 3) return;
    int64_t address = 0;
    const bool hasSib = rm == 4;
    const int low = hasSib ? p[5] & 7 : rm;
    const bool noBase = mod == 0 && low == 5;
    if (hasSib) {
      length++;
      const int number = (p[5] >> 3 & 7) + 8 * x;
      if (number != 4) index = value(number) << (p[5] >> 6);
    }
    if (!noBase) address = value(low + 8 * b);
    int32_t far = 0;
    if (mod == 1) {
      far = int8_t(p[length]);
      length += 1;
    } else if (mod == 2 || noBase) {
      __builtin_memcpy(&far, p + length, 4);
      length += 4;
    }
    if (noBase && !hasSib) address = reinterpret_cast<int64_t>(p) + length;
    base = reinterpret_cast<char*>(address + far);
  }
};

// Runs an instruction of tiles; false if it is none of those that are known here.
bool runTile(const VexInstruction& i) {
  constexpr int kNone = 0, kF3 = 2, kF2 = 3;
  const bool inMemory = i.mod != 3;
  if (i.map != 2) return false;
  if (i.opcode == 0x49 && i.prefix == kNone && inMemory) {
    TileConfig config;
    __builtin_memcpy(&config, i.base + i.index, sizeof config);
    tiles.configure(config);
  } else if (i.opcode == 0x49 && i.prefix == kNone && i.reg == 0 && i.rm == 0) {
    tiles = EmulatedTiles();  // tilerelease
  } else if (i.opcode == 0x49 && i.prefix == kF2 && !inMemory && i.rm == 0) {
    tiles.zero(i.reg);
  } else if (i.opcode == 0x4b && i.prefix == kF2 && inMemory && i.rm == 4) {
    tiles.load(i.reg, i.base, i.index);
  } else if (i.opcode == 0x4b && i.prefix == kF3 && inMemory && i.rm == 4) {
    tiles.store(i.reg, i.base, i.index);
  } else if (i.opcode == 0x5c && i.prefix == kF3 && !inMemory) {
    tiles.multiplyBf16(i.reg, i.rm, i.vvvv);
  } else {
    return false;
  }
  return true;
}

void onTrap(int, siginfo_t*, void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* p = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
  constexpr uint8_t kVex = 0xc4;
  if (*p == kVex) {
    const VexInstruction instruction(p, registers);
    if (runTile(instruction)) {
      registers[REG_RIP] += instruction.length;
      return;
    }
  }
  signal(SIGILL, SIG_DFL);  // what is no instruction of tiles ends the process, as it would without this
}

// Catches traps while it lives: of one thread at a time.
class Traps {
 public:
  Traps() {
    struct sigaction action = {};
    action.sa_sigaction = onTrap;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, &before_);
  }
  ~Traps() { sigaction(SIGILL, &before_, nullptr); }

 private:
  struct sigaction before_;
};

// A function of amxKernels() with its traps.
template <auto kFunction, class... Args>
void trap(Args... args) {
  const Traps traps;
  (amxKernels().*kFunction)(args...);
}

}  // namespace

const KernelTable& trappedAmxKernels() {
  static const KernelTable table = [] {
    KernelTable trapped = amxKernels();
    trapped.name = "trappedamx";
    trapped.gemm = trap<&KernelTable::gemm>;
    trapped.gatedGemm = trap<&KernelTable::gatedGemm>;
    trapped.storedGemm = trap<&KernelTable::storedGemm>;
    trapped.storedGatedGemm = trap<&KernelTable::storedGatedGemm>;
    trapped.attentionSplit = trap<&KernelTable::attentionSplit>;
    return trapped;
  }();
  return table;
}

float trappedAmxPeak(DType dtype, int64_t iterations) {
  const Traps traps;
  return amxPeak(dtype, iterations);
}

}  // namespace skein
#endif
