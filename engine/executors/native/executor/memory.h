// Memory taken once when an executor is made: mapped files and anonymous regions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace skein {

// One mmap, unmapped by the destructor.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(Mapping&& other) noexcept { swap(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    swap(other);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Maps zeroed pages, committed when first touched; huge pages if the system gives them. Throws a sentence that names
  // `what` and the bytes.
  static Mapping anonymous(size_t bytes, const std::string& what);
  // Maps the whole file, read-only and shared between processes. Throws an error naming the file.
  static Mapping readOnlyFile(const std::string& path);
  // Maps `bytes` of an open file, writable and shared.
  static Mapping writableFile(int descriptor, size_t bytes, const std::string& path);

  uint8_t* data() const { return static_cast<uint8_t*>(base_); }
  size_t size() const { return size_; }
  // Asks the system to read the whole mapping ahead.
  void willNeed() const;
  // Makes the system provide the pages of `bytes` from `offset` on now instead of at their first touch, which takes some
  // microseconds each. Their content does not change; other threads may use the memory meanwhile. Does nothing on a
  // system without this call.
  void provide(size_t offset, size_t bytes, bool writable) const;

 private:
  Mapping(void* base, size_t size) : base_(base), size_(size) {}
  void swap(Mapping& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(size_, other.size_);
  }
  void* base_ = nullptr;
  size_t size_ = 0;
};

// An open file, closed by the destructor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

// Returns a * b; throws a sentence if it does not fit into size_t.
size_t checkedProduct(size_t a, size_t b, const char* what);
// Returns a + b; throws a sentence if it does not fit into size_t.
size_t checkedSum(size_t a, size_t b, const char* what);

constexpr int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr size_t kPage = 4096;  // bytes
// Bytes of a line of the processor's caches.
constexpr size_t kLineBytes = 64;

constexpr size_t roundUp(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace skein
