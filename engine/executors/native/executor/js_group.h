// What JavaScript sees of the memory of a group of ranks.
#pragma once
#include <napi.h>

#include <memory>

#include "executor/group_memory.h"

namespace skein {

void registerGroup(Napi::Env env, Napi::Object exports);

// The memory that an object of the addon's RankGroup holds. Throws a sentence for any other value.
std::shared_ptr<GroupMemory> groupOf(const Napi::Value& value);

}  // namespace skein
