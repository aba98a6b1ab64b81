// One of the files that are compiled, so that headers are read a few times and not once for each file. Names without linkage differ in
// all that it includes.
#include "executor/adapter_slot.cpp"
#include "executor/adapters.cpp"
#include "executor/checksums.cpp"
#include "executor/group_memory.cpp"
#include "executor/mapped_pages.cpp"
#include "executor/memory.cpp"
#include "executor/packed_experts.cpp"
#include "executor/packed_weights.cpp"
#include "executor/stored_weights.cpp"
#include "executor/weight_packing.cpp"
#include "executor/weight_parts.cpp"
