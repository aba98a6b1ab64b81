// One of the files that are compiled, so that headers are read a few times and not once for each file. Names without linkage differ in
// all that it includes.
#include "executor/attention_op.cpp"
#include "executor/attention_schedule.cpp"
#include "executor/executor.cpp"
#include "executor/expert_rows.cpp"
#include "executor/experts_op.cpp"
#include "executor/fresh_chunks.cpp"
#include "executor/ops.cpp"
#include "executor/relative_tables.cpp"
#include "executor/shared_prefixes.cpp"
#include "executor/stored_products.cpp"
#include "kernels/isa.cpp"
#include "kernels/same_products.cpp"
