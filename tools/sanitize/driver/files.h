// A folder for the files of one round; it goes with the round.
#pragma once
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace skein {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "skein-driver-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("No folder for temporary files can be made.");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string at(const char* name) const { return (path_ / name).string(); }

  // Writes a file and returns its path.
  std::string write(const char* name, const void* bytes, size_t length) const {
    const std::string path = at(name);
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) throw std::runtime_error(path + " cannot be written.");
    const size_t written = std::fwrite(bytes, 1, length, file);
    if (std::fclose(file) != 0 || written != length) throw std::runtime_error(path + " cannot be written.");
    return path;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace skein
