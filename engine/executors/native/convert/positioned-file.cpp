#include "positioned-file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "../coded_error.h"

namespace skein {

PositionedFile::PositionedFile(const std::string& path, Role role)
    : path_(path),
      role_(role),
      fd_(open(path.c_str(), (role == Role::kTarget ? O_WRONLY : O_RDONLY) | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ < 0) fail(std::string("cannot be opened: ") + std::strerror(errno) + ".");
  struct stat status;
  if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd_);
    fail("is not a regular file.");
  }
  size_ = status.st_size;
}

PositionedFile::~PositionedFile() { close(fd_); }

void PositionedFile::read(void* buffer, int64_t length, int64_t offset) const {
  auto* bytes = static_cast<char*>(buffer);
  while (length > 0) {
    const ssize_t got = pread(fd_, bytes, size_t(length), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot be read at byte " + std::to_string(offset) + ": " + std::strerror(errno) + ".");
    if (got == 0) {
      fail("ended at byte " + std::to_string(offset) + " while it was read; it was " + std::to_string(size_) +
           " bytes long before.");
    }
    bytes += got, offset += got, length -= got;
  }
}

void PositionedFile::write(const void* buffer, int64_t length, int64_t offset) const {
  auto* bytes = static_cast<const char*>(buffer);
  while (length > 0) {
    const ssize_t put = pwrite(fd_, bytes, size_t(length), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail(std::string("cannot be written: ") + std::strerror(put < 0 ? errno : EIO) + ".");
    bytes += put, offset += put, length -= put;
  }
}

void PositionedFile::checkRange(const char* what, int64_t offset, int64_t length) const {
  if (offset >= 0 && length >= 0 && offset <= size_ && length <= size_ - offset) return;
  fail(std::string(what) + " bytes " + std::to_string(offset) + " to " + std::to_string(offset + length) +
       " lie beyond the file's " + std::to_string(size_) + " bytes.");
}

void PositionedFile::fail(const std::string& what) const {
  const std::string message = path_ + ": " + what;
  if (role_ == Role::kTarget) throw CodedError(kTargetFile, message);
  throw std::runtime_error(message);
}

}  // namespace skein
