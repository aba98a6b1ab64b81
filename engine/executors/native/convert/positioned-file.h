#pragma once
#include <cstdint>
#include <string>

namespace skein {

// A file that is read or written by position and not mapped, so that a file truncated or a disk filled meanwhile causes an error and
// not a signal. O_NONBLOCK: a pipe in the place of a file is refused, not waited for; the flag has no effect on files.
class PositionedFile {
 public:
  enum class Role { kSource, kTarget };

  // Throws std::runtime_error, for a target a CodedError, that names the file.
  PositionedFile(const std::string& path, Role role);
  ~PositionedFile();
  PositionedFile(const PositionedFile&) = delete;
  PositionedFile& operator=(const PositionedFile&) = delete;

  int64_t size() const { return size_; }
  void read(void* buffer, int64_t length, int64_t offset) const;
  void write(const void* buffer, int64_t length, int64_t offset) const;
  // Throws if the range does not lie within the file; `what` names it.
  void checkRange(const char* what, int64_t offset, int64_t length) const;

 private:
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  Role role_;
  int fd_;
  int64_t size_ = 0;
};

}  // namespace skein
