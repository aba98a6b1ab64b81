#include "executor/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace skein {

Mapping::~Mapping() {
  if (base_ != nullptr) munmap(base_, size_);
}

Mapping Mapping::anonymous(size_t bytes, const std::string& what) {
  if (bytes == 0) return {};
  // MAP_NORESERVE is left out, so that the kernel refuses what the machine can obviously never hold.
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    throw std::runtime_error(what + " needs " + std::to_string(bytes) + " bytes, which this machine does not give (" +
                             std::strerror(errno) + ").");
  }
#ifdef MADV_HUGEPAGE
  madvise(base, bytes, MADV_HUGEPAGE);
#endif
  return Mapping(base, bytes);
}

Mapping Mapping::readOnlyFile(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!file.valid() || fstat(file.get(), &status) != 0) {
    throw std::runtime_error(path + " cannot be opened (" + std::strerror(errno) + ").");
  }
  if (!S_ISREG(status.st_mode)) throw std::runtime_error(path + " is not a regular file.");
  if (status.st_size == 0) return {};
  const size_t bytes = static_cast<size_t>(status.st_size);
  void* base = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (base == MAP_FAILED) {
    throw std::runtime_error(path + " cannot be mapped: " + std::to_string(bytes) + " bytes (" + std::strerror(errno) +
                             ").");
  }
  return Mapping(base, bytes);
}

Mapping Mapping::writableFile(int descriptor, size_t bytes, const std::string& path) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (base == MAP_FAILED) {
    throw std::runtime_error(path + " cannot be mapped for writing: " + std::to_string(bytes) + " bytes (" +
                             std::strerror(errno) + ").");
  }
  return Mapping(base, bytes);
}

void Mapping::willNeed() const {
  if (base_ != nullptr) madvise(base_, size_, MADV_WILLNEED);
}

void Mapping::provide(size_t offset, size_t bytes, bool writable) const {
  if (base_ == nullptr || offset >= size_) return;
#ifdef __linux__
  // Constants since Linux 5.14; the C library's headers may be older.
  constexpr int kPopulateRead = 22, kPopulateWrite = 23;
  const size_t first = offset / kPage * kPage;
  madvise(data() + first, std::min(bytes, size_ - offset) + (offset - first),
          writable ? kPopulateWrite : kPopulateRead);
#else
  (void)bytes;
  (void)writable;
#endif
}

FileDescriptor::~FileDescriptor() {
  if (descriptor_ >= 0) close(descriptor_);
}

size_t checkedProduct(size_t a, size_t b, const char* what) {
  size_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw std::runtime_error(std::string(what) + " needs more bytes than an address can count (" + std::to_string(a) +
                             " x " + std::to_string(b) + ").");
  }
  return product;
}

size_t checkedSum(size_t a, size_t b, const char* what) {
  size_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw std::runtime_error(std::string(what) + " needs more bytes than an address can count (" + std::to_string(a) +
                             " + " + std::to_string(b) + ").");
  }
  return sum;
}

}  // namespace skein
