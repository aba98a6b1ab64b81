#pragma once
#include <map>
#include <memory>
#include <string>

#include "positioned-file.h"

namespace skein {

// Files of a checkpoint that are open for reading, each once. Threads may use at() at once, once all are open.
class OpenFiles {
 public:
  // Throws std::runtime_error that names the file.
  const PositionedFile& open(const std::string& path) {
    auto& file = files_[path];
    if (!file) file = std::make_unique<PositionedFile>(path, PositionedFile::Role::kSource);
    return *file;
  }
  // A file that is open already.
  const PositionedFile& at(const std::string& path) const { return *files_.at(path); }

 private:
  std::map<std::string, std::unique_ptr<PositionedFile>> files_;
};

}  // namespace skein
