#include "executor/mapped_pages.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace skein {
namespace {

// Linux reads no more at one advice than the greater of the device's window for reading ahead and of its largest transfer, and leaves out
// the rest without a word. The window is 128 KiB unless it has been changed.
constexpr size_t kAdvisedBytes = 128 << 10;

size_t pageBytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void* addressOf(const uint8_t* data) { return const_cast<uint8_t*>(data); }

bool isInMemory(unsigned char page) { return (page & 1) != 0; }

}  // namespace

MappedBytes wholePages(const MappedBytes& bytes) {
  const size_t page = pageBytes();
  const size_t before = reinterpret_cast<uintptr_t>(bytes.data) % page;
  const size_t size = before + bytes.bytes;
  return {bytes.data - before, (size + page - 1) / page * page};
}

bool tellsResidency(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return false;
  return geteuid() == 0 || status.st_uid == geteuid() || access(path.c_str(), W_OK) == 0;
}

MappedBytes absentPages(const MappedBytes& whole, std::vector<unsigned char>& pages, size_t& absent) {
  const size_t page = pageBytes(), count = whole.bytes / page;
  absent = 0;
  if (pages.size() < count) pages.resize(count);
#if defined(__APPLE__)
  char* answer = reinterpret_cast<char*>(pages.data());
#else
  unsigned char* answer = pages.data();
#endif
  // Where the system does not say, all of them are asked for.
  if (mincore(addressOf(whole.data), whole.bytes, answer) != 0) std::fill_n(pages.begin(), count, 0);
  size_t first = count, last = 0;
  for (size_t i = 0; i < count; ++i) {
    if (isInMemory(pages[i])) continue;
    absent += page;
    first = std::min(first, i);
    last = i;
  }
  if (absent == 0) return {whole.data, 0};
  return {whole.data + first * page, (last + 1 - first) * page};
}

void adviseRandom(const MappedBytes& whole) { madvise(addressOf(whole.data), whole.bytes, MADV_RANDOM); }

void adviseNormal(const MappedBytes& whole) { madvise(addressOf(whole.data), whole.bytes, MADV_NORMAL); }

void readAhead(const MappedBytes& whole) {
  for (size_t at = 0; at < whole.bytes; at += kAdvisedBytes)
    madvise(addressOf(whole.data + at), std::min(kAdvisedBytes, whole.bytes - at), MADV_WILLNEED);
}

uint64_t bytesReadByThread() {
#ifdef RUSAGE_THREAD
  constexpr uint64_t kSectorBytes = 512;
  struct rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) == 0) return static_cast<uint64_t>(usage.ru_inblock) * kSectorBytes;
#endif
  return 0;
}

}  // namespace skein
