// One of the files that are compiled, so that headers are read a few times and not once for each file. Names without linkage differ in
// all that it includes.
#include "addon.cpp"
#include "convert/register-convert.cpp"
#include "executor/executor_object.cpp"
#include "executor/js_batch.cpp"
#include "executor/js_config.cpp"
#include "executor/js_group.cpp"
#include "executor/js_test_hooks.cpp"
#include "executor/js_values.cpp"
#include "kernels/test_hooks.cpp"
