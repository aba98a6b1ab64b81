#pragma once

#include <stdexcept>
#include <string>

namespace skein {

// An error that the program reacts to by its code, which becomes `code` in JavaScript, and not by its sentence.
class CodedError : public std::runtime_error {
 public:
  CodedError(const char* code, const std::string& what) : std::runtime_error(what), code_(code) {}
  const char* code() const { return code_; }

  // Code of an exception; null if it has none.
  static const char* of(const std::exception& error) {
    const auto* coded = dynamic_cast<const CodedError*>(&error);
    return coded == nullptr ? nullptr : coded->code();
  }

 private:
  const char* code_;
};

// The file being written is at fault, and not one that is read.
inline constexpr const char* kTargetFile = "SKEIN_TARGET_FILE";
// Weights are not those that were built: the file was changed.
inline constexpr const char* kWeightsChanged = "SKEIN_WEIGHTS_CHANGED";
// Another rank of the group is gone, or does not answer.
inline constexpr const char* kGroupLost = "SKEIN_RANKS_LOST";

}  // namespace skein
