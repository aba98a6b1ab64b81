// Pages of mapped files: which of them are in memory, and advice to the system about them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace skein {

// Bytes of a mapped file.
struct MappedBytes {
  const uint8_t* data;
  size_t bytes;

  const uint8_t* end() const { return data + bytes; }
};

// The whole pages that the bytes lie in.
MappedBytes wholePages(const MappedBytes& bytes);

// True if the system says which pages of a file are in memory: it does so to who owns the file or may write it, and says to others that
// all are.
bool tellsResidency(const std::string& path);

// Of whole pages: those from the first to the last that is not in memory, and `absent`, the bytes of those between them that are not. None:
// all are in memory. pages: memory for the answer.
MappedBytes absentPages(const MappedBytes& whole, std::vector<unsigned char>& pages, size_t& absent);

// Says that the pages are read in no order, so that one that is missing brings no others with it; or that they are read as of any file.
void adviseRandom(const MappedBytes& whole);
void adviseNormal(const MappedBytes& whole);

// Asks the system to read the pages from the disk, and does not wait for them.
void readAhead(const MappedBytes& whole);

// Bytes that this thread has asked the disks for; 0 where the system does not count them.
uint64_t bytesReadByThread();

}  // namespace skein
